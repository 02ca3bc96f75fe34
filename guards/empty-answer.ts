/** Answers with neither text nor calls. */
export interface EmptyAnswerConfig {
  /** Re-prompts after a failed tool. */
  reprompts: number
  /** Plain retries otherwise. */
  retries: number
}

export interface EmptyAnswerFacts {
  /** Whether a call of the last batch failed. */
  afterFailure: boolean
  /** Re-prompts and retries used since the last user message. */
  reprompts: number
  retries: number
}

/**
 * What follows an answer with neither text nor calls: a re-prompt after a failed tool, where models fall silent, a
 * plain retry otherwise, then ERROR/empty_response. With the guard off it is accepted and ends the turn.
 */
export function recoverEmptyAnswer(
  { afterFailure, reprompts, retries }: EmptyAnswerFacts,
  config: EmptyAnswerConfig | null,
): 'reprompt' | 'retry' | 'give_up' | 'accept' {
  if (!config) return 'accept'
  if (afterFailure) return reprompts < config.reprompts ? 'reprompt' : 'give_up'
  return retries < config.retries ? 'retry' : 'give_up'
}

/** What the model reads when it fell silent after a failed tool. */
export const repromptText =
  'A tool call failed and you gave no answer. Tell the user what failed and what you can do without it, ' +
  'or try another way.'
