import { newTurn } from '../../../guards/state.js'
import { isAtStepCap } from '../../../guards/step-cap.js'
import { act } from '../act.js'
import { freshCounters } from '../context.js'
import { timeOf } from '../events.js'
import { withUserMessages } from './transcript.js'

/** A new user message starts a turn: it joins the transcript, and what is the turn's starts anew. */
export const takeInput = act((context, event, tell) => ({
  ...withUserMessages(context, context.inbox, timeOf(event), tell),
  guardrails: newTurn(context.guardrails),
  inbox: [],
  retrieved: null,
}))

export const takeReply = act((_context, event) =>
  event.type === 'REPLY'
    ? {
        ...freshCounters,
        inbox: Array.isArray(event.messages) ? event.messages : [],
        response: null,
        verdict: null,
        error: null,
        pausing: false,
      }
    : undefined,
)

export const queueSteering = act((context, event) =>
  event.type === 'STEER' && typeof event.text === 'string'
    ? { steering: [...context.steering, event.text] }
    : undefined,
)

/**
 * Steering is a user message that resets no counter. At the step cap only one last request can come, before which shields
 * do not look any more: so what they would have to see is not delivered.
 */
export const deliverSteering = act((context, event, tell) => {
  const { steering, steps, config, features } = context
  if (steering.length === 0 || (features.inputShields && isAtStepCap(steps, config.limits.maxSteps)))
    return undefined
  const drafts = context.steering.map((content) => ({ content, data: { reason: 'steering' } }))
  return { ...withUserMessages(context, drafts, timeOf(event), tell), steering: [], reason: null }
})

export const notePause = act((context) => (context.pausing ? undefined : { pausing: true }))

/** The run goes on as if no pause had been asked for. */
export const withdrawPause = act(() => ({ pausing: false }))
