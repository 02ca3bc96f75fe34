import type { Message } from '../../machines/agent/messages.js'

/**
 * What every provider checks: each call of an assistant message has exactly one result right after it, in call order,
 * and no result stands alone. `open` are the calls that a waiting state exposes.
 */
export function historyProblem(messages: readonly Message[], open: readonly string[] = []): string | null {
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]
    if (message?.role === 'tool') return `message ${i}: a result without a call (${message.tool_call_id})`
    if (message?.role !== 'assistant' || !message.tool_calls) continue
    const last = lastCallAt(messages) === i
    for (const call of message.tool_calls) {
      const next = messages[i + 1]
      if (next?.role === 'tool' && next.tool_call_id === call.id) i++
      else if (!(last && open.includes(call.id)))
        return `message ${i}: call ${call.id} has no result right after it`
    }
  }
  const ids = messages.map(({ id }) => id)
  return new Set(ids).size === ids.length ? null : `two messages have one id: ${ids.join(', ')}`
}

function lastCallAt(messages: readonly Message[]): number {
  return messages.findLastIndex((message) => message.role === 'assistant' && message.tool_calls !== undefined)
}
