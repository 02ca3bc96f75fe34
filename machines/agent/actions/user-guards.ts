import { toAction } from '../update-action.js'
import { getEventTime } from '../machine-events.js'
import { applyFindings } from './apply-findings.js'

/** Applies the findings of the user's own guards. */
export const applyUserGuards = toAction((context, event, emit) => {
  if (event.type !== 'xstate.done.actor.callGuards' && event.type !== 'xstate.done.actor.resultGuards')
    return undefined
  const { states, findings, warnings } = event.output
  for (const message of warnings) emit({ type: 'warning', code: 'guard_failed', message })
  const said = findings.map(({ guard: userGuard, callIds, ...finding }) => ({
    ...finding,
    guard: 'user_guard' as const,
    userGuard,
    refuses: ({ id }: { id: string }) => callIds === null || callIds.includes(id),
  }))
  return {
    guardrails: { ...context.guardrails, user: { ...context.guardrails.user, ...states } },
    ...applyFindings(context, said, getEventTime(event), emit),
  }
})
