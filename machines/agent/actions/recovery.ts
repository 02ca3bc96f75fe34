import { repromptText } from '../../../guards/empty-answer.js'
import { evidence } from '../../../guards/lib/evidence.js'
import { repairText } from '../../../guards/invalid-output.js'
import { continueCalls, continueText, restartText, truncatedCall } from '../../../guards/truncation.js'
import { act } from '../act.js'
import { timeOf } from '../events.js'
import { closeOpenCalls, withInternalMessage, withResults } from './transcript.js'
import { tellUntold } from './untold.js'

/** A cut answer is continued; a cut call is closed, which tells the model as much. */
export const continueAnswer = act((context, event, tell) => {
  const now = timeOf(event)
  const recoveries = context.recoveries + 1
  const of = `${recoveries} of ${context.config.guardrails.maxTokensRecoveries}`
  tell({
    type: 'guardrail',
    guard: 'max_tokens',
    action: 'recover',
    evidence: context.response === 'truncatedCalls' ? 'a tool call was cut off' : 'the answer was cut off',
    message: `The answer hit the output limit; asking the model to go on (${of}).`,
  })
  if (context.response === 'truncatedCalls') {
    const closing = closeOpenCalls(context, truncatedCall, now, tell)
    const { calls, untold } = tellUntold({ ...context, calls: closing }, tell)
    const closed = { ...context, messages: withResults(context, calls) }
    return {
      recoveries,
      untold,
      calls: [],
      ...withInternalMessage(closed, continueCalls, 'max_tokens_recovery', now),
    }
  }
  const asked = context.features.structuredOutput ? restartText : continueText
  return { recoveries, ...withInternalMessage(context, asked, 'max_tokens_recovery', now) }
})

/** An answer that does not fit the output schema is asked for again, with what is wrong with it. */
export const askForRepair = act((context, event, tell) => {
  const outputRepairs = context.outputRepairs + 1
  const problem = context.outputProblem ?? ''
  const of = `${outputRepairs} of ${context.config.completion.maxOutputRepairs}`
  tell({
    type: 'guardrail',
    guard: 'invalid_output',
    action: 'recover',
    evidence: evidence(problem),
    message: `The answer does not fit the output schema; asking for it again (${of}).`,
  })
  return {
    outputRepairs,
    ...withInternalMessage(context, repairText(problem), 'output_repair', timeOf(event)),
  }
})

/** After a failed tool, silence usually means that the model does not know how to go on: it is told. */
export const reprompt = act((context, event, tell) => {
  const reprompts = context.reprompts + 1
  tell({
    type: 'guardrail',
    guard: 'empty_response',
    action: 'recover',
    evidence: 'an empty answer after a failed tool call',
    message: `The model said nothing after a failed tool call; asking again (${reprompts}).`,
  })
  return { reprompts, ...withInternalMessage(context, repromptText, 'empty_response', timeOf(event)) }
})

export const askAgain = act((context, _event, tell) => {
  tell({
    type: 'guardrail',
    guard: 'empty_response',
    action: 'recover',
    evidence: 'an answer with neither text nor calls',
    message: 'The model said nothing; making the same request again.',
  })
  return { emptyRetries: context.emptyRetries + 1 }
})
