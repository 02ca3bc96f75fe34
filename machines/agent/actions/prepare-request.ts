import { omitUndefined } from '../../../guards/lib/json.js'
import { isAtStepCap } from '../../../guards/call-caps.js'
import { forgetDroppedMessages, startTurn } from '../../../guards/state.js'
import { toAction, toActionOn } from '../update-action.js'
import { freshCounters, getEventTime } from '../context.js'
import { countDropped } from '../fit.js'
import { getLastUserText, getStepId } from '../messages.js'
import { addRequester } from '../principal.js'
import type { StepSetting } from '../step-plan.js'
import { spendUsage } from './spend-usage.js'
import { withUserMessages } from './update-transcript.js'

export const takeInput = toAction((context, event, emit) => ({
  ...withUserMessages(context, context.inbox, getEventTime(event), emit),
  guardrails: startTurn(context.guardrails),
  inbox: [],
  retrieved: null,
}))

export const takeReply = toActionOn('REPLY', ({ requesters }, { messages, by }) => ({
  ...freshCounters,
  inbox: Array.isArray(messages) ? messages : [],
  response: null,
  verdict: null,
  error: null,
  pausing: false,
  ...addRequester(requesters, by),
}))

export const queueSteering = toActionOn('STEER', ({ steering, requesters }, { text, by }) =>
  typeof text === 'string' ? { steering: [...steering, text], ...addRequester(requesters, by) } : undefined,
)

/** Resets no counters. At the step cap no screening follows, so unscreened steering is not delivered. */
export const deliverSteering = toAction((context, event, emit) => {
  const { steering, steps, config, features } = context
  if (steering.length === 0 || (features.inputShields && isAtStepCap(steps, config.limits.maxSteps)))
    return undefined
  const drafts = context.steering.map((content) => ({ content, data: { reason: 'steering' } }))
  // A message prevents a run that was about to sleep from sleeping.
  const awake = { steering: [], reason: null, wakeAt: null }
  return { ...withUserMessages(context, drafts, getEventTime(event), emit), ...awake }
})

export const notePause = toAction((context) => (context.pausing ? undefined : { pausing: true }))

export const withdrawPause = toAction(() => ({ pausing: false }))

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
