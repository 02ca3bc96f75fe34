import { startTurn } from '../../../guards/state.js'
import { isAtStepCap } from '../../../guards/call-caps.js'
import { toAction, toActionOn } from '../update-action.js'
import { freshCounters, getEventTime } from '../context.js'
import { addRequester } from '../principal.js'
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
