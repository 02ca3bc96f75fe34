import type { AgentContext } from '../../../machines/agent/context.js'
import { isWorkState } from '../../../machines/agent/run-result.js'
import { findDueTime, findNextExpiry } from '../../../machines/agent/due-times.js'
import { StatewrightError, describeError } from '../base/errors.js'
import type { Clock } from '../base/clock.js'
import type { Interpreter } from '../interpreter/table-transition.js'
import type { AgentDefinition } from './agent-definition.js'
import { StoreError } from './store/store-error.js'
import type { Lease, SessionStore } from './store/store.js'
import { acquireLease, getAcquiredAt, leaseMs, releaseLease } from './log/lease.js'
import { SessionLog } from './log/session-log.js'
import { type FoldedSession, foldRecords, pureReducer, xstateReducer } from './fold-session.js'

export interface OpenSessionOptions {
  clock: Clock
  holder: string
  name?: string | undefined
  /** For a sub-agent, the session of the run that calls it. */
  parent?: string | undefined
  definition?: (() => AgentDefinition) | undefined
  /** Defaults to `tables`. */
  interpreter?: Interpreter | undefined
  /** For a sub-agent, the time of its parent run. */
  now?: number | undefined
}

export interface StoreParts {
  store: SessionStore
  clock: Clock
}

export interface AcquiredSession {
  log: SessionLog
  folded: FoldedSession
}

/** @throws {StoreError} `session_busy`, `corrupt_log`, `newer_log`, `unknown_state`, `store_unavailable` */
export async function openSession(
  store: SessionStore,
  sessionId: string,
  { clock, holder, name, parent, definition, interpreter, now }: OpenSessionOptions,
): Promise<AcquiredSession> {
  return acquireSessionLog(store, sessionId, { clock, holder }, async (lease) => {
    // From now on, no other process can write, so a head of 0 still means that the log is empty.
    const records = lease.head === 0 ? [] : await store.read(sessionId, { from: 'snapshot' })
    const folded = foldRecords(records, sessionId, interpreter === 'xstate' ? xstateReducer : pureReducer)
    const resumesAt =
      now === undefined ? await getResumeTime(store, lease, folded, clock) : Math.max(folded.at, now)
    const log = new SessionLog({ store, lease, folded, clock, holder, name, parent, definition, resumesAt })
    return { log, folded }
  })
}

/** Releases the session if it cannot be read. @throws {StoreError} `session_busy`, and the errors from `read` */
export async function acquireSessionLog<Acquired>(
  store: SessionStore,
  sessionId: string,
  { clock, holder }: { clock: Clock; holder: string },
  read: (lease: Lease) => Promise<Acquired>,
): Promise<Acquired> {
  let lease: Lease | undefined
  try {
    lease = await acquireLease(store, sessionId, { holder, ttlMs: leaseMs })
    return await read(lease)
  } catch (error) {
    if (lease) await releaseLease(store, lease, clock)
    if (error instanceof StatewrightError) throw error
    const message = `The session store threw an error that is not a StoreError: ${describeError(error)}`
    throw new StoreError('store_unavailable', message, sessionId, { cause: error })
  }
}

/**
 * The time at which a run starts or resumes here, never before the last record. A resumed run keeps the clock of its
 * previous process, so that no wrong clock can let deadlines expire early or delay a retry by hours.
 */
async function getResumeTime(
  store: SessionStore,
  lease: Lease,
  { run, at }: FoldedSession,
  clock: Clock,
): Promise<number> {
  const waits = run?.status === 'active' && isTimed(run.context)
  if (!waits) return Math.max(at, clock.now())
  return readStoreTime(store, lease.sessionId, getAcquiredAt(lease), { at, clock })
}

function isTimed(context: AgentContext): boolean {
  return isWorkState(context.state) || context.attempt > 1 || findDueTime(context) !== null
}

/** The time of a session's run, as seen by a process that does not hold it. */
export async function readRunTime(
  store: SessionStore,
  { run, at }: FoldedSession,
  clock: Clock,
): Promise<number> {
  if (!run || (findDueTime(run.context) ?? findNextExpiry(run.context)) === null)
    return Math.max(at, clock.now())
  const inStore = (await store.timers?.listDue({ limit: 1 }))?.now ?? NaN
  return readStoreTime(store, run.context.sessionId, inStore, { at, clock })
}

/** Clocks that differ more are not compared, because one of them does not count from the epoch. */
const maxSkewMs = 86_400_000

/** Adds the time since the last record on the store's clock, which all hosts share, if it has one. */
async function readStoreTime(
  store: SessionStore,
  sessionId: string,
  inStore: number,
  { at, clock }: { at: number; clock: Clock },
): Promise<number> {
  const { updatedAt = NaN } = (await store.get(sessionId)) ?? {}
  const isShared = [at - updatedAt, clock.now() - inStore].every((skew) => Math.abs(skew) <= maxSkewMs)
  // A custom store may return fractional milliseconds.
  return isShared ? at + Math.max(0, Math.round(inStore - updatedAt)) : Math.max(at, clock.now())
}
