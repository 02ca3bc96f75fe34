import {
  continueCalls,
  continueText,
  formatRepairPrompt,
  repromptText,
  restartText,
  truncatedCall,
} from '../../../guards/unusable-answer.js'
import { toEvidence } from '../../../guards/lib/words.js'
import type { Emit } from '../announcements.js'
import { toAction } from '../update-action.js'
import type { Reason } from '../run-result.js'
import { getEventTime } from '../context.js'
import { closeOpenCalls, emitAfterScreening, withInternalMessage, withResults } from './update-transcript.js'

function announceRecovery(emit: Emit, guard: Reason, evidence: string, message: string): void {
  emit({ type: 'guardrail', guard, action: 'recover', evidence, message })
}

export const continueAnswer = toAction((context, event, emit) => {
  const now = getEventTime(event)
  const recoveries = context.recoveries + 1
  const of = `${recoveries} of ${context.config.guardrails.maxTokensRecoveries}`
  const isCall = context.response === 'truncatedCalls'
  announceRecovery(
    emit,
    'max_tokens',
    isCall ? 'a tool call was cut off' : 'the answer was cut off',
    `The answer reached the output limit. Asking the model to continue (${of}).`,
  )
  if (isCall) {
    const closing = closeOpenCalls(context.calls, truncatedCall, now, emit)
    const { calls, unemittedStep } = emitAfterScreening({ ...context, calls: closing }, emit)
    const closed = { ...context, messages: withResults(context, calls) }
    return {
      recoveries,
      unemittedStep,
      calls: [],
      ...withInternalMessage(closed, continueCalls, 'max_tokens_recovery', now),
    }
  }
  const text = context.features.structuredOutput ? restartText : continueText
  return { recoveries, ...withInternalMessage(context, text, 'max_tokens_recovery', now) }
})

export const askForRepair = toAction((context, event, emit) => {
  const outputRepairs = context.outputRepairs + 1
  const problem = context.outputProblem ?? ''
  const of = `${outputRepairs} of ${context.config.completion.maxOutputRepairs}`
  const message = `The answer does not match the output schema. Requesting it again (${of}).`
  announceRecovery(emit, 'invalid_output', toEvidence(problem), message)
  return {
    outputRepairs,
    ...withInternalMessage(context, formatRepairPrompt(problem), 'output_repair', getEventTime(event)),
  }
})

/** The prompt explains how to continue, because the model is usually stuck after a failed call. */
export const reprompt = toAction((context, event, emit) => {
  const reprompts = context.reprompts + 1
  const message = `The model returned no answer after a failed tool call. Asking again (${reprompts}).`
  announceRecovery(emit, 'empty_response', 'an empty answer after a failed tool call', message)
  return { reprompts, ...withInternalMessage(context, repromptText, 'empty_response', getEventTime(event)) }
})

export const retryEmptyAnswer = toAction((context, _event, emit) => {
  const message = 'The model returned no answer. Repeating the request.'
  announceRecovery(emit, 'empty_response', 'an answer with neither text nor calls', message)
  return { emptyRetries: context.emptyRetries + 1 }
})
