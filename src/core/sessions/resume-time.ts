import { isWorkState } from '../../../machines/agent/run-result.js'
import type { Clock } from '../base/clock.js'
import { leaseMs } from './log/heartbeat.js'
import type { FoldedSession } from './fold-session.js'
import type { Lease, SessionStore } from './store/store.js'

/** Two clocks that are further apart do not tell the same kind of time, in milliseconds. */
const maxSkewMs = 86_400_000

/**
 * The time at which a run goes on that another process has left, by the clock of that process: a host whose clock is wrong
 * would take its deadline for past, or wait for hours before a retry. How much has passed since, the clock of the store
 * says, which all hosts have in common; where it tells no time, our own clock does, though never less than the log.
 * Undefined: nothing of the run waits for a time.
 */
export async function getResumeTime(
  store: SessionStore,
  lease: Lease,
  { run, at }: FoldedSession,
  clock: Clock,
): Promise<number | undefined> {
  const isTimed = run?.status === 'active' && (isWorkState(run.context.state) || run.context.attempt > 1)
  if (!isTimed) return undefined
  const inStore = lease.expiresAt - leaseMs
  const listed = await store.get(lease.sessionId)
  const isShared = [at - (listed?.updatedAt ?? NaN), clock.now() - inStore].every(
    (skew) => Math.abs(skew) <= maxSkewMs,
  )
  const since = inStore - (listed?.updatedAt ?? 0)
  return isShared ? at + Math.max(0, since) : Math.max(at, clock.now())
}
