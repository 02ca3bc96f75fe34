import { act } from '../act.js'
import type { EmittedEvent } from '../announcements.js'
import type { AgentContext } from '../context.js'
import { childUsageOf, isPaused } from '../delegation.js'
import type { AgentMachineEvent } from '../events.js'
import { addUsage } from '../usage.js'
import { spend } from './spending.js'

/** What a sub-agent spends is the run's own expense, as it happens. */
export const addChildUsage = act(spendForChild)

export function spendForChild(
  context: AgentContext,
  event: AgentMachineEvent,
  tell: (announcement: EmittedEvent) => void,
): Partial<AgentContext> | undefined {
  const added = childUsageOf(event)
  if (added === null || !('callId' in event)) return undefined
  const { callId } = event
  return {
    ...spend(context, added, tell, { callId }),
    calls: context.calls.map((call) =>
      call.id === callId
        ? { ...call, childUsage: call.childUsage ? addUsage(call.childUsage, added) : added }
        : call,
    ),
  }
}

/** A sub-agent rests. It has not ended, so its call stays open. */
export const noteChildRest = act((context, event) => {
  if (event.type !== 'CHILD_RESTS') return undefined
  return {
    calls: context.calls.map((call) => {
      if (call.id !== event.callId || call.result !== undefined) return call
      const { started: _started, ...resting } = call
      return { ...resting, needs: 'child' as const, questions: event.questions }
    }),
  }
})

/** The pause is over for the sub-agents, too. */
export const resumeChildren = act((context) => ({
  calls: context.calls.map((call) => (isPaused(call) ? { ...call, needs: 'nobody' as const } : call)),
}))
