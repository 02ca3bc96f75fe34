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

/**
 * Whether an answer that does not fit the output schema is asked for again.
 * @param used repairs since the last user message
 * @param allowed `completion.maxOutputRepairs`; 0 is off
 */
export function repairOutput(used: number, allowed: number): 'ask_again' | 'give_up' {
  return used < allowed ? 'ask_again' : 'give_up'
}

/** What the model reads. `problem` names each part of the answer that does not fit. */
export function formatRepairPrompt(problem: string): string {
  return `${problem}\n\nGive the whole answer again, corrected: one JSON object, and nothing around it.`
}

/** What the user reads when no repair is left. */
export function formatInvalidOutputMessage(problem: string, allowed: number): string {
  return `${problem}\n\nThe output is kept as it came. Simplify the schema, raise completion.maxOutputRepairs (${allowed}), or try another model.`
}

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
