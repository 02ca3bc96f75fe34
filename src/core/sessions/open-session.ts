import { isWorkState } from '../../../machines/agent/run-result.js'
import { StatewrightError } from '../base/errors.js'
import type { Clock } from '../base/clock.js'
import { describeError } from '../base/describe-error.js'
import type { Interpreter } from '../interpreter/interpreter.js'
import type { AgentDefinition } from './agent-definition.js'
import { provideAnswerReader } from './answer-reader.js'
import { readElicitationAnswer } from './elicitation-answer.js'
import { StoreError } from './store/store-error.js'
import type { Lease, SessionStore } from './store/store.js'
import { acquireLease, releaseLease } from './log/release-lease.js'
import { leaseMs } from './log/heartbeat.js'
import { SessionLog } from './log/session-log.js'
import { type FoldedSession, foldRecords, pureReducer, xstateReducer } from './fold-session.js'

export interface OpenSessionOptions {
  clock: Clock
  /** Who asks, in words for people. */
  holder: string
  /** The name of a session that does not exist yet. */
  name?: string | undefined
  /** The session of the run that calls the sub-agent whose session this is. */
  parent?: string | undefined
  /** The agent that begins what runs here. */
  definition?: (() => AgentDefinition) | undefined
  /** What takes the events of the log. Default: `tables`. */
  interpreter?: Interpreter | undefined
}

/** A session that was taken for one writer, and where it stands. */
export interface AcquiredSession {
  log: SessionLog
  folded: FoldedSession
}

/**
 * Takes a session for one writer and reads where it stands.
 * @throws {StoreError} `session_busy`, `corrupt_log`, `newer_log`, `unknown_state`, `store_unavailable`
 */
export async function openSession(
  store: SessionStore,
  sessionId: string,
  { clock, holder, name, parent, definition, interpreter }: OpenSessionOptions,
): Promise<AcquiredSession> {
  provideAnswerReader(readElicitationAnswer)
  let lease: Lease | undefined
  try {
    lease = await acquireLease(store, sessionId, { holder, ttlMs: leaseMs })
    // No other process writes to it from here on, so a head of 0 still means an empty log.
    const records = lease.head === 0 ? [] : await store.read(sessionId, { from: 'snapshot' })
    const folded = foldRecords(records, sessionId, interpreter === 'xstate' ? xstateReducer : pureReducer)
    const resumesAt = await getResumeTime(store, lease, folded, clock)
    const log = new SessionLog({ store, lease, folded, clock, holder, name, parent, definition, resumesAt })
    return { log, folded }
  } catch (error) {
    if (lease) await releaseLease(store, lease, clock)
    throw error instanceof StatewrightError ? error : unexpectedStoreError(error, sessionId)
  }
}

/** A store of one's own may throw anything. */
function unexpectedStoreError(error: unknown, sessionId: string): StoreError {
  const message = `The session store failed with what is no StoreError: ${describeError(error)}`
  return new StoreError('store_unavailable', message, sessionId, { cause: error })
}

/** Clocks that differ by more milliseconds are not compared: one of them does not count from the epoch. */
const maxSkewMs = 86_400_000

/**
 * The time at which a run begins or goes on in this process: never before the last record. One that goes on takes the clock
 * of the process that left it. A host whose clock is wrong would otherwise take the deadline for past, or wait hours before
 * a retry. The clock of the store, which all hosts share, says how much time has passed since then; a store without a clock
 * leaves that to our own clock.
 */
async function getResumeTime(
  store: SessionStore,
  lease: Lease,
  { run, at }: FoldedSession,
  clock: Clock,
): Promise<number> {
  if (run?.status !== 'active') return Math.max(at, clock.now())
  const { state, attempt, wakeAt } = run.context
  const isTimed = isWorkState(state) || attempt > 1 || wakeAt !== null
  if (!isTimed) return Math.max(at, clock.now())
  const inStore = lease.expiresAt - leaseMs
  const listed = await store.get(lease.sessionId)
  const isShared = [at - (listed?.updatedAt ?? NaN), clock.now() - inStore].every(
    (skew) => Math.abs(skew) <= maxSkewMs,
  )
  const since = inStore - (listed?.updatedAt ?? 0)
  return isShared ? at + Math.max(0, since) : Math.max(at, clock.now())
}
