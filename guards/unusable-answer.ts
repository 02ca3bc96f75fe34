/** Limits for answers with neither text nor calls. */
export interface EmptyAnswerConfig {
  /** Maximum re-prompts after a failed tool call. */
  reprompts: number
  /** Maximum plain retries after any other empty answer. */
  retries: number
}

export interface EmptyAnswerFacts {
  /** Whether a call in the last batch failed. */
  afterFailure: boolean
  /** Re-prompts since the last user message. */
  reprompts: number
  retries: number
}

/**
 * Decides how to react to an empty answer: re-prompt after a failed tool call, retry otherwise, and finally
 * ERROR/empty_response. If the guard is off, the answer ends the turn.
 */
export function recoverEmptyAnswer(
  { afterFailure, reprompts, retries }: EmptyAnswerFacts,
  config: EmptyAnswerConfig | null,
): 'reprompt' | 'retry' | 'give_up' | 'accept' {
  if (!config) return 'accept'
  if (afterFailure) return reprompts < config.reprompts ? 'reprompt' : 'give_up'
  return retries < config.retries ? 'retry' : 'give_up'
}

/** The prompt after a failed tool call and an empty answer. */
export const repromptText =
  'A tool call failed, and you did not answer. Tell the user what failed and what you can do without it, ' +
  'or try another way.'

/**
 * Whether to ask again after an answer that does not match the output schema.
 * @param used repairs since the last user message
 * @param allowed `completion.maxOutputRepairs`; 0 is off
 */
export function repairOutput(used: number, allowed: number): 'ask_again' | 'give_up' {
  return used < allowed ? 'ask_again' : 'give_up'
}

/** Formats the prompt for a repair. `problem` lists each part that does not match. */
export function formatRepairPrompt(problem: string): string {
  return `${problem}\n\nGive the whole corrected answer again, as one JSON object without any other text.`
}

/** Formats the message that users see when no repairs are left. */
export function formatInvalidOutputMessage(problem: string, allowed: number): string {
  return `${problem}\n\nThe output is unchanged. Simplify the schema, raise completion.maxOutputRepairs (${allowed}), or try another model.`
}

/**
 * Decides whether to continue a truncated answer or accept it.
 * @param used continuations since the last user message
 * @param allowed `guardrails.maxTokensRecoveries`; 0 is off
 */
export function recoverTruncation(used: number, allowed: number): 'continue' | 'give_up' {
  return used < allowed ? 'continue' : 'give_up'
}

/** The prompt after a truncated text. */
export const continueText =
  'Your answer was cut off at the output limit. Continue exactly where it stopped, without repeating any of it.'

/** The prompt after a truncated structured answer, because a partial object cannot be continued. */
export const restartText =
  'Your answer was cut off at the output limit. Give the whole answer again from the start, but shorter.'

/** The result of each call in a truncated response. */
export const truncatedCall =
  'Not executed: the response was cut off at the output limit, so the arguments may be incomplete.'

/** The prompt after the results of truncated calls. */
export const continueCalls =
  'Your response was cut off at the output limit, and none of its calls were executed. ' +
  'Make them again with shorter arguments, or fewer of them at a time.'
