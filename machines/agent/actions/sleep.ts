import { toAction } from '../update-action.js'
import type { AgentContext } from '../context.js'
import { type AgentMachineEvent, getEventTime } from '../machine-events.js'
import type { ModelActorError } from '../model-response.js'
import { isChildPaused } from '../sub-agent-questions.js'

/** The run sleeps until the latest date requested by a result or a sleeping sub-agent. */
export const noteSleep = toAction((context, event) => {
  const now = getEventTime(event)
  const dates = context.calls.flatMap((call): number[] => {
    // Only its own run wakes a sleeping sub-agent, even after its wake time.
    if (isChildPaused(call)) return isTime(call.wakeAt) ? [call.wakeAt] : []
    const { status, wakeAt } = call.result ?? {}
    return status === 'ok' && isTime(wakeAt) && wakeAt > now ? [wakeAt] : []
  })
  return dates.length === 0 ? undefined : sleepUntil(context, Math.max(...dates))
})

/** After a resume with a future date, the run sleeps at its next safe point. */
export const noteWakeTime = toAction((context, event) => {
  const at = findLaterResume(event)
  return at === null ? undefined : sleepUntil(context, at)
})

/** If the shared budget is empty, the run sleeps until the next window. */
export const sleepForBudget = toAction((context, event) => {
  const at = findBudgetWait(event)
  return at === null ? undefined : sleepUntil(context, at)
})

/** Sets the wake time of a resting run. */
export const postpone = toAction(({ state }, event, emit) => {
  const wakeAt = findLaterResume(event)
  if (wakeAt === null || state === null) return undefined
  emit({ type: 'state_changed', from: state, to: state, reason: 'sleeping', wakeAt })
  return { wakeAt, reason: 'sleeping' as const }
})

export const forgetSleep = toAction(({ wakeAt }) => (wakeAt === null ? undefined : { wakeAt: null }))

function sleepUntil({ wakeAt }: AgentContext, at: number): Pick<AgentContext, 'wakeAt'> {
  return { wakeAt: Math.max(wakeAt ?? at, at) }
}

/** The time when a run that waits for a shared budget continues, or null. */
export function findBudgetWait(event: AgentMachineEvent): number | null {
  if (event.type !== 'xstate.error.actor.model') return null
  const { code, wakeAt } = (event.error as Partial<ModelActorError> | null) ?? {}
  return code === 'shared_budget' && isTime(wakeAt) ? wakeAt : null
}

/** The future date of a resume, or null. */
export function findLaterResume(event: AgentMachineEvent): number | null {
  const at = event.type === 'RESUME' ? event.at : undefined
  return isTime(at) && at > getEventTime(event) ? at : null
}

/** Logs can come from other programs, so times are checked. */
function isTime(at: unknown): at is number {
  return typeof at === 'number' && Math.abs(at) <= 8.64e15
}
