import { resetGuard } from '../../../guards/state.js'
import { toAction } from '../update-action.js'
import { getEventTime } from '../machine-events.js'
import type { Reason } from '../run-result.js'
import { closeOpenCalls, withInternalMessage } from './update-transcript.js'

/** A guard stops the run: closes the calls that did not run, and emits why. */
export const announceHalt = toAction((context, event, emit) => {
  const { verdict } = context
  if (verdict === null) return undefined
  const { guard, rule, evidence, message, lastWords } = verdict
  emit({ type: 'guardrail', guard, action: 'halt', ...(rule !== undefined && { rule }), evidence, message })
  return {
    reason: guard,
    ...(lastWords !== undefined && { nudges: [lastWords] }),
    error: { code: guard, message, recoverable: verdict.onHalt === 'pause' },
    calls: closeOpenCalls(
      context,
      `Not executed: a guardrail stopped the run (${guard}).`,
      getEventTime(event),
      emit,
    ),
  }
})

/**
 * Resuming after a halt resets that guard alone. Some providers refuse a request that ends with an answer, so an
 * internal message asks the model to continue.
 */
export const forgetHalt = toAction((context, event) => {
  const { verdict } = context
  if (verdict === null) return { error: null, pausing: false }
  const asksOn = event.type === 'RESUME' && context.messages.at(-1)?.role === 'assistant'
  return {
    verdict: null,
    error: null,
    pausing: false,
    nudges: [],
    guardrails: resetGuard(context.guardrails, verdict.guard, verdict.userGuard),
    ...(asksOn &&
      withInternalMessage(context, formatResumeMessage(verdict.guard), 'resumed', getEventTime(event))),
  }
})

function formatResumeMessage(guard: Reason): string {
  const why =
    guard === 'terminal_delegation'
      ? 'a sub-agent could not work. It may be able to now.'
      : 'it brought nothing new: try another way.'
  return `Go on with the task. What you did before was stopped because ${why}`
}
