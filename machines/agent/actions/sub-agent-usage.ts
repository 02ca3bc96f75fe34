import { toAction } from '../update-action.js'
import type { EmittedEvent } from '../announcements.js'
import type { AgentContext } from '../context.js'
import { findChildUsage, isChildPaused } from '../sub-agent-questions.js'
import type { AgentMachineEvent } from '../machine-events.js'
import { addUsage } from '../usage.js'
import { spendUsage } from './spend-usage.js'

/** Adds the usage of a sub-agent to the run's own, as it happens. */
export const addChildUsage = toAction(spendForChild)

export function spendForChild(
  context: AgentContext,
  event: AgentMachineEvent,
  emit: (announcement: EmittedEvent) => void,
): Partial<AgentContext> | undefined {
  const added = findChildUsage(event)
  if (added === null || !('callId' in event)) return undefined
  const { callId } = event
  return {
    ...spendUsage(context, added, emit, { callId }),
    calls: context.calls.map((call) =>
      call.id === callId
        ? { ...call, childUsage: call.childUsage ? addUsage(call.childUsage, added) : added }
        : call,
    ),
  }
}

/** A sub-agent rests, or a tool asks. It has not ended, so its call stays open. */
export const noteChildRest = toAction((context, event) => {
  if (event.type !== 'CHILD_RESTS') return undefined
  return {
    calls: context.calls.map((call) => {
      if (call.id !== event.callId || call.result !== undefined) return call
      const { started: _started, wakeAt: _before, memo: _last, ...resting } = call
      const { questions, wakeAt, memo } = event
      const kept = { ...(wakeAt !== undefined && { wakeAt }), ...(memo !== undefined && { memo }) }
      return { ...resting, needs: 'child' as const, questions, ...kept }
    }),
  }
})

/** Ends the pause of the sub-agents, too. */
export const resumeChildren = toAction((context) => ({
  calls: context.calls.map((call) => (isChildPaused(call) ? { ...call, needs: 'nobody' as const } : call)),
}))
