import type { ModelResponse } from '../../../machines/agent/model-response.js'

/**
 * A response that calls the final tool, as the answer that it gives: the arguments of its first such call are the text.
 * What the model said beside it becomes its reasoning, and its other calls are not made, whichever they are: the model
 * has its answer. Any other response is returned as it is.
 */
export function readFinalAnswer(response: ModelResponse, finalTool: string | undefined): ModelResponse {
  const call = response.toolCalls.find(({ function: { name } }) => name === finalTool)
  if (call === undefined) return response
  const { text, reasoning } = response
  return {
    ...response,
    text: call.function.arguments,
    reasoning: [reasoning, text].filter(Boolean).join('\n\n'),
    toolCalls: [],
  }
}

/** What is told of calls that came with the final answer; null when there were none. */
export function describeDroppedCalls(response: ModelResponse, finalTool: string | undefined): string | null {
  const names = response.toolCalls.map(({ function: { name } }) => name)
  const answer = names.findIndex((name) => name === finalTool)
  const others = names.filter((_, index) => index !== answer)
  if (answer < 0 || others.length === 0) return null
  return `The model gave its final answer together with other calls, which are not made: ${others.join(', ')}.`
}
