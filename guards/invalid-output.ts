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
