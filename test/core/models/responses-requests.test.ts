import OpenAI from 'openai'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { AssistantMessage, Message } from '../../../machines/agent/messages.js'
import { ConfigError } from '../../../src/core/base/errors.js'
import {
  openaiResponses,
  type OpenAIResponsesOptions,
} from '../../../src/core/models/openai/openai-provider.js'
import { user, question, ask, failing, words, call, thought, whole } from './responses-support.js'
import { json, serve } from './server.js'

describe('a request', () => {
  const answer = json(200, whole([words('Hi')]))
  const look = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }

  test('stores nothing, and requests encrypted reasoning that can be sent back', async () => {
    const { sent } = await ask(answer, {
      tools: [look],
      toolChoice: { name: 'look' },
      responseFormat: { name: 'out', schema: { type: 'object' }, strict: true },
      sampling: { maxTokens: 9, temperature: 0, topP: 0.5, reasoningEffort: 'low' },
      nudges: ['Hurry.'],
    })
    expect(sent).toEqual({
      model: 'm',
      input: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hi\n\nHurry.' },
      ],
      tools: [{ type: 'function', ...look, strict: false }],
      tool_choice: { type: 'function', name: 'look' },
      text: { format: { type: 'json_schema', name: 'out', schema: { type: 'object' }, strict: true } },
      temperature: 0,
      top_p: 0.5,
      max_output_tokens: 9,
      reasoning: { effort: 'low' },
      store: false,
      include: ['reasoning.encrypted_content'],
      stream: true,
    })
  })

  test('lists the provider’s own tools after the agent’s', async () => {
    const { sent } = await ask(answer, { tools: [look] }, { hostedTools: [{ type: 'web_search' }] })
    expect(sent['tools']).toEqual([{ type: 'function', ...look, strict: false }, { type: 'web_search' }])
  })

  test('requests no reasoning from models without it', async () => {
    for (const model of ['gpt-4o', 'gpt-4.1-mini', 'gpt-5-chat-latest'])
      expect((await ask(answer, {}, { model })).sent).not.toHaveProperty('include')
    const { sent } = await ask(
      answer,
      {},
      { model: 'gpt-5', encryptedReasoning: false, reasoningSummary: 'auto' },
    )
    expect(sent).not.toHaveProperty('include')
    expect(sent['reasoning']).toEqual({ summary: 'auto' })
  })

  test('has pictures and files in the format of the API', async () => {
    const content = [
      { type: 'text' as const, text: 'What is it?' },
      { type: 'image_url' as const, image_url: { url: 'https://example.com/a.png' } },
      { type: 'file' as const, file: { file_id: 'file_1' } },
    ]
    const { sent } = await ask(answer, { messages: [{ id: 'u', createdAt: 1, role: 'user', content }] })
    expect((sent['input'] as JsonObject[])[1]).toEqual({
      role: 'user',
      content: [
        { type: 'input_text', text: 'What is it?' },
        { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'auto' },
        { type: 'input_file', file_id: 'file_1' },
      ],
    })
  })

  test.each(['seed', 'stop', 'frequencyPenalty', 'presencePenalty'])(
    'that sets sampling.%s, which the API does not have, is not sent',
    async (key) => {
      const failure = await failing(answer, { sampling: { [key]: 1 } })
      expect(failure).toMatchObject({ kind: 'fatal', code: 'unsupported_parameter' })
      expect(failure.message).toContain(`sampling.${key}`)
    },
  )
})

describe('an answer is sent back', () => {
  const items = [
    thought('gAAA', { summary: [{ type: 'summary_text', text: 'Look first.' }] }),
    { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } },
    words('Let me see.', { phase: 'commentary' }),
    words('I look.', { phase: 'final_answer', id: 'msg_2' }),
    call('c1', '{"q":1}', { namespace: 'n' }),
    call('c2', '{"q":2}'),
  ]

  /** The input of a request whose transcript contains that answer. */
  async function sentBack(
    output: object[],
    edit: (message: AssistantMessage) => AssistantMessage = (message) => message,
    options: Partial<OpenAIResponsesOptions> = {},
    extraBody: JsonObject = {},
  ) {
    const { response } = await ask(json(200, whole(output)))
    const { text, refusal, toolCalls, providerItems } = response
    const message: AssistantMessage = {
      id: 'a',
      createdAt: 1,
      role: 'assistant',
      content: text === '' && toolCalls.length > 0 ? null : text,
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
      ...(refusal !== null && { refusal }),
      ...(providerItems && { provider_items: providerItems }),
    }
    const results = toolCalls.map(({ id }, i): Message => {
      return { id: `t${i}`, createdAt: 1, role: 'tool', tool_call_id: id, content: `r${i}` }
    })
    const messages = [
      user('hi'),
      edit(message),
      ...results,
      ...(results.length > 0 ? [] : [user('And?', 'v')]),
    ]
    const { sent } = await ask(
      json(200, whole([words('Hi')])),
      { instructions: null, messages, extraBody },
      options,
    )
    return (sent['input'] as JsonObject[]).slice(1)
  }

  const results = ['c1', 'c2'].map((call_id, i) => ({
    type: 'function_call_output',
    call_id,
    output: `r${i}`,
  }))
  const plain = [
    { role: 'assistant', content: 'I look.' },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"q":1}' },
    { type: 'function_call', call_id: 'c2', name: 'look', arguments: '{"q":2}' },
    ...results,
  ]

  test('whole, unchanged and in its order', async () => {
    expect(await sentBack(items)).toEqual([...items, ...results])
    const refused = [thought(), words('', { content: [{ type: 'refusal', refusal: 'I will not.' }] })]
    expect((await sentBack(refused)).slice(0, 2)).toEqual(refused)
  })

  test('with nothing twice in the transcript', async () => {
    const { response } = await ask(json(200, whole(items)))
    const stored = JSON.stringify(response.providerItems)
    expect(stored).toContain('gAAA')
    expect(stored).not.toContain('I look.')
    expect(stored).not.toContain('\\"q\\"')
  })

  test('without any of its items if the message was edited or is another model’s', async () => {
    expect(await sentBack(items, (message) => ({ ...message, content: 'I look!!' }))).toEqual([
      { role: 'assistant', content: 'I look!!' },
      ...plain.slice(1),
    ])
    expect(await sentBack(items, (message) => message, { provider: 'q' })).toEqual(plain)
    const fewer = await sentBack(items.slice(0, 4), (message) => ({ ...message, content: '' }))
    expect(fewer).toEqual([])
  })

  test('as edited, even if the edit has the same length', async () => {
    const sent = await sentBack(items, (message) => ({ ...message, content: 'I LOOK.' }))
    expect(JSON.stringify(sent)).toContain('I LOOK.')
    expect(JSON.stringify(sent)).not.toContain('I look.')
  })

  test('without reasoning that led to no output, or that cannot be sent', async () => {
    expect(await sentBack([words('Hi', { id: 'm' }), thought()])).toEqual([
      words('Hi', { id: 'm' }),
      { role: 'user', content: 'And?' },
    ])
    const { id: _id, ...bare } = words('Hi')
    expect((await sentBack([thought(null), words('Hi')]))[0]).toEqual(bare)
    const full = thought(null, { content: [{ type: 'reasoning_text', text: 'Hm.' }] })
    expect((await sentBack([full, words('Hi')])).slice(0, 2)).toEqual([full, words('Hi')])
    const stored = await sentBack([thought(null), words('Hi')], (message) => message, {}, { store: true })
    expect(stored.slice(0, 2)).toEqual([thought(null), words('Hi')])
  })

  test('with each result matched to one call, even if ids restart with each response', async () => {
    const turn = (id: string): Message[] => [
      {
        id,
        createdAt: 1,
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_0', type: 'function', function: { name: 'look', arguments: '{}' } }],
      },
      { id: `${id}r`, createdAt: 1, role: 'tool', tool_call_id: 'call_0', content: id },
    ]
    const { sent } = await ask(json(200, whole([words('Hi')])), {
      messages: [user('hi'), ...turn('a'), ...turn('b')],
    })
    const ids = (sent['input'] as JsonObject[]).slice(2).map(({ call_id: id, output = '' }) => [id, output])
    expect(ids).toEqual([
      ['call_0', ''],
      ['call_0', 'a'],
      ['call_0_2', ''],
      ['call_0_2', 'b'],
    ])
  })

  test('separate from the message before, if it is an edited approval request', async () => {
    const answer = (id: string, more: Partial<AssistantMessage> = {}): Message => {
      return { id, createdAt: 1, role: 'assistant', content: id, ...more }
    }
    const hosted = { from: 'responses/p', server: 'zip' }
    const asked = {
      id: 'm1',
      type: 'function',
      function: { name: 'zip.shorten', arguments: '{}' },
      hosted,
    } as const
    const { sent } = await ask(json(200, whole([words('Hi')])), {
      instructions: null,
      messages: [user('hi'), answer('One.'), answer('Two.', { tool_calls: [asked] })],
    })
    expect(sent['input']).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'One.' },
      { role: 'assistant', content: 'Two.' },
      { type: 'mcp_approval_request', id: 'm1', server_label: 'zip', name: 'shorten', arguments: '{}' },
    ])
  })

  test('with distinct calls, even if one has the id that another would get', async () => {
    const turn = (id: string, calls: string[]): Message[] => [
      {
        id,
        createdAt: 1,
        role: 'assistant',
        content: null,
        tool_calls: calls.map((call) => ({
          id: call,
          type: 'function',
          function: { name: 'look', arguments: '{}' },
        })),
      },
      ...calls.map(
        (call): Message => ({
          id: `${id}${call}`,
          createdAt: 1,
          role: 'tool',
          tool_call_id: call,
          content: call,
        }),
      ),
    ]
    const { sent } = await ask(json(200, whole([words('Hi')])), {
      messages: [user('hi'), ...turn('a', ['call_0', 'call_0_2']), ...turn('b', ['call_0', 'call_0_2'])],
    })
    const items = (sent['input'] as JsonObject[]).slice(2)
    const idsOf = (type: string) =>
      items.filter((item) => item['type'] === type).map((item) => item['call_id'])
    expect(new Set(idsOf('function_call')).size).toBe(4)
    expect(idsOf('function_call_output')).toEqual(idsOf('function_call'))
  })
})

describe('options', () => {
  test.each([
    ['model', { model: '' }],
    ['hostedTools', { hostedTools: [{}] }],
    ['hostedTools', { hostedTools: [{ type: 'function', name: 'look' }] }],
    ['reasoningSummary', { reasoningSummary: 'long' }],
    ['encryptedReasoning', { encryptedReasoning: 'yes' }],
    ['client', { client: { chat: {} } }],
    ['client', { client: new OpenAI({ apiKey: 'k' }), apiKey: 'key' }],
    ['baseURL', { baseURL: 'ftp://example.com' }],
  ])('%s that cannot make a request is refused by name', (option, options) => {
    const make = () => openaiResponses({ model: 'm', ...options } as OpenAIResponsesOptions)
    expect(make).toThrow(ConfigError)
    expect(make).toThrow(`openaiResponses: ${option}`)
  })

  test('a custom client sends the request', async () => {
    await using server = await serve(json(200, whole([words('Hi')])))
    const client = new OpenAI({ apiKey: 'mine', baseURL: server.baseURL, maxRetries: 5 })
    const model = openaiResponses({ model: 'm', client })
    const { text } = await model.request(question, {
      signal: new AbortController().signal,
      onDelta: () => undefined,
      onActivity: () => undefined,
    })
    expect(text).toBe('Hi')
    expect(server.requests[0]).toMatchObject({
      url: '/v1/responses',
      headers: { authorization: 'Bearer mine' },
    })
  })
})
