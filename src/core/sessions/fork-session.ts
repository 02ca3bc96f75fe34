import type { AgentContext, SessionState } from '../../../machines/agent/context.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import { listAnswerableCalls } from '../../../machines/agent/questions.js'
import { isRestState } from '../../../machines/agent/run-result.js'
import type { Clock } from '../base/clock.js'
import { createId } from '../base/platform.js'
import { UsageError } from '../base/errors.js'
import { getChildSessionId } from './agent-definition.js'
import type { SessionStore } from './store/store.js'
import { createOpening, createSnapshot } from './log/create-records.js'
import type { MachineState, LoggedEdit } from './log/log-record.js'
import { openSession } from './open-session.js'
import { readSessionAt } from './replay-session.js'
import { toMachineState, type FoldedSession, applyRecord, createFoldedSession } from './fold-session.js'

export interface ForkStart {
  state: SessionState
  /** The latest run. Null if no run has started, or if the fork keeps only the conversation. */
  run: { machine: MachineState; context: AgentContext } | null
  edit?: LoggedEdit
}

/**
 * Creates a session from the state of another session after record `seq`. The source session is not changed. A run that
 * was in progress can be resumed in both sessions, as separate runs with different idempotency keys. `change` edits the
 * initial state.
 */
export async function forkSession(
  store: SessionStore,
  sessionId: string,
  seq: number | undefined,
  clock: Clock,
  change: (folded: FoldedSession) => ForkStart | Promise<ForkStart> = keepUnchanged,
): Promise<string> {
  const folded = await readSessionAt(store, sessionId, seq)
  const beginning = await change(folded)
  const id = createId()
  await writeFork({ store, clock }, id, { sessionId, folded, beginning })
  return id
}

/** The source of a fork. */
interface ForkOrigin {
  sessionId: string
  folded: FoldedSession
  beginning: ForkStart
  /** For a sub-agent, the fork of its parent session. */
  parent?: string
}

/** Writes the first records of a fork, and the sessions of its waiting sub-agents. */
export async function writeFork(
  parts: ForkParts,
  id: string,
  { sessionId, folded, beginning, parent }: ForkOrigin,
): Promise<void> {
  const { head, name, tags, runs, definition } = folded
  const identity = { name, tags, parent }
  const { run, edit } = beginning
  const { grants: _grants, ...state } = beginning.state
  const { grants: _given, ...former } = run?.context ?? {}
  const context = run && {
    ...(former as AgentContext),
    calls: run.context.calls.map(withoutVotes),
    sessionId: id,
    runId: createId(),
  }
  if (context) await copyChildren(parts, { sessionId, folded, beginning }, context)
  const { log } = await openSession(parts.store, id, { clock: parts.clock, holder: 'a fork', name, parent })
  log.facts.addTags(tags, id)
  log.write(createOpening(identity, state, { sessionId, seq: head, ...(edit && { edit }) }))
  if (run && context) {
    log.write(createSnapshot({ ...run.machine, context }, { ...identity, runs, definition }))
    log.setForkSummary(context)
  } else log.setFirstSummary(state)
  await log.close()
}

/**
 * Removes the votes for an open question and the mark of a revoked vote, because they belong to the original session. The
 * question's time limit starts again with an approval in the fork.
 */
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

/**
 * Copies the sessions of sub-agents that wait for an answer, so that each sub-agent waits at the same question in the
 * fork.
 */
async function copyChildren(
  parts: ForkParts,
  { sessionId, folded }: ForkOrigin,
  fork: AgentContext,
): Promise<void> {
  const waiting = fork.calls.filter(isWaitingForChild)
  const from = folded.run?.context
  if (waiting.length === 0 || from === undefined) return
  const { head } = folded
  const [last] = await parts.store.read(sessionId, { from: head, to: head })
  for (const call of waiting) {
    // oxlint-disable-next-line no-await-in-loop -- forks are written in order
    const child = await readSessionAtQuestion(parts.store, from, call, last?.at ?? Infinity)
    const origin = {
      sessionId: getChildSessionId(from, call.id),
      folded: child,
      beginning: keepUnchanged(fork.terms?.askFirst ? askFirst(child) : child),
      parent: fork.sessionId,
    }
    // oxlint-disable-next-line no-await-in-loop -- forks are written in order
    await writeFork(parts, getChildSessionId(fork, call.id), origin)
  }
}

interface ForkParts {
  store: SessionStore
  clock: Clock
}

/** The start of a fork without changes. */
export function keepUnchanged({ state, run }: FoldedSession): ForkStart {
  return { state, run: run && { machine: toMachineState(run), context: run.context } }
}

/** Applies the fork's `askFirst` to the fork's sub-agents. */
function askFirst(child: FoldedSession): FoldedSession {
  const { run } = child
  if (run === null) return child
  return {
    ...child,
    run: { ...run, context: { ...run.context, terms: { askFirst: true as const } } } as typeof run,
  }
}

/**
 * Whether a call waits for an idle sub-agent to be answered or resumed. A tool that asks questions is not a sub-agent.
 */
function isWaitingForChild({ questions, result, started }: BatchCall): boolean {
  return questions?.some(({ fromTool }) => fromTool) === false && result === undefined && !started
}

/**
 * The state of a call's sub-agent at the question that the call waits for. Uses the last matching record that is not
 * later than `at` (in milliseconds since the epoch), or otherwise the first matching record, because a sub-agent may
 * write its record shortly after the waiting run.
 * @throws {UsageError} `nothing_to_resume` if the sub-agent's log has no such record
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
  const wanted = questions.map(getQuestionKey).toSorted().join()
  let found: FoldedSession | null = null
  for (const record of records) {
    applyRecord(folded, record, sessionId)
    const child = folded.run?.context
    const isResting = child !== undefined && isRestState(child.state)
    if (
      isResting &&
      (record.at <= at || found === null) &&
      listAnswerableCalls(child).map(getQuestionKey).toSorted().join() === wanted
    )
      found = { ...folded }
  }
  if (found) return found
  throw new UsageError(
    'nothing_to_resume',
    `Call '${id}' waits for its sub-agent '${name}', whose session '${sessionId}' is no longer at that question. Fork at a ` +
      'record before that call started, or after it ended.',
    id,
  )
}

const getQuestionKey = ({
  callId,
  fingerprint,
}: {
  callId: string
  fingerprint?: string | undefined
}): string => `${callId} ${fingerprint ?? ''}`
