import type { AgentContext } from '../../../machines/agent/context.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { Run } from '../run/run.js'

/** Whether a run sleeps, and its time is still to come. */
export function isAsleep({ state, wakeAt }: AgentContext, now: number): boolean {
  return state === 'PAUSED' && wakeAt !== null && wakeAt > now
}

/** Whether it sleeps no longer: its time has come. */
export function isDue({ state, wakeAt }: AgentContext, now: number): boolean {
  return state === 'PAUSED' && wakeAt !== null && wakeAt <= now
}

/** How long it is still to sleep, for those who wake it. */
export function findSleepLeft(
  { state, wakeAt }: AgentContext,
  now: number,
): { wakeAt: number; wakeMs: number } | undefined {
  if (state !== 'PAUSED' || wakeAt === null) return undefined
  return { wakeAt, wakeMs: Math.max(0, wakeAt - now) }
}

/** Wakes a run as long as its time has come, also when it has slept again meanwhile. */
export async function wakeWhileDue(
  run: Run,
  rest: RunResult | 'left',
  left: Promise<'left'>,
  isTime: () => boolean,
): Promise<RunResult | 'left'> {
  let outcome = rest
  while (outcome !== 'left' && isTime()) {
    run.resume()
    // oxlint-disable-next-line no-await-in-loop -- one rest after the other
    outcome = await Promise.race([run.result, left])
  }
  return outcome
}
