import * as fc from 'fast-check'
import type { AssistantMessage, Message, UserMessage } from '../../../machines/agent/messages.js'
import { type ChatBodyOptions, createChatBodyBuilder } from '../../../src/core/models/openai/chat-wire.js'
import { createBodyEncoder } from '../../../src/core/models/openai/encode-body.js'
import type { ModelRequest } from '../../../src/core/models/provider.js'

const encodeBody = createBodyEncoder()

const request: ModelRequest = {
  instructions: null,
  messages: [],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
  stream: false,
}
const options: ChatBodyOptions = {
  model: 'm',
  maxTokensField: 'max_tokens',
  echoReasoning: 'none',
  streamOptions: true,
  isMistral: false,
}

function bodyOf(part: Partial<ModelRequest>, other: Partial<ChatBodyOptions> = {}) {
  const builder = createChatBodyBuilder({ ...options, ...other })
  const body = builder({ ...request, ...part })
  const sent: unknown = JSON.parse(new TextDecoder().decode(encodeBody(body)))
  expect(sent).toEqual(JSON.parse(JSON.stringify(body)))
  return sent
}

/** Sent after a user message. */
const messagesOf = (messages: Message[], part: Partial<ModelRequest> = {}) =>
  (bodyOf({ messages: [user('hi'), ...messages], ...part }) as { messages: unknown[] }).messages.slice(1)

const user = (content: UserMessage['content']): UserMessage => ({
  id: 'u',
  createdAt: 1,
  role: 'user',
  content,
  internal: true,
  data: { reason: 'x' },
})
const assistant = (fields: Partial<AssistantMessage>): AssistantMessage => ({
  id: 'a',
  createdAt: 1,
  role: 'assistant',
  content: null,
  ...fields,
})
const called = (args: string) =>
  assistant({ tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }] })

test('our notes are not sent, and instructions come first', () => {
  const messages = [user('hi'), assistant({ content: 'yo', reasoning: 'why' })]
  expect(bodyOf({ messages, instructions: 'Be good.' })).toMatchObject({
    messages: [
      { role: 'system', content: 'Be good.' },
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'yo' },
    ],
  })
})

test('provider data is sent back', () => {
  const details = [{ type: 'reasoning.text', text: 'why' }]
  const call = {
    id: 'c',
    type: 'function' as const,
    function: { name: 'f', arguments: '{"a":1}' },
    extra_content: { sig: 's' },
  }
  const messages: Message[] = [
    assistant({ tool_calls: [call], reasoning_details: details }),
    { id: 't', createdAt: 1, role: 'tool', tool_call_id: 'c', content: 'ok' },
  ]
  expect(messagesOf(messages)).toEqual([
    { role: 'assistant', content: null, tool_calls: [call], reasoning_details: details },
    { role: 'tool', tool_call_id: 'c', content: 'ok' },
  ])
})

test('content is null if there are only calls', () => {
  expect(messagesOf([assistant({})])).toEqual([])
  expect(messagesOf([called('{}')])).toMatchObject([{ content: null }])
  expect(messagesOf([assistant({ refusal: 'No.' })])).toEqual([{ role: 'assistant', content: 'No.' }])
})

const sent = (args: string) => messagesOf([called(args)])

test('arguments that no server could parse are sent as JSON', () => {
  expect(sent('')).toMatchObject([{ tool_calls: [{ function: { arguments: '{}' } }] }])
  expect(sent('{"a": 1}')).toMatchObject([{ tool_calls: [{ function: { arguments: '{"a": 1}' } }] }])
  expect(sent('{"a":"lor')).toMatchObject([
    { tool_calls: [{ function: { arguments: '{"invalid_json":"{\\"a\\":\\"lor"}' } }] },
  ])
})

test('reasoning is sent back with calls if the provider requires it', () => {
  const builder = createChatBodyBuilder({ ...options, echoReasoning: 'with_calls' })
  const messages = [{ ...called('{}'), reasoning: 'why' }, assistant({ content: 'a', reasoning: 'b' })]
  const { messages: sent } = builder({ ...request, messages: [user('hi'), ...messages] })
  expect(sent).toEqual([
    { role: 'user', content: 'hi' },
    expect.objectContaining({ reasoning_content: 'why' }),
    { role: 'assistant', content: 'a' },
  ])
})

describe('nudges', () => {
  const nudges = ['Stop.', 'Think.']

  test('are one user message at the end', () => {
    expect(messagesOf([assistant({ content: 'a' })], { nudges })).toEqual([
      { role: 'assistant', content: 'a' },
      { role: 'user', content: 'Stop.\n\nThink.' },
    ])
  })

  test('join a user message at the end, whose text stays unchanged', () => {
    const builder = createChatBodyBuilder(options)
    const messages = [user('hi')]
    expect(builder({ ...request, messages, nudges }).messages).toEqual([
      { role: 'user', content: 'hi\n\nStop.\n\nThink.' },
    ])
    expect(builder({ ...request, messages }).messages).toEqual([{ role: 'user', content: 'hi' }])
  })

  test('become a part if the message has parts', () => {
    const image = { type: 'image_url' as const, image_url: { url: 'https://x/y.png' } }
    expect(bodyOf({ messages: [user([image])], nudges: ['Look.'] })).toMatchObject({
      messages: [{ role: 'user', content: [image, { type: 'text', text: 'Look.' }] }],
    })
  })
})

test('tools and the tool choice are sent only if there are tools', () => {
  const tool = { name: 'f', description: 'd', parameters: { type: 'object' } }
  expect(bodyOf({ toolChoice: 'required' })).toEqual({ model: 'm', messages: [], stream: false })
  expect(bodyOf({ tools: [tool], toolChoice: { name: 'f' } })).toMatchObject({
    tools: [{ type: 'function', function: tool }],
    tool_choice: { type: 'function', function: { name: 'f' } },
  })
  expect(bodyOf({ tools: [tool], toolChoice: 'none' })).toMatchObject({ tool_choice: 'none' })
})

test('sampling has the names of the API', () => {
  const sampling = {
    temperature: 0,
    topP: 0.5,
    maxTokens: 9,
    frequencyPenalty: 1,
    presencePenalty: 2,
    seed: 3,
    stop: ['x'],
    reasoningEffort: 'low' as const,
  }
  expect(bodyOf({ sampling })).toEqual({
    model: 'm',
    messages: [],
    stream: false,
    temperature: 0,
    top_p: 0.5,
    max_tokens: 9,
    frequency_penalty: 1,
    presence_penalty: 2,
    seed: 3,
    stop: ['x'],
    reasoning_effort: 'low',
  })
  expect(bodyOf({ sampling: { maxTokens: 9 } }, { maxTokensField: 'max_completion_tokens' })).toMatchObject({
    max_completion_tokens: 9,
  })
})

test('usage is requested in streams, if the provider supports it', () => {
  expect(bodyOf({ stream: true })).toMatchObject({ stream: true, stream_options: { include_usage: true } })
  expect(bodyOf({ stream: true }, { streamOptions: false })).not.toHaveProperty('stream_options')
})

test('extraBody takes precedence, and null removes a key', () => {
  expect(
    bodyOf({ stream: true, extraBody: { model: 'other', stream_options: null, top_k: 5, messages: [] } }),
  ).toEqual({
    model: 'other',
    messages: [],
    stream: true,
    top_k: 5,
  })
})

test('a message that was already sent is not serialized again', () => {
  const builder = createChatBodyBuilder(options)
  let reads = 0
  const message = user('')
  Object.defineProperty(message, 'content', {
    get: () => {
      reads += 1
      return 'hi'
    },
  })
  const first = encodeBody(builder({ ...request, messages: [message] }))
  expect(encodeBody(builder({ ...request, messages: [message] }))).toEqual(first)
  expect(reads).toBe(1)
})

test('the bytes are those of JSON.stringify', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (body) => {
      expect(new TextDecoder().decode(encodeBody(body))).toBe(JSON.stringify(body))
    }),
  )
})
