import { isWorkState } from '../../../machines/agent/run-result.js'
import type { Clock } from '../base/clock.js'
import { leaseMs } from './log/heartbeat.js'
import type { FoldedSession } from './fold-session.js'
import type { Lease, SessionStore } from './store/store.js'

/** Clocks that differ by more milliseconds are not compared: one of them does not count from the epoch. */
const maxSkewMs = 86_400_000

/**
 * The time at which a run goes on in this process, by the clock of the process that left it. A host whose clock is wrong
 * would otherwise take the deadline for past, or wait hours before a retry. The clock of the store, which all hosts share,
 * says how much time has passed since then; a store without a clock leaves that to our own clock, and the time is never
 * before the last record. Undefined: the run has no deadline and no retry to wait for.
 */
export async function getResumeTime(
  store: SessionStore,
  lease: Lease,
  { run, at }: FoldedSession,
  clock: Clock,
): Promise<number | undefined> {
  if (run?.status !== 'active') return undefined
  const isTimed = isWorkState(run.context.state) || run.context.attempt > 1
  if (!isTimed) return Math.max(at, clock.now())
  const inStore = lease.expiresAt - leaseMs
  const listed = await store.get(lease.sessionId)
  const isShared = [at - (listed?.updatedAt ?? NaN), clock.now() - inStore].every(
    (skew) => Math.abs(skew) <= maxSkewMs,
  )
  const since = inStore - (listed?.updatedAt ?? 0)
  return isShared ? at + Math.max(0, since) : Math.max(at, clock.now())
}
