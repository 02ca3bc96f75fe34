/**
 * Whether an answer that was cut off at the output limit is continued, or taken as it is.
 * @param used continuations since the last user message
 * @param allowed `guardrails.maxTokensRecoveries`; 0 is off
 */
export function recoverTruncation(used: number, allowed: number): 'continue' | 'give_up' {
  return used < allowed ? 'continue' : 'give_up'
}

/** What the model reads when its text was cut. */
export const continueText =
  'Your answer was cut off at the output limit. Continue exactly where it stopped, without repeating any of it.'

/** What it reads when the text is an object that has to fit a schema: half of one cannot be continued. */
export const restartText =
  'Your answer was cut off at the output limit. Give the whole answer again from its beginning, and make it shorter.'

/** What the model reads as the result of each call of a response that was cut. */
export const truncatedCall =
  'Not executed: the response was cut off at the output limit, so the arguments may be incomplete.'

/** What the model reads after such results. */
export const continueCalls =
  'Your response was cut off at the output limit, and none of its calls was executed. ' +
  'Make them again with shorter arguments, or fewer of them at a time.'
