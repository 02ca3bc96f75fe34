import fc from 'fast-check'
import { AnswerReader } from '../../../src/core/models/openai/answer-reader.js'
import { chatFormat } from '../../../src/core/models/openai/chat-wire.js'

const toEvent = (delta: object): string => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`
const text = (content: string): string => toEvent({ content })
const thought = (reasoning: string): string => toEvent({ reasoning })
const call = (name: string): string =>
  toEvent({ tool_calls: [{ index: 0, id: 'c1', function: { name, arguments: '' } }] })

/** The events of an answer that arrives in these pieces. */
function read(...pieces: string[]) {
  const received: unknown[] = []
  const controller = new AbortController()
  const reader = new AnswerReader('', {
    format: chatFormat,
    signal: controller.signal,
    onDelta: (...delta) => received.push(delta),
    onToolCallDelta: ({ name }) => received.push(name),
    onActivity: () => undefined,
  })
  try {
    for (const piece of pieces) reader.push(piece)
    reader.finish()
  } catch (error) {
    received.push((error as Error).message)
  }
  return received
}

test('texts of one chunk are emitted together, and texts of two chunks separately', () => {
  expect(read(text('a') + text('b'), text('c') + 'data: [DONE]\n\n')).toEqual([
    ['ab', ''],
    ['c', ''],
  ])
})

test('reasoning after a text is emitted after it', () => {
  expect(read(thought('r') + text('a') + thought('s') + text('b'))).toEqual([
    ['a', 'r'],
    ['b', 's'],
  ])
})

test('a call is emitted after the text before it, and before the text after it', () => {
  expect(read(text('a') + call('look') + text('b'))).toEqual([['a', ''], 'look', ['b', '']])
})

test('the text before an error is emitted before the error is thrown', () => {
  const broken = `data: ${JSON.stringify({ error: { message: 'Overloaded.' } })}\n\n`
  expect(read(text('a') + broken)).toEqual([['a', ''], expect.stringContaining('Overloaded.')])
})

test('the same text and reasoning are emitted for any split of an answer', () => {
  const word = fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom('a', 'b', ' ') })
  const delta = fc.oneof(word.map(text), word.map(thought))
  fc.assert(
    fc.property(
      fc.array(delta, { maxLength: 8 }),
      fc.array(fc.nat(400), { maxLength: 6 }),
      (events, cuts) => {
        const whole = events.join('')
        const at = [0, ...cuts.filter((cut) => cut < whole.length).sort((a, b) => a - b), whole.length]
        const pieces = at.slice(1).map((end, i) => whole.slice(at[i], end))
        const join = (received: unknown[], which: 0 | 1) =>
          (received as [string, string][]).map((one) => one[which]).join('')
        for (const which of [0, 1] as const)
          expect(join(read(...pieces), which)).toBe(join(read(...events), which))
      },
    ),
  )
})
