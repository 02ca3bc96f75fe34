import { type Message, type UserMessage, parseMessageNumber } from '../../../machines/agent/messages.js'
import type { NewMessage } from '../../../machines/agent/context.js'
import type { TurnEnd } from '../../../machines/agent/run-result.js'
import { UsageError } from '../base/errors.js'
import { overrideLimits } from '../config/resolve-config.js'
import { type BranchStart, getBranch, maxBranches, unbranched } from '../sessions/branch-tree.js'
import { findClientId, findTurnIndex, isTurnOpening } from '../sessions/find-turn.js'
import type { FoldedSession } from '../sessions/fold-session.js'
import { refuseSubAgentSession, refuseUnfinishedRun } from '../sessions/session-errors.js'
import { nullIfBusy, unknownSessionError } from '../sessions/store/store-error.js'
import { toMessages, type UserInput } from '../sessions/user-input.js'
import type { RunOrigin } from '../run/run-parts.js'
import { checkRunOptions, withAttachments } from './read-parts.js'
import type { BranchOptions } from './agent-options.js'
import { toRequesters } from '../sessions/principal.js'
import { acquireSession, beginAcquiredRun, type RunStart, type StoredRuns } from './stored-runs.js'
import { createId } from '../base/platform.js'
import { isQueueStopped } from '../sessions/inbox/queued-message.js'
import { Session } from '../sessions/session.js'
import type { Run } from '../run/run.js'

/** Starts a run on a new branch of a session. */
export async function beginBranch(
  stored: StoredRuns,
  options: BranchOptions,
  { runId, session }: Pick<RunStart, 'runId' | 'session'>,
): Promise<RunOrigin> {
  const { from: _from, edit: _edit, key: _key, ...rest } = checkBranchOptions(options)
  const { context, tags, limits, budgets, by } = checkRunOptions(rest)
  stored.parts.model.check?.()
  const own = stored.parts.config
  const config = limits === undefined ? own : overrideLimits(own, limits)
  const acquired = await acquireSession(stored, session.id, { holder: `run ${runId}`, name: session.name })
  let plan: ReturnType<typeof planBranch>
  try {
    plan = planBranch(acquired.folded, options, session.id)
  } catch (error) {
    await acquired.log.close()
    throw error
  }
  return beginAcquiredRun(stored, acquired, {
    runId,
    session,
    config,
    context,
    tags,
    budgets,
    ...toRequesters({ by }, 'branch()'),
    ...plan,
  })
}

/** @throws {UsageError} `invalid_option` */
function checkBranchOptions(options: BranchOptions): BranchOptions {
  const { from, key } = options ?? {}
  if (typeof from !== 'string' || from === '')
    throw optionError(
      "branch() needs { from }: the id of the message to edit or answer again, such as 'm3'.",
      'from',
    )
  if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > 500))
    throw optionError('key must be a string of 1 to 500 characters.', 'key')
  for (const name of ['session', 'journal', 'inspect'])
    if (Object.hasOwn(options, name)) throw optionError(`branch() has no option '${name}'.`, name)
  return options
}

function optionError(message: string, subject: string): UsageError {
  return new UsageError('invalid_option', message, subject)
}

function planBranch(
  folded: FoldedSession,
  { from, edit, attachments, key }: BranchOptions,
  sessionId: string,
): Pick<RunStart, 'conversation' | 'branch'> {
  if (folded.head === 0) throw unknownSessionError(sessionId)
  refuseSubAgentSession(sessionId, folded.parent)
  const tree = folded.branches ?? unbranched
  if (key !== undefined && getBranch(tree).key === key) throw alreadyBranchedError(key)
  refuseUnfinishedRun(folded, sessionId)
  // Uses the messages of the run, because the session's unscreened messages are masked.
  const messages: readonly Message[] = folded.run?.context.messages ?? folded.state.messages
  const at = findTurnIndex(messages, from)
  const message = messages[at]
  if (message?.role !== 'user') throw notThereError(folded, from, sessionId)
  if (tree.branches.length >= maxBranches) throw tooManyBranchesError(sessionId)
  const { turnEnds = [] } = folded.run?.context ?? folded.state
  const newMessages = edit === undefined ? sayAgain(messages, at, turnEnds) : sayInstead(message, edit)
  const branch: BranchStart = {
    keep: at,
    ...(edit === undefined && { regenerate: true as const }),
    ...(key !== undefined && { key }),
  }
  return { conversation: { history: [], newMessages: withAttachments(newMessages, attachments) }, branch }
}

/** Repeats the message with its client id. Shields screen it like a new message. */
function sayAgain(messages: readonly Message[], at: number, ends: readonly TurnEnd[]): NewMessage[] {
  const message = messages[at] as UserMessage
  const next = messages[at + 1]
  // A run may have ended before it answered.
  const hasTurn = ends.some(({ messageId }) => messageId === message.id)
  if (next && isTurnOpening(next) && !hasTurn) throw notAnsweredError(message)
  const { screened: _screened, withheld, ...data } = message.data ?? {}
  if (withheld === true) throw withheldMessageError(message)
  return [{ content: message.content, data: { ...data, clientId: findClientId(message) ?? message.id } }]
}

function sayInstead(message: UserMessage, edit: UserInput): NewMessage[] {
  const messages = toMessages(edit)
  const id = findClientId(message) ?? message.id
  return messages.map((one, i) =>
    i === messages.length - 1 && findClientId(one) === undefined
      ? { ...one, data: { ...one.data, clientId: id } }
      : one,
  )
}

function notThereError(folded: FoldedSession, from: string, sessionId: string): UsageError {
  const { run, branches, state } = folded
  const number = parseMessageNumber(from.replace(/\.answer$/, ''))
  const numbered = run?.context.lastMessageNumber ?? state.messages.length
  const isOfBranch =
    branches !== null &&
    ((number !== null && number <= numbered) ||
      branches.branches.some(({ clientIds }) => clientIds.includes(from)))
  if (isOfBranch) {
    return new UsageError(
      'other_branch',
      `Message '${from}' of session '${sessionId}' is on another branch. Select that branch first.`,
      from,
    )
  }
  return new UsageError('unknown_message', `Session '${sessionId}' has no message '${from}'.`, from)
}

function notAnsweredError({ id }: UserMessage): UsageError {
  return new UsageError(
    'not_answered',
    `Message '${id}' was not answered, because another message follows it. Branch from the message that was answered.`,
    id,
  )
}

function withheldMessageError({ id }: UserMessage): UsageError {
  return new UsageError(
    'refused_by_shield',
    `A shield refused message '${id}', so the session does not contain its text. Pass new content in edit.`,
    id,
  )
}

function alreadyBranchedError(key: string): UsageError {
  return new UsageError(
    'already_branched',
    `The session is already on the branch that was created with the key '${key}'.`,
    key,
  )
}

function tooManyBranchesError(sessionId: string): UsageError {
  return new UsageError(
    'too_many_branches',
    `Session '${sessionId}' already has ${maxBranches} branches, the maximum. agent.fork('${sessionId}') creates a session that ` +
      'continues from here.',
    sessionId,
  )
}

export interface QueuedRunOptions {
  /**
   * The app's context and tags from the sender of this message. Undefined if the message must not be processed here.
   */
  findSender: (messageId: string) => Pick<RunStart, 'context' | 'tags'> | undefined
  /** Whether the run may start after a run that was stopped. */
  afterStop: boolean
}

/**
 * Acquires a session whose next run starts with a queued message. The run starts when the returned function is called,
 * so that a subscriber can attach first. Returns null if no message waits, if the session is active or waiting, or if
 * another process holds it.
 */
export async function beginQueuedRun(
  stored: StoredRuns,
  id: string,
  { findSender, afterStop }: QueuedRunOptions,
): Promise<(() => Run) | null> {
  const runId = createId()
  const acquired = await acquireSession(stored, id, { holder: `run ${runId}` }).catch(nullIfBusy)
  if (acquired === null) return null
  const { log, folded } = acquired
  const { run, name, state } = folded
  const { parts } = stored
  try {
    const mayBegin = run?.status !== 'active' && (afterStop || !run || !isQueueStopped(run.context))
    const queued = mayBegin ? await log.inbox.findNext((run?.context ?? state).messages) : null
    const found = queued && findSender(queued.messageId)
    if (!queued || !found) {
      await log.close()
      return null
    }
    parts.model.check?.()
    const session = new Session(id, name)
    const start = {
      runId,
      session,
      conversation: { history: [], newMessages: queued.messages },
      config: parts.config,
      context: found.context,
      tags: found.tags,
      queued,
    }
    const origin = await beginAcquiredRun(stored, acquired, start)
    return () => stored.run({ runId, session, origin, signal: undefined, inspect: stored.inspect })
  } catch (error) {
    await log.close()
    throw error
  }
}
