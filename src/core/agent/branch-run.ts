import type { NewMessage } from '../../../machines/agent/context.js'
import type { Message, UserMessage } from '../../../machines/agent/messages.js'
import { parseMessageNumber } from '../../../machines/agent/step-id.js'
import { UsageError } from '../base/errors.js'
import { type BranchStart, getBranch, maxBranches, unbranched } from '../sessions/branch-tree.js'
import { findClientId, findTurnIndex, isTurnOpening } from '../sessions/find-turn.js'
import type { FoldedSession } from '../sessions/fold-session.js'
import { refuseUnfinishedRun } from '../sessions/session-errors.js'
import { unknownSessionError } from '../sessions/store/store-refusals.js'
import { toMessages, type UserInput } from '../sessions/user-input.js'
import type { RunOrigin } from '../run/run-parts.js'
import { type RunAttachment, withAttachments } from '../run/with-attachments.js'
import { acquireSession, beginAcquiredRun, type RunStart, type StoredRuns } from './stored-runs.js'

/** Where a branch begins, and what is said there. */
export interface BranchRequest {
  /** The id of the user message, or of its answer. */
  from: string
  /** What the user says in place of that message. Absent: the message, once more. */
  edit?: UserInput | undefined
  attachments?: readonly RunAttachment[] | undefined
  key?: string | undefined
}

/** Begins a run on a new branch of a session. */
export async function beginBranch(
  stored: StoredRuns,
  request: BranchRequest,
  start: Omit<RunStart, 'said' | 'branch' | 'queued'>,
): Promise<RunOrigin> {
  const { runId, session } = start
  const taken = await acquireSession(stored, session.id, { holder: `run ${runId}`, name: session.name })
  let plan: ReturnType<typeof planBranch>
  try {
    plan = planBranch(taken.folded, request, session.id)
  } catch (error) {
    await taken.log.close()
    throw error
  }
  return beginAcquiredRun(stored, taken, { ...start, ...plan })
}

function planBranch(
  folded: FoldedSession,
  { from, edit, attachments, key }: BranchRequest,
  sessionId: string,
): Pick<RunStart, 'said' | 'branch'> {
  if (folded.head === 0) throw unknownSessionError(sessionId)
  const tree = folded.branches ?? unbranched
  if (key !== undefined && getBranch(tree).key === key) throw alreadyBranchedError(key)
  refuseUnfinishedRun(folded, sessionId)
  // The run's own: in the session's, a message that no shield has seen is masked.
  const messages: readonly Message[] = folded.run?.context.messages ?? folded.state.messages
  const at = findTurnIndex(messages, from)
  const message = messages[at]
  if (message?.role !== 'user') throw notThereError(folded, from, sessionId)
  if (tree.branches.length >= maxBranches) throw tooManyBranchesError(sessionId)
  const newMessages = edit === undefined ? sayAgain(messages, at) : sayInstead(message, edit)
  const branch: BranchStart = {
    kept: at,
    ...(edit === undefined && { again: true as const }),
    ...(key !== undefined && { key }),
  }
  return { said: { history: [], newMessages: withAttachments(newMessages, attachments) }, branch }
}

/** The message keeps the id that clients know. Shields look at it as at a new one. */
function sayAgain(messages: readonly Message[], at: number): NewMessage[] {
  const message = messages[at] as UserMessage
  const next = messages[at + 1]
  if (next && isTurnOpening(next)) throw notAnsweredError(message)
  const { screened: _screened, withheld, ...data } = message.data ?? {}
  if (withheld === true) throw withheldMessageError(message)
  return [{ content: message.content, data: { ...data, clientId: findClientId(message) ?? message.id } }]
}

function sayInstead(message: UserMessage, edit: UserInput): NewMessage[] {
  const said = toMessages(edit)
  const id = findClientId(message) ?? message.id
  return said.map((one, i) =>
    i === said.length - 1 && findClientId(one) === undefined
      ? { ...one, data: { ...one.data, clientId: id } }
      : one,
  )
}

function notThereError(folded: FoldedSession, from: string, sessionId: string): UsageError {
  const { run, branches, state } = folded
  const number = parseMessageNumber(from.replace(/\.answer$/, ''))
  const numbered = run?.context.numbered ?? state.messages.length
  const isOfBranch =
    branches !== null &&
    ((number !== null && number <= numbered) || branches.branches.some(({ said }) => said.includes(from)))
  if (isOfBranch) {
    return new UsageError(
      'other_branch',
      `Message '${from}' of session '${sessionId}' is on another branch: select that branch first.`,
      from,
    )
  }
  return new UsageError('unknown_message', `Session '${sessionId}' has no message '${from}'.`, from)
}

function notAnsweredError({ id }: UserMessage): UsageError {
  return new UsageError(
    'not_answered',
    `Message '${id}' has no answer of its own: another message follows it. Branch from the message that was answered.`,
    id,
  )
}

function withheldMessageError({ id }: UserMessage): UsageError {
  return new UsageError(
    'refused_by_shield',
    `A shield refused message '${id}', and the session does not have its content: give an edit of it.`,
    id,
  )
}

function alreadyBranchedError(key: string): UsageError {
  return new UsageError('already_branched', `The session is on the branch that '${key}' began.`, key)
}

function tooManyBranchesError(sessionId: string): UsageError {
  return new UsageError(
    'too_many_branches',
    `Session '${sessionId}' has ${maxBranches} branches, and more are not kept: agent.fork('${sessionId}') makes a session that ` +
      'goes on from here.',
    sessionId,
  )
}
