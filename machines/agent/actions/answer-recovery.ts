import {
  continueCalls,
  continueText,
  formatRepairPrompt,
  repromptText,
  restartText,
  truncatedCall,
} from '../../../guards/unusable-answer.js'
import { toEvidence } from '../../../guards/lib/evidence.js'
import { toAction } from '../update-action.js'
import { getEventTime } from '../machine-events.js'
import { closeOpenCalls, withInternalMessage, withResults } from './update-transcript.js'
import { emitAfterScreening } from './emit-after-screening.js'

export const continueAnswer = toAction((context, event, emit) => {
  const now = getEventTime(event)
  const recoveries = context.recoveries + 1
  const of = `${recoveries} of ${context.config.guardrails.maxTokensRecoveries}`
  emit({
    type: 'guardrail',
    guard: 'max_tokens',
    action: 'recover',
    evidence: context.response === 'truncatedCalls' ? 'a tool call was cut off' : 'the answer was cut off',
    message: `The answer reached the output limit. Asking the model to continue (${of}).`,
  })
  if (context.response === 'truncatedCalls') {
    const closing = closeOpenCalls(context, truncatedCall, now, emit)
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
  emit({
    type: 'guardrail',
    guard: 'invalid_output',
    action: 'recover',
    evidence: toEvidence(problem),
    message: `The answer does not match the output schema. Requesting it again (${of}).`,
  })
  return {
    outputRepairs,
    ...withInternalMessage(context, formatRepairPrompt(problem), 'output_repair', getEventTime(event)),
  }
})

/** The prompt explains how to continue, because the model is usually stuck after a failed call. */
export const reprompt = toAction((context, event, emit) => {
  const reprompts = context.reprompts + 1
  emit({
    type: 'guardrail',
    guard: 'empty_response',
    action: 'recover',
    evidence: 'an empty answer after a failed tool call',
    message: `The model returned no answer after a failed tool call. Asking again (${reprompts}).`,
  })
  return { reprompts, ...withInternalMessage(context, repromptText, 'empty_response', getEventTime(event)) }
})

export const retryEmptyAnswer = toAction((context, _event, emit) => {
  emit({
    type: 'guardrail',
    guard: 'empty_response',
    action: 'recover',
    evidence: 'an answer with neither text nor calls',
    message: 'The model returned no answer. Repeating the request.',
  })
  return { emptyRetries: context.emptyRetries + 1 }
})
