import { dropped as forgetDropped } from '../../../guards/state.js'
import { act } from '../act.js'
import { droppedBy } from '../fit.js'
import { spend } from './spending.js'

/** The transcript as the next requests show it; a summary that was made for it is paid for like any other answer. */
export const applyFit = act((context, event, tell) => {
  if (event.type !== 'xstate.done.actor.fitting') return undefined
  const { fit, strategy, before, after, usage, warning } = event.output
  const dropped = droppedBy(fit)
  if (warning !== null) tell({ type: 'warning', code: 'context_strategy', message: warning })
  if (fit !== null && dropped !== droppedBy(context.fit)) {
    tell({ type: 'context_fitted', strategy, before, after, dropped })
  }
  return {
    fit,
    ...(fit !== null && { guardrails: forgetDropped(context.guardrails, fit.head, fit.from) }),
    ...spend(context, usage, tell, { summary: true }),
  }
})
