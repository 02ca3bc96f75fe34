import type { WireMessage } from './chat-request.js'

/**
 * The first problem of a history as a sentence, or null. Providers require exactly one result for each tool call, right after
 * the message with the calls and in their order; no result without a call; no empty list of calls; and content in every
 * message except an assistant's with calls.
 */
export function findHistoryProblem(messages: readonly WireMessage[]): string | null {
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]
    if (message === undefined) break
    const { role, tool_calls: calls } = message
    const here = `messages[${i}]`
    if (role === 'tool')
      return `${here} is a result without a call right before it (${message.tool_call_id}).`
    if (role !== 'assistant' && calls) return `${here} has the role ${role} and tool calls.`
    if (calls?.length === 0) return `${here} has an empty list of tool calls.`
    if (!calls && message.content == null && message.refusal == null) return `${here} has no content.`
    const ids = new Set<string>()
    for (const { id } of calls ?? []) {
      if (ids.has(id)) return `${here} has two tool calls with the id ${id}.`
      ids.add(id)
      const result = messages[++i]
      if (result?.role !== 'tool') return `${here} calls ${id}, which has no result right after it.`
      const there = `messages[${i}]`
      if (result.tool_call_id !== id) {
        return `${there} should be the result of ${id}, the next call of ${here}, but is that of ${result.tool_call_id}.`
      }
      if (result.content == null) return `${there} has no content.`
    }
  }
  return null
}
