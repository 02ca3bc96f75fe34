/** The step that is under way, or comes next: unique within a session's transcript. */
export function getStepId(context: { runId: string; steps: number; numbered: number }): string {
  return `${context.runId}.${context.numbered}.${context.steps + 1}`
}

/** Which step of its run has this id; null where it has none of ours. */
export function parseStepNumber(stepId: string): number | null {
  const [, number] = /\.(\d+)$/.exec(stepId) ?? []
  return number === undefined ? null : Number(number)
}

/** Messages of a session are counted from one. */
export function formatMessageId(number: number): string {
  return `m${number}`
}

/** The message that a step of this id becomes, when it becomes one: known while it is still being written. */
export function getMessageIdOfStep(stepId: string): string {
  return formatMessageId(Number(stepId.split('.').at(-2)) + 1)
}

/** A message's number; null for one that came with an id of its own. */
export function parseMessageNumber(id: string): number | null {
  const [, number] = /^m(\d+)$/.exec(id) ?? []
  return number === undefined ? null : Number(number)
}
