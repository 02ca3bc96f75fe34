import { act } from '../act.js'
import { timeOf } from '../events.js'
import { heed } from './heeding.js'

/** What the user's own guards have answered. */
export const heedUserGuards = act((context, event, tell) => {
  if (event.type !== 'xstate.done.actor.callGuards' && event.type !== 'xstate.done.actor.resultGuards')
    return undefined
  const { states, findings, warnings } = event.output
  for (const message of warnings) tell({ type: 'warning', code: 'guard_failed', message })
  const said = findings.map(({ guard: userGuard, callIds, ...finding }) => ({
    ...finding,
    guard: 'user_guard' as const,
    userGuard,
    refuses: ({ id }: { id: string }) => callIds === null || callIds.includes(id),
  }))
  return {
    guardrails: { ...context.guardrails, user: { ...context.guardrails.user, ...states } },
    ...heed(context, said, timeOf(event), tell),
  }
})
