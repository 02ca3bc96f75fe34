import { toAction } from '../update-action.js'
import { type AgentContext, type AgentMachineEvent, getEventTime } from '../context.js'
import type { ModelActorError } from '../model-response.js'
import { isChildPaused } from '../questions.js'

export const noteSleep = toAction((context, event) => {
  const now = getEventTime(event)
  const dates = context.calls.flatMap((call): number[] => {
    // A sleeping sub-agent is woken only by its parent run, even after its wake time.
    if (isChildPaused(call)) return isTime(call.wakeAt) ? [call.wakeAt] : []
    const { status, wakeAt } = call.result ?? {}
    return status === 'ok' && isTime(wakeAt) && wakeAt > now ? [wakeAt] : []
  })
  return dates.length === 0 ? undefined : sleepUntil(context, Math.max(...dates))
})

const createSleep = (findTime: (event: AgentMachineEvent) => number | null) =>
  toAction((context, event) => {
    const at = findTime(event)
    return at === null ? undefined : sleepUntil(context, at)
  })

export const noteWakeTime = createSleep(findLaterResume)

export const sleepForBudget = createSleep(findBudgetWait)

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

export function findBudgetWait(event: AgentMachineEvent): number | null {
  if (event.type !== 'xstate.error.actor.model') return null
  const { code, wakeAt } = (event.error as Partial<ModelActorError> | null) ?? {}
  return code === 'shared_budget' && isTime(wakeAt) ? wakeAt : null
}

export function findLaterResume(event: AgentMachineEvent): number | null {
  const at = event.type === 'RESUME' ? event.at : undefined
  return isTime(at) && at > getEventTime(event) ? at : null
}

/** Whether a value is a valid time. Times are validated because logs can come from other programs. */
function isTime(at: unknown): at is number {
  return typeof at === 'number' && Math.abs(at) <= 8.64e15
}
