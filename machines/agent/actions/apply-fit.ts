import { forgetDroppedMessages } from '../../../guards/state.js'
import { toAction } from '../update-action.js'
import { countDropped } from '../fit.js'
import { spendUsage } from './spend-usage.js'

/** The transcript as the next requests show it; a summary that was made for it is paid for like any other answer. */
export const applyFit = toAction((context, event, emit) => {
  if (event.type !== 'xstate.done.actor.fitting') return undefined
  const { fit, strategy, before, after, usage, warning } = event.output
  const dropped = countDropped(fit)
  if (warning !== null) emit({ type: 'warning', code: 'context_strategy', message: warning })
  if (fit !== null && dropped !== countDropped(context.fit)) {
    emit({ type: 'context_fitted', strategy, before, after, dropped })
  }
  return {
    fit,
    ...(fit !== null && { guardrails: forgetDroppedMessages(context.guardrails, fit.head, fit.from) }),
    ...spendUsage(context, usage, emit, { summary: true }),
  }
})
