import { omitUndefined } from '../../../guards/lib/json.js'
import { toActionOn } from '../update-action.js'
import { getLastUserText, getStepId } from '../messages.js'
import type { StepSetting } from '../step-plan.js'
import { forgetDroppedMessages } from '../../../guards/state.js'
import { countDropped } from '../fit.js'
import { spendUsage } from './spend-usage.js'

export const notePlan = toActionOn('xstate.done.actor.plan', (context, event, emit) => {
  const { step: _step, ...decided } = event.output
  const changes = Object.keys(decided) as StepSetting[]
  const { model, tools } = decided
  if (changes.length > 0)
    emit({ type: 'step_prepared', stepId: getStepId(context), changes, ...omitUndefined({ model, tools }) })
  return { plan: event.output }
})

/** Stores the retrieved snippets for this turn. They are added to requests but not to the transcript. */
export const noteRetrieved = toActionOn('xstate.done.actor.retrieval', (context, event, emit) => {
  const snippets = event.output
  emit({ type: 'memory', query: getLastUserText(context.messages), snippets })
  return { retrieved: snippets }
})

/** Loads deferred tools for the rest of the session. The stable order preserves the provider's prompt cache. */
export const loadTools = toActionOn('TOOLS_LOADED', (context, event, emit) => {
  const names = [...new Set(event.names)].filter((name) => !context.loaded.includes(name))
  if (names.length === 0) return undefined
  emit({ type: 'tools_loaded', callId: event.callId, names })
  return { loaded: [...context.loaded, ...names] }
})

export const applyFit = toActionOn('xstate.done.actor.fitting', (context, event, emit) => {
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
