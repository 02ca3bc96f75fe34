import type { AgentContext, SessionState } from '../../../machines/agent/context.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import { listAnswerableCalls } from '../../../machines/agent/questions.js'
import { isRestState } from '../../../machines/agent/run-result.js'
import { createId } from '../base/platform.js'
import { UsageError } from '../base/errors.js'
import { getChildSessionId } from './agent-definition.js'
import type { SessionStore } from './store/store.js'
import { createOpening, createSnapshot } from './log/create-records.js'
import type { MachineState, LoggedEdit } from './log/log-record.js'
import { openSession, type StoreParts } from './open-session.js'
import { toMachineState, type FoldedSession, applyRecord, createFoldedSession } from './fold-session.js'

export interface ForkStart {
  state: SessionState
  /** Null if no run has started, or if the fork keeps only the conversation. */
  run: { machine: MachineState; context: AgentContext } | null
  edit?: LoggedEdit
}

interface ForkSource {
  sessionId: string
  /** The session after the record from which the fork starts. */
  folded: FoldedSession
  /** Defaults to the unchanged state of `folded`. */
  start?: ForkStart
  id?: string
  /** For a sub-agent, the fork of its parent session. */
  parent?: string
}

/**
 * Creates a session from another one, and the sessions of its waiting sub-agents. A run in progress can be resumed in both,
 * as separate runs with different idempotency keys.
 */
export async function forkSession(
  parts: StoreParts,
  { sessionId, folded, start = keepUnchanged(folded), id = createId(), parent }: ForkSource,
): Promise<string> {
  const { head, name, tags, runs, definition } = folded
  const identity = { name, tags, parent }
  const { run, edit } = start
  const { grants: _grants, ...state } = start.state
  const { grants: _given, ...former } = run?.context ?? {}
  const context = run && {
    ...(former as AgentContext),
    calls: run.context.calls.map(withoutVotes),
    sessionId: id,
    runId: createId(),
  }
  if (context) await copyChildren(parts, folded, context)
  const { log } = await openSession(parts.store, id, { clock: parts.clock, holder: 'a fork', name, parent })
  log.addTags(tags)
  log.write(createOpening(identity, state, { sessionId, seq: head, ...(edit && { edit }) }))
  if (run && context) {
    log.write(createSnapshot({ ...run.machine, context }, { ...identity, runs, definition }))
    log.setSummary(context, true)
  } else log.setFirstSummary(state)
  await log.close()
  return id
}

/** Votes and revocations belong to the original session. The time limit starts again with an approval in the fork. */
function withoutVotes(call: BatchCall): BatchCall {
  if (call.result !== undefined) return call
  const questions = call.questions?.map((one) => {
    if (one.answer !== undefined) return one
    const { approvals: _approvals, expiresAt: _time, onExpiry: _end, ...question } = one
    return question
  })
  const { approvals, expiresAt: _time, ungranted: _mark, ...open } = call
  const isDecided = approvals !== undefined && call.needs !== 'approval'
  return { ...open, ...(isDecided && { approvals }), ...(questions && { questions }) }
}

/** Copies the sub-agents that wait for an answer, so that they wait at the same question in the fork. */
async function copyChildren(parts: StoreParts, folded: FoldedSession, fork: AgentContext): Promise<void> {
  const waiting = fork.calls.filter(isWaitingForChild)
  const from = folded.run?.context
  if (waiting.length === 0 || from === undefined) return
  for (const call of waiting) {
    const child = await readSessionAtQuestion(parts.store, from, call, folded.at)
    await forkSession(parts, {
      sessionId: getChildSessionId(from, call.id),
      folded: fork.terms?.askFirst ? askFirst(child) : child,
      id: getChildSessionId(fork, call.id),
      parent: fork.sessionId,
    })
  }
}

export function keepUnchanged({ state, run }: FoldedSession): ForkStart {
  return { state, run: run && { machine: toMachineState(run), context: run.context } }
}

function askFirst(child: FoldedSession): FoldedSession {
  const { run } = child
  const context = run && { ...run.context, terms: { askFirst: true as const } }
  return { ...child, run: run && ({ ...run, context } as typeof run) }
}

/** Whether a call waits for an idle sub-agent. A tool that asks questions is not a sub-agent. */
function isWaitingForChild({ questions, result, started }: BatchCall): boolean {
  return questions?.some(({ fromTool }) => fromTool) === false && result === undefined && !started
}

/**
 * The sub-agent of a call at the question that the call waits for: the last matching record up to `at` (in
 * milliseconds since the epoch), otherwise the first, because it may be written shortly after the waiting run's.
 * @throws {UsageError} `nothing_to_resume` if there is none
 */
async function readSessionAtQuestion(
  store: SessionStore,
  context: AgentContext,
  { id, name, questions = [] }: BatchCall,
  at: number,
): Promise<FoldedSession> {
  const sessionId = getChildSessionId(context, id)
  const records = await store.read(sessionId)
  const folded = createFoldedSession(records)
  const wanted = toQuestionKey(questions)
  let found: FoldedSession | null = null
  for (const record of records) {
    applyRecord(folded, record, sessionId)
    const child = folded.run?.context
    if (!child || !isRestState(child.state) || (record.at > at && found !== null)) continue
    if (toQuestionKey(listAnswerableCalls(child)) === wanted) found = { ...folded }
  }
  if (found) return found
  const message =
    `Call '${id}' waits for its sub-agent '${name}', whose session '${sessionId}' is no longer at that question. Fork at a ` +
    'record before that call started, or after it ended.'
  throw new UsageError('nothing_to_resume', message, id)
}

const toQuestionKey = (asked: readonly { callId: string; fingerprint?: string | undefined }[]): string =>
  asked
    .map(({ callId, fingerprint = '' }) => `${callId} ${fingerprint}`)
    .toSorted()
    .join()
