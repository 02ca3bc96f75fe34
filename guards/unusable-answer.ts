/** Limits for answers with neither text nor calls. */
export interface EmptyAnswerConfig {
  /** Maximum re-prompts after a failed tool call. */
  reprompts: number
  /** Maximum plain retries after any other empty answer. */
  retries: number
}

/** The recoveries since the last user message. */
export interface EmptyAnswerFacts {
  afterFailure: boolean
  reprompts: number
  retries: number
}

/** Re-prompts after a failed tool call, otherwise retries. If the guard is off, the answer ends the turn. */
export function recoverEmptyAnswer(
  { afterFailure, reprompts, retries }: EmptyAnswerFacts,
  config: EmptyAnswerConfig | null,
): 'reprompt' | 'retry' | 'give_up' | 'accept' {
  if (!config) return 'accept'
  if (afterFailure) return reprompts < config.reprompts ? 'reprompt' : 'give_up'
  return retries < config.retries ? 'retry' : 'give_up'
}

export const repromptText =
  'A tool call failed, and you did not answer. Tell the user what failed and what you can do without it, ' +
  'or try another way.'

export function formatRepairPrompt(problem: string): string {
  return `${problem}\n\nGive the whole corrected answer again, as one JSON object without any other text.`
}

export function formatInvalidOutputMessage(problem: string, allowed: number): string {
  return `${problem}\n\nThe output is unchanged. Simplify the schema, raise completion.maxOutputRepairs (${allowed}), or try another model.`
}

export const continueText =
  'Your answer was cut off at the output limit. Continue exactly where it stopped, without repeating any of it.'

/** The prompt after a truncated structured answer, because a partial object cannot be continued. */
export const restartText =
  'Your answer was cut off at the output limit. Give the whole answer again from the start, but shorter.'

export const truncatedCall =
  'Not executed: the response was cut off at the output limit, so the arguments may be incomplete.'

export const continueCalls =
  'Your response was cut off at the output limit, and none of its calls were executed. ' +
  'Make them again with shorter arguments, or fewer of them at a time.'
