import type { Message } from '../../machines/agent/messages.js'
import { findHistoryProblem } from '../../src/testing/index.js'

/** `u` is a user message, `a[1,2]` an assistant message with calls 1 and 2, `t1` the result of call 1. */
function transcript(text: string): Message[] {
  return text.split(' ').map((word, i) => {
    const base = { id: `m${i}`, createdAt: 0, content: '' }
    const [, call = ''] = /^t(\w+)$/.exec(word) ?? []
    if (call !== '') return { ...base, role: 'tool', tool_call_id: call }
    if (word === 'u') return { ...base, role: 'user' }
    const calls = word.slice(2, -1).split(',').filter(Boolean)
    const tool_calls = calls.map((id) => ({
      id,
      type: 'function' as const,
      function: { name: 'f', arguments: '' },
    }))
    return { ...base, role: 'assistant', ...(calls.length > 0 && { tool_calls }) }
  })
}

test.each([
  ['u a[]', []],
  ['u a[1,2] t1 t2 a[]', []],
  ['u a[1] t1 a[1] t1', []],
  ['u a[1,2] t1', ['2']],
  ['u a[1,2,3] t1 t3', ['2']],
  ['u a[1,2]', ['1', '2']],
])('%s with %j open is a valid history', (text, open) => {
  expect(findHistoryProblem(transcript(text), open)).toBeNull()
})

test.each([
  ['u a[1,2] t1', [], "call '2' has no result"],
  ['u a[1,2] t2 t1', [], "the result of '2' has no call or is out of order"],
  ['u a[1] t1 t1', [], "the result of '1' has no call"],
  ['u t1', [], "the result of '1' has no call"],
  ['u a[1] u t1', [], "call '1' has no result before it"],
  ['u a[1] u a[2] t2', ['1'], "call '1' has no result before it"],
  ['u a[1,2] t3', ['1', '2'], "the result of '3' has no call"],
])('%s with %j open is not: %s', (text, open, problem) => {
  expect(findHistoryProblem(transcript(text), open)).toContain(problem)
})

test('two messages with one id are not a valid history', () => {
  const [message] = transcript('u')
  expect(findHistoryProblem([message, message] as Message[])).toBe(
    'several messages have the same id: m0, m0',
  )
})
