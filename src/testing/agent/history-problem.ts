import { expectArgument, listRule } from '../../core/base/expect-argument.js'
import type { Message } from '../../../machines/agent/messages.js'

/**
 * What every provider checks: each call of an assistant message has exactly one result right after it, in call order,
 * and no result stands alone. `open` are the calls of the last batch that may still wait. Null when all is well.
 *
 * @example expect(findHistoryProblem((await agent.run('Go.').result).messages)).toBeNull()
 */
export function findHistoryProblem(
  messages: readonly Message[],
  open: readonly string[] = [],
): string | null {
  expectArgument('findHistoryProblem(messages)', messages, listRule('a list of messages'))
  const last = messages.findLastIndex((message) => message.role === 'assistant' && message.tool_calls)
  let expected: string[] = []
  for (const [i, message] of messages.entries()) {
    if (message.role === 'tool') {
      // Calls that wait leave a gap; what comes after them is still in call order.
      while (expected.length > 0 && expected[0] !== message.tool_call_id && mayWait(expected[0], i))
        expected.shift()
      const next = expected.shift()
      if (next !== message.tool_call_id)
        return `message ${i}: a result of '${message.tool_call_id}' without its call, or out of order`
      continue
    }
    const missing = expected.find((id) => !mayWait(id, i))
    if (missing !== undefined) return `message ${i}: call '${missing}' has no result before it`
    expected = message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : []
  }
  const missing = expected.find((id) => !open.includes(id))
  if (missing !== undefined) return `call '${missing}' has no result`
  const ids = messages.map(({ id }) => id)
  return new Set(ids).size === ids.length ? null : `two messages have one id: ${ids.join(', ')}`

  function mayWait(id: string | undefined, at: number): boolean {
    return at > last && id !== undefined && open.includes(id)
  }
}
