import { toAction } from '../update-action.js'

/** Keeps what was decided about the next step, for each attempt at it. */
export const notePlan = toAction((_context, event) =>
  event.type === 'xstate.done.actor.plan' ? { plan: event.output } : undefined,
)
