import * as fc from 'fast-check'
import type { ContentPart, Message, ToolCall } from '../../../machines/agent/messages.js'
import { reasoningForms } from '../../../src/core/models/openai/openai-options.js'
import { type ChatBodyOptions, createChatBodyBuilder } from '../../../src/core/models/openai/chat-wire.js'
import { createBodyEncoder } from '../../../src/core/models/openai/encode-body.js'
import type { ChatRequest } from '../../../src/rehearsal/index.js'
import { findStrictProblem } from '../../../src/rehearsal/request-problem.js'
import { sampled } from '../../support/extent.js'
import { unicodeText } from '../../support/unicode-text.js'

const encodeBody = createBodyEncoder()

/** Any text: words, the empty string, blanks, lone surrogates. */
const anyText = fc.oneof(
  unicodeText({ maxLength: 8 }),
  fc.string({ unit: fc.constantFrom('a', ' ', '\n', '\ud83d', '\ude00', '"', '\\'), maxLength: 8 }),
)
const anyName = fc.oneof(anyText, fc.constantFrom('look', 'a.b', '', 'n'.repeat(80)))
const anyArguments = fc.oneof(
  anyText,
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.constantFrom('', '[]', '42', 'null', '{"a":"\\ud83d"}', '{"\\ude00":1}', '{"a":"lor', '{"__proto__":1}'),
)
const anyId = fc.oneof(
  fc.string({ minLength: 1, maxLength: 60 }),
  anyText.filter((text) => text !== ''),
)
const anyPart: fc.Arbitrary<ContentPart> = fc.oneof(
  anyText.map((text) => ({ type: 'text' as const, text })),
  fc.constant({ type: 'image_url' as const, image_url: { url: 'https://example.com/a.png' } }),
)
const stamp = { id: 'm', createdAt: 0 }

const user = fc
  .oneof(anyText, fc.array(anyPart, { maxLength: 3 }))
  .map((content): Message[] => [{ ...stamp, role: 'user', content }])
const system = anyText.map((content): Message[] => [{ ...stamp, role: 'system', content }])
const answer = fc
  .record(
    { content: fc.option(anyText), reasoning: anyText, refusal: anyText },
    { requiredKeys: ['content'] },
  )
  .map((fields): Message[] => [{ ...stamp, role: 'assistant', ...fields }])
const batch = fc
  .tuple(
    fc.option(anyText),
    fc.uniqueArray(anyId, { minLength: 1, maxLength: 3 }),
    fc.infiniteStream(fc.tuple(anyName, anyArguments, anyText)),
  )
  .map(([content, ids, rest]): Message[] => {
    const drawn = ids.map((id) => ({ id, drawn: rest.next().value as [string, string, string] }))
    const calls = drawn.map(({ id, drawn: [name, text] }): ToolCall => {
      return { id, type: 'function', function: { name, arguments: text } }
    })
    return [
      { ...stamp, role: 'assistant', content, tool_calls: calls },
      ...drawn.map(({ id, drawn: [, , result] }): Message => {
        return { ...stamp, role: 'tool', tool_call_id: id, content: result }
      }),
    ]
  })
const history = fc
  .array(fc.oneof(user, answer, batch, system), { maxLength: 8 })
  .map((turns) => [...turns.flat(), { ...stamp, role: 'user' as const, content: 'Go.' }])

const plain: ChatBodyOptions = {
  model: 'm',
  maxTokensField: 'max_tokens',
  echoReasoning: 'none',
  streamOptions: true,
  isMistral: false,
}

function sent(messages: Message[], options: ChatBodyOptions, instructions: string | null, nudges: string[]) {
  const builder = createChatBodyBuilder(options)
  const body = builder({
    instructions,
    messages,
    nudges,
    tools: [],
    sampling: {},
    extraBody: {},
    stream: false,
  })
  return JSON.parse(new TextDecoder().decode(encodeBody(body))) as ChatRequest
}

const echoes = fc.constantFrom('none' as const, 'with_calls' as const, ...reasoningForms)
const instructions = fc.option(anyText)
const nudges = fc.array(anyText, { maxLength: 2 })

test('any history is sent in a form that every provider accepts', () => {
  fc.assert(
    fc.property(
      history,
      echoes,
      fc.boolean(),
      instructions,
      nudges,
      (messages, echoReasoning, isMistral, ...rest) => {
        expect(findStrictProblem(sent(messages, { ...plain, echoReasoning, isMistral }, ...rest))).toBeNull()
      },
    ),
    { numRuns: sampled(500) },
  )
})

test('a valid history is sent unchanged', () => {
  const messages: Message[] = [
    { ...stamp, role: 'user', content: 'Ünï 😀' },
    {
      ...stamp,
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"a": "\\ud83d\\ude00"}' } },
      ],
    },
    { ...stamp, role: 'tool', tool_call_id: 'call_1', content: ' ok ' },
    { ...stamp, role: 'assistant', content: ' Done. ' },
    { ...stamp, role: 'user', content: 'And?' },
  ]
  const wire = messages.map(({ id: _id, createdAt: _at, ...message }) => message)
  expect(sent(messages, plain, null, []).messages).toEqual(
    expect.arrayContaining([wire[0], wire[2], wire[3], wire[4]]),
  )
  expect(sent(messages, plain, null, []).messages).toHaveLength(5)
})

describe('Mistral’s requirements', () => {
  const history: Message[] = [
    { ...stamp, role: 'user', content: 'Go.' },
    {
      ...stamp,
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { ...stamp, role: 'tool', tool_call_id: 'call_1', content: 'ok' },
  ]

  test('an answer is inserted between results and the next user message', () => {
    const roles = (isMistral: boolean) =>
      sent(history, { ...plain, isMistral }, null, ['Think.']).messages.map(({ role }) => role)
    expect(roles(false)).toEqual(['user', 'assistant', 'tool', 'user'])
    expect(roles(true)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
  })

  test('ids are nine letters and digits', () => {
    const [, called, result] = sent(history, { ...plain, isMistral: true }, null, []).messages
    expect(result?.tool_call_id).toMatch(/^[a-zA-Z0-9]{9}$/)
    expect(called?.tool_calls?.[0]?.id).toBe(result?.tool_call_id)
  })
})

test('Kimi’s own ids stay unchanged at any length', () => {
  const id = `functions.${'n'.repeat(40)}:0`
  const messages: Message[] = [
    { ...stamp, role: 'user', content: 'Go.' },
    {
      ...stamp,
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { ...stamp, role: 'tool', tool_call_id: id, content: 'ok' },
  ]
  expect(sent(messages, { ...plain, model: 'moonshotai/Kimi-K2' }, null, []).messages[2]?.tool_call_id).toBe(
    id,
  )
})
