import { type Alarm, parseAlarm } from '../sessions/alarm.js'
import type { SessionStore } from '../sessions/store/store.js'
import { getListedDefinition } from '../sessions/agent-definition.js'
import { listAllDue } from '../sessions/store/timers.js'
import type { Agents } from './define-agents.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { runControls } from '../live/run-controls.js'
import { findDueTime } from '../../../machines/agent/due-times.js'
import type { Run } from '../run/run.js'

/** A due alarm of a session. Each sleep of a session has a different time. */
export interface DueAlarm extends Alarm {
  /** Milliseconds since the epoch, according to the store's clock. */
  at: number
}

export function mayWake(agents: Agents, alarm: Alarm): boolean {
  return alarm.agent === undefined || agents.findAgentFor(getListedDefinition(alarm)) !== undefined
}

/** The remaining sleep of a session in milliseconds, or null if its alarm can be removed. */
export type SleepLeft = number | null

/**
 * Passes each due session to an engine, then removes its alarm, or moves the alarm if the session still sleeps. If an
 * engine receives an alarm twice, it wakes the session once. Returns whether any alarm was due.
 */
export async function wakeSleepers(
  agents: Agents,
  { timers }: SessionStore,
  wake: (alarm: DueAlarm) => Promise<SleepLeft>,
): Promise<boolean> {
  if (!timers) return false
  let hasWoken = false
  for await (const { timer } of listAllDue(timers)) {
    const alarm = parseAlarm(timer)
    if (alarm === null || !mayWake(agents, alarm)) continue
    const left = await wake({ ...alarm, at: timer.at })
    const to = left === null ? null : (await timers.listDue({ limit: 1 })).now + Math.max(1, left)
    await timers.move({ id: timer.id, from: timer.at, to })
    hasWoken = true
  }
  return hasWoken
}

export function isAsleep(context: AgentContext, now: number): boolean {
  return (findDueTime(context) ?? now) > now
}

export function isDue(context: AgentContext, now: number): boolean {
  return (findDueTime(context) ?? Infinity) <= now
}

export function findSleepLeft(
  context: AgentContext,
  now: number,
): { wakeAt: number; wakeMs: number } | undefined {
  const wakeAt = findDueTime(context)
  if (wakeAt === null) return undefined
  return { wakeAt, wakeMs: Math.max(0, wakeAt - now) }
}

/** Continues a run that is due. Its own clock starts later than the caller's, and may not have reached that time. */
export function wakeRun(run: Run): void {
  const { context } = run.snapshot() as { context: AgentContext }
  const at = findDueTime(context) ?? 0
  if (context.state !== 'PAUSED') return runControls.expire(run, at)
  runControls.advance(run, at)
  run.resume()
}
