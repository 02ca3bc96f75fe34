import fc from 'fast-check'
import { chatFormat } from '../../../src/core/models/openai/chat-wire.js'
import { createResponsesFormat } from '../../../src/core/models/openai/responses-fold.js'
import { normalizeResponse } from '../../../src/core/models/normalize-response.js'
import { createPartFold } from '../../../src/ai-sdk/part-fold.js'
import type { ModelResponse } from '../../../machines/agent/model-response.js'
import { sampled } from '../../support/extent.js'

interface Call {
  id: string
  name: string
  text: string
}
/** An entry of `delta.tool_calls`. */
type Entry = Record<string, unknown>

const entry = (index: number | null, id: string, name: string, text: string): Entry => ({
  ...(index !== null && { index }),
  ...(id !== '' && { id }),
  function: { ...(name !== '' && { name }), arguments: text },
})

const inPieces = (text: string, size: number): string[] =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))

/** The odd encodings that servers use for one call. `n` is its index. */
const ways: Record<string, (call: Call, n: number, size: number) => Entry[]> = {
  'in pieces': ({ id, name, text }, n, size) => [
    entry(n, id, name, ''),
    ...inPieces(text, size).map((piece) => entry(n, '', '', piece)),
  ],
  'begun twice at one index': ({ id, name, text }, n, size) => [
    entry(n, `${id}-first`, name, ''),
    entry(n, id, name, ''),
    ...inPieces(text, size).map((piece) => entry(n, '', '', piece)),
  ],
  'begun twice, first with a placeholder': ({ id, name, text }, n, size) => [
    entry(n, `${id}-first`, name, '{}'),
    entry(n, id, name, ''),
    ...inPieces(text, size).map((piece) => entry(n, '', '', piece)),
  ],
  'begun again at its end': ({ id, name, text }, n) => [
    entry(n, id, name, text),
    entry(n, `${id}-last`, name, ''),
  ],
  'begun at another index': ({ id, name, text }, n) => [
    entry(n + 100, `${id}-first`, name, ''),
    entry(n, id, name, text),
  ],
  'with a new id in each piece': ({ id, name, text }, n, size) => [
    entry(n, `${id}-first`, name, ''),
    ...inPieces(text, size).map((piece, i) => entry(n, i === 0 ? id : `${id}-${i}`, name, piece)),
  ],
  'with id and name in each piece': ({ id, name, text }, n, size) =>
    inPieces(text, size).map((piece) => entry(n, id, name, piece)),
  'whole again at its end': ({ id, name, text }, n, size) => [
    entry(n, id, name, ''),
    ...inPieces(text, size).map((piece) => entry(n, '', '', piece)),
    entry(n, id, name, text),
  ],
  'whole again, written anew': ({ id, name, text }, n, size) => [
    ...inPieces(text, size).map((piece, i) => entry(n, id, i === 0 ? name : '', piece)),
    entry(n, '', '', JSON.stringify(JSON.parse(text), null, 1)),
  ],
  'whole with another id': ({ id, name, text }, n) => [
    entry(n, id, name, text),
    entry(n, `${id}-last`, name, text),
  ],
  'all so far in each piece': ({ id, name, text }, n, size) =>
    inPieces(text, size).map((_, i) => entry(n, id, name, text.slice(0, (i + 1) * size))),
  'by its id alone': ({ id, name, text }, _n, size) => [
    entry(null, id, name, ''),
    ...inPieces(text, size).map((piece) => entry(null, id, '', piece)),
  ],
}

const argument = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.integer(),
  fc.record({ a: fc.string({ maxLength: 4 }) }),
  fc.array(fc.constantFrom('}', '{"b":1}', '"', '\\'), { maxLength: 2 }),
)
const call = fc.record({
  name: fc.constantFrom('pay', 'delete'),
  text: fc.record({ x: argument }).map((value) => JSON.stringify(value)),
  way: fc.constantFrom(...Object.keys(ways)),
  size: fc.integer({ min: 1, max: 12 }),
})

const written = (response: ModelResponse) =>
  normalizeResponse(response).toolCalls.map(({ function: { name, arguments: text } }) => [
    name,
    JSON.parse(text) as unknown,
  ])

test('calls run once with the arguments of the model, in any format of a server', () => {
  fc.assert(
    fc.property(fc.array(call, { minLength: 1, maxLength: 3 }), (calls) => {
      const fold = chatFormat.createFold()
      for (const [n, { way, size, ...one }] of calls.entries())
        for (const sent of ways[way]?.({ id: `c${n}`, ...one }, n, size) ?? [])
          fold.push({ choices: [{ index: 0, delta: { tool_calls: [sent] } }] })
      expect(written(fold.getResponse(true))).toEqual(
        calls.map(({ name, text }) => [name, JSON.parse(text) as unknown]),
      )
    }),
    { numRuns: sampled(2000) },
  )
})

describe('a call that is announced and never written does not run next to another of its name', () => {
  const expected = [['delete', { path: 'tmp' }]]
  const written1 = { id: 'b', type: 'function', function: { name: 'delete', arguments: '{"path":"tmp"}' } }

  it('in a whole chat completion', () => {
    const fold = chatFormat.createFold()
    const begun = { id: 'a', type: 'function', function: { name: 'delete', arguments: '' } }
    fold.push({ choices: [{ message: { role: 'assistant', tool_calls: [begun, written1] } }] }, true)
    expect(written(fold.getResponse(true))).toEqual(expected)
  })

  it('in a stream of responses', () => {
    const fold = createResponsesFormat('here').createFold()
    const item = (id: string, text: string) => ({
      type: 'function_call',
      id: `fc_${id}`,
      call_id: id,
      name: 'delete',
      arguments: text,
    })
    fold.push({ type: 'response.output_item.added', output_index: 0, item: item('a', '') })
    fold.push({ type: 'response.output_item.added', output_index: 1, item: item('b', '') })
    fold.push({ type: 'response.output_item.done', output_index: 1, item: item('b', '{"path":"tmp"}') })
    fold.push({
      type: 'response.completed',
      response: { object: 'response', status: 'completed', output: [] },
    })
    expect(written(fold.getResponse(true))).toEqual(expected)
  })

  it('in a stream of the AI SDK', () => {
    const fold = createPartFold('there')
    fold.push({ type: 'tool-input-start', id: 'a', toolName: 'delete' })
    fold.push({ type: 'tool-input-start', id: 'b', toolName: 'delete' })
    fold.push({ type: 'tool-input-delta', id: 'b', delta: '{"path":"tmp"}' })
    fold.push({ type: 'tool-call', toolCallId: 'b', toolName: 'delete', input: '{"path":"tmp"}' })
    fold.finish({ finishReason: 'tool-calls' })
    expect(written(fold.getResponse())).toEqual(expected)
  })

  it('in the answer of a custom provider, which also sends a call twice', () => {
    const toolCalls = [{ id: 'a', function: { name: 'delete' } }, written1, written1]
    expect(written({ toolCalls } as unknown as ModelResponse)).toEqual(expected)
  })
})

test('calls without arguments run as often as they were written', () => {
  const fold = chatFormat.createFold()
  for (const index of [0, 1])
    fold.push({ choices: [{ delta: { tool_calls: [entry(index, `c${index}`, 'roll', '')] } }] })
  expect(written(fold.getResponse(true))).toEqual([
    ['roll', {}],
    ['roll', {}],
  ])
})
