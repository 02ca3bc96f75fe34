import { toAction } from '../update-action.js'
import type { AgentContext } from '../context.js'
import { type AgentMachineEvent, getEventTime } from '../machine-events.js'
import type { ModelActorError } from '../model-response.js'
import { isChildPaused } from '../sub-agent-questions.js'

/** Until when the run sleeps: the latest date that a result of the batch, or a sub-agent that sleeps, has asked for. */
export const noteSleep = toAction((context, event) => {
  const now = getEventTime(event)
  const dates = context.calls.flatMap((call): number[] => {
    // A sub-agent that sleeps is woken by its run alone, also where its time has come by now.
    if (isChildPaused(call)) return isTime(call.wakeAt) ? [call.wakeAt] : []
    const { status, wakeAt } = call.result ?? {}
    return status === 'ok' && isTime(wakeAt) && wakeAt > now ? [wakeAt] : []
  })
  return dates.length === 0 ? undefined : sleepUntil(context, Math.max(...dates))
})

/** A resume with a date that is still to come: the run sleeps from its next safe point on. */
export const noteWakeTime = toAction((context, event) => {
  const at = findLaterResume(event)
  return at === null ? undefined : sleepUntil(context, at)
})

/** A shared budget is empty: the run sleeps until there is some again. */
export const sleepForBudget = toAction((context, event) => {
  const at = findBudgetWait(event)
  return at === null ? undefined : sleepUntil(context, at)
})

/** The run rests, and is told when to go on. */
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

/** When a run goes on whose request a shared budget could not pay for; null for any other event, and for one that does not wait. */
export function findBudgetWait(event: AgentMachineEvent): number | null {
  if (event.type !== 'xstate.error.actor.model') return null
  const { code, wakeAt } = (event.error as Partial<ModelActorError> | null) ?? {}
  return code === 'shared_budget' && isTime(wakeAt) ? wakeAt : null
}

/** The date of a resume, if it is still to come. */
export function findLaterResume(event: AgentMachineEvent): number | null {
  const at = event.type === 'RESUME' ? event.at : undefined
  return isTime(at) && at > getEventTime(event) ? at : null
}

/** Whether it is a time that dates have: a log may have been written by another program. */
function isTime(at: unknown): at is number {
  return typeof at === 'number' && Math.abs(at) <= 8.64e15
}
