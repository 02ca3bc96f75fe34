import OpenAI from 'openai'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { AssistantMessage, Message } from '../../../machines/agent/messages.js'
import { ConfigError } from '../../../src/core/base/errors.js'
import {
  openaiResponses,
  type OpenAIResponsesOptions,
} from '../../../src/core/models/openai/responses/openai-responses.js'
import { ModelError, type ModelRequest } from '../../../src/core/models/provider.js'
import { type Answer, events, json, serve } from './server.js'
import { overTransport, transports } from './transports.js'

const user = (content: string, id = 'u'): Message => ({ id, createdAt: 1, role: 'user', content })
const question: ModelRequest = {
  instructions: 'Be brief.',
  messages: [user('hi')],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
  stream: true,
}
const local = (baseURL: string, options: Partial<OpenAIResponsesOptions> = {}) =>
  openaiResponses({ model: 'm', apiKey: 'key-12345', baseURL, provider: 'p', ...options })

async function ask(
  answer: Answer,
  request: Partial<ModelRequest> = {},
  options: Partial<OpenAIResponsesOptions> = {},
) {
  await using server = await serve(answer)
  const shown = { text: '', reasoning: '' }
  const response = await local(server.baseURL, options).request(
    { ...question, ...request },
    {
      signal: new AbortController().signal,
      onDelta: (text, reasoning) => {
        shown.text += text
        shown.reasoning += reasoning
      },
      onActivity: () => undefined,
    },
  )
  return { response, shown, sent: server.requests[0]?.body as JsonObject }
}

async function failing(answer: Answer, request: Partial<ModelRequest> = {}) {
  const error: unknown = await ask(answer, request).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof ModelError) return error.failure
  throw new Error('no ModelError', { cause: error })
}

const added = (output_index: number, item: object) => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
const done = (output_index: number, item: object) => ({
  type: 'response.output_item.done',
  output_index,
  item,
})
const delta = (output_index: number, text: string, item_id = 'any') => ({
  type: 'response.output_text.delta',
  output_index,
  item_id,
  content_index: 0,
  delta: text,
})
const words = (text: string, more: object = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
  ...more,
})
const call = (call_id: string, input = '{}', more: object = {}) => ({
  id: `fc_${call_id}`,
  type: 'function_call',
  status: 'completed',
  call_id,
  name: 'look',
  arguments: input,
  ...more,
})
const thought = (encrypted_content: string | null = 'gAAA', more: object = {}) => ({
  id: 'rs_1',
  type: 'reasoning',
  summary: [],
  ...(encrypted_content !== null && { encrypted_content }),
  ...more,
})
const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
const whole = (output: object[], more: object = {}) => ({
  object: 'response',
  status: 'completed',
  model: 'm-1',
  output,
  usage,
  error: null,
  ...more,
})
const completed = (output: object[] = [], more: object = {}) => ({
  type: 'response.completed',
  response: whole(output, more),
})
/** A whole answer, as a document and as a stream of one event. */
const both: [string, (output: object[], more?: object) => Answer][] = [
  ['whole', (output, more) => json(200, whole(output, more))],
  ['streamed', (output, more) => events(completed(output, more))],
]

describe.each(transports)('over %s,', (transport) => {
  overTransport(transport)

  test('a stream is shown as it comes', async () => {
    const { response, shown } = await ask(
      events(
        { type: 'response.created', response: { status: 'in_progress', output: [] } },
        added(0, { type: 'message', role: 'assistant', content: [] }),
        delta(0, 'Hel'),
        delta(0, 'lo'),
        done(0, words('Hello')),
        completed([words('Hello')]),
      ),
    )
    expect(shown.text).toBe('Hello')
    expect(response).toMatchObject({ text: 'Hello', finishReason: 'completed', complete: true, model: 'm-1' })
    expect(response.usage).toMatchObject({ inputTokens: 3, outputTokens: 2 })
  })

  test.each(both)('an answer that comes at once (%s) is shown at once', async (_how, answer) => {
    const { response, shown } = await ask(answer([words('Hello')]))
    expect([shown.text, response.text]).toEqual(['Hello', 'Hello'])
  })

  test('a status is an error with the words of the provider', async () => {
    const answer = json(429, { error: { message: 'Slow down.', code: 'rate_limit_exceeded' } })
    expect(await failing(answer)).toMatchObject({
      kind: 'rate_limit',
      code: 'rate_limit_exceeded',
      status: 429,
    })
  })
})

describe('the items of a stream', () => {
  test('go by their place, not by their ids, which may change on the way', async () => {
    const { response, shown } = await ask(
      events(
        added(0, { type: 'message', id: 'a' }),
        added(1, { type: 'function_call', id: 'b', call_id: 'c1', name: 'look', arguments: '' }),
        { type: 'response.function_call_arguments.delta', output_index: 1, item_id: 'x', delta: '{"q"' },
        delta(0, 'One', 'y'),
        { type: 'response.function_call_arguments.delta', output_index: 1, item_id: 'z', delta: ':1}' },
        delta(0, ' two', 'w'),
        completed(),
      ),
    )
    expect(shown.text).toBe('One two')
    expect(response.text).toBe('One two')
    expect(response.toolCalls).toEqual([
      { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"q":1}' } },
    ])
  })

  test.each([
    ['in many deltas', ['{"q"', ':1}'], ''],
    ['at its end alone', [], '{"q":1}'],
    ['from its beginning', [], 'added'],
  ])('have arguments %s', async (_how, deltas, last) => {
    const { response } = await ask(
      events(
        added(0, call('c1', last === 'added' ? '{"q":1}' : '')),
        ...deltas.map((text) => ({
          type: 'response.function_call_arguments.delta',
          output_index: 0,
          delta: text,
        })),
        ...(last === '{"q":1}' ? [done(0, call('c1', last))] : []),
        completed(),
      ),
    )
    expect(response.toolCalls[0]?.function).toEqual({ name: 'look', arguments: '{"q":1}' })
  })

  test('are those of the last event, where it lists any, else those that ended', async () => {
    const listed = await ask(
      events(added(0, words('')), delta(0, 'Hi'), completed([thought(), words('Hi there')])),
    )
    expect(listed.response.text).toBe('Hi there')
    expect(listed.shown.text).toBe('Hi there')
    const unlisted = await ask(events(done(0, thought()), done(1, words('Hi')), completed([])))
    expect(unlisted.response.text).toBe('Hi')
    expect(unlisted.response.providerItems?.items).toHaveLength(2)
  })

  test('without an event that ends the answer are an answer that is incomplete', async () => {
    const { response } = await ask(events(added(0, words('')), delta(0, 'Hi'), '[DONE]'))
    expect(response).toMatchObject({ text: 'Hi', complete: false, finishReason: null })
    expect(response.providerItems).toBeUndefined()
  })

  test('and events that nobody knows do no harm', async () => {
    const { response } = await ask(
      events(
        { type: 'response.dream.delta', output_index: 0, delta: 'x' },
        { type: 'response.output_item.added' },
        added(0, { type: 'dream', id: 'd' }),
        { type: 'keepalive' },
        completed([{ type: 'dream', id: 'd' }, words('Hi')]),
      ),
    )
    expect(response.text).toBe('Hi')
    expect(response.providerItems?.items[0]).toEqual({ type: 'dream', id: 'd' })
  })
})

describe('the end of an answer', () => {
  test.each(both)(
    '%s: at the limit of tokens it is cut off, whatever else the reason is called',
    async (_how, answer) => {
      for (const reason of ['max_output_tokens', 'something_else']) {
        const { response } = await ask(
          answer([call('c1', '{"q')], { status: 'incomplete', incomplete_details: { reason } }),
        )
        expect(response).toMatchObject({ finishReason: 'max_output_tokens', complete: true })
      }
    },
  )

  test.each(both)('%s: by a filter it is filtered', async (_how, answer) => {
    const incomplete_details = { reason: 'content_filter' }
    const { response } = await ask(answer([words('Hm')], { status: 'incomplete', incomplete_details }))
    expect(response.finishReason).toBe('content_filter')
  })

  test.each(both)('%s: an odd status, or none, is an end', async (_how, answer) => {
    for (const status of ['complete', undefined])
      expect((await ask(answer([words('Hi')], { status }))).response.complete).toBe(true)
  })

  test('a failure is an error, whatever comes with it', async () => {
    const error = { code: 'server_error', message: 'It broke.' }
    const failed = { type: 'response.failed', response: whole([], { status: 'failed', error }) }
    const top = { type: 'error', code: 'rate_limit_exceeded', message: 'Slow down.' }
    const nested = { type: 'error', error: { code: 'insufficient_quota', message: 'Pay.' } }
    const begun = [added(0, words('')), delta(0, 'Half')]
    expect(await failing(events(...begun, failed, top))).toMatchObject({
      kind: 'transient',
      code: 'server_error',
      partialText: 'Half',
      usage: { inputTokens: 3 },
    })
    expect(await failing(events(top, failed))).toMatchObject({ kind: 'rate_limit' })
    expect(await failing(events(nested))).toMatchObject({ kind: 'fatal', code: 'insufficient_quota' })
    expect(await failing(json(200, whole([], { status: 'failed', error })))).toMatchObject({
      code: 'server_error',
    })
  })

  test('a response that goes on in the background is refused', async () => {
    const failure = await failing(json(200, whole([], { status: 'queued' })))
    expect(failure).toMatchObject({ kind: 'fatal', code: 'unfinished_response' })
    expect(failure.message).toContain('background')
  })

  test('JSON that is no response is refused', async () => {
    expect(await failing(json(200, { choices: [] }))).toMatchObject({ code: 'invalid_response' })
  })

  test.each([
    [{ type: 'custom_tool_call', call_id: 'c1', name: 'sql' }, 'custom_tool_call (sql, c1)'],
    [{ type: 'local_shell_call', call_id: 'c1' }, 'local_shell_call (c1)'],
    [{ type: 'computer_call', call_id: 'c1' }, 'computer_call (c1)'],
  ])('an item that wants another output than a function’s is refused by name', async (item, named) => {
    const failure = await failing(events(completed([item])))
    expect(failure).toMatchObject({ kind: 'fatal', code: 'unsupported_output' })
    expect(failure.message).toContain(named)
  })
})

describe('what is said', () => {
  const commentary = words('Let me see.', { phase: 'commentary' })
  const final = words('It is 4.', { phase: 'final_answer', id: 'msg_2' })

  test.each(both)('%s: the final answer is the text, commentary is shown before it', async (_how, answer) => {
    const { response, shown } = await ask(answer([commentary, final]))
    expect(response.text).toBe('It is 4.')
    expect(shown.text).toBe('Let me see.\n\nIt is 4.')
  })

  test.each(both)('%s: commentary is the text beside calls', async (_how, answer) => {
    const { response } = await ask(answer([commentary, call('c1')]))
    expect([response.text, response.toolCalls.length]).toEqual(['Let me see.', 1])
  })

  test('a refusal is one, streamed or whole', async () => {
    const refused = words('', { content: [{ type: 'refusal', refusal: 'I will not.' }] })
    const streamed = events(
      added(0, { type: 'message' }),
      { type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: 'I will not.' },
      completed(),
    )
    for (const answer of [json(200, whole([refused])), streamed])
      expect((await ask(answer)).response).toMatchObject({ text: '', refusal: 'I will not.' })
  })

  test('thoughts come as summaries or in full, streamed or whole', async () => {
    const parts = [
      { summary: ['One.', 'Two.'].map((text) => ({ type: 'summary_text', text })) },
      { content: [{ type: 'reasoning_text', text: 'One.\n\nTwo.' }] },
    ]
    for (const part of parts)
      expect((await ask(json(200, whole([thought('x', part), words('Hi')])))).response.reasoning).toBe(
        'One.\n\nTwo.',
      )
    const { response, shown } = await ask(
      events(
        added(0, thought()),
        ...['One.', 'Two.'].map((text, summary_index) => ({
          type: 'response.reasoning_summary_text.delta',
          output_index: 0,
          summary_index,
          delta: text,
        })),
        completed(),
      ),
    )
    expect([response.reasoning, shown.reasoning]).toEqual(['One.\n\nTwo.', 'One.\n\nTwo.'])
  })
})

describe('a request', () => {
  const answer = json(200, whole([words('Hi')]))
  const look = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }

  test('stores nothing, and asks for reasoning that can go back', async () => {
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

  test('has the provider’s own tools behind the agent’s', async () => {
    const { sent } = await ask(answer, { tools: [look] }, { hostedTools: [{ type: 'web_search' }] })
    expect(sent['tools']).toEqual([{ type: 'function', ...look, strict: false }, { type: 'web_search' }])
  })

  test('asks models that do not reason for no reasoning', async () => {
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

  test('has pictures and files in their own form', async () => {
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
    'that names sampling.%s, which the API does not have, is not sent',
    async (key) => {
      const failure = await failing(answer, { sampling: { [key]: 1 } })
      expect(failure).toMatchObject({ kind: 'fatal', code: 'unsupported_parameter' })
      expect(failure.message).toContain(`sampling.${key}`)
    },
  )
})

describe('an answer goes back', () => {
  const items = [
    thought('gAAA', { summary: [{ type: 'summary_text', text: 'Look first.' }] }),
    { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } },
    words('Let me see.', { phase: 'commentary' }),
    words('I look.', { phase: 'final_answer', id: 'msg_2' }),
    call('c1', '{"q":1}', { namespace: 'n' }),
    call('c2', '{"q":2}'),
  ]

  /** What a request has as input whose transcript has that answer in it. */
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
    const kept = JSON.stringify(response.providerItems)
    expect(kept).toContain('gAAA')
    expect(kept).not.toContain('I look.')
    expect(kept).not.toContain('\\"q\\"')
  })

  test('without its items, all of them, where the message was edited or is another’s', async () => {
    expect(await sentBack(items, (message) => ({ ...message, content: 'I look!!' }))).toEqual([
      { role: 'assistant', content: 'I look!!' },
      ...plain.slice(1),
    ])
    expect(await sentBack(items, (message) => message, { provider: 'q' })).toEqual(plain)
    const fewer = await sentBack(items.slice(0, 4), (message) => ({ ...message, content: '' }))
    expect(fewer).toEqual([])
  })

  test('as an edit of the same length has it', async () => {
    const sent = await sentBack(items, (message) => ({ ...message, content: 'I LOOK.' }))
    expect(JSON.stringify(sent)).toContain('I LOOK.')
    expect(JSON.stringify(sent)).not.toContain('I look.')
  })

  test('without thoughts that led to nothing, or that nothing could be made of', async () => {
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

  test('so that each result is one call’s, where ids begin anew with each response', async () => {
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

  test('calls are told apart also where one has the id that another would get', async () => {
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
  ])('%s that no request could be made with is refused by name', (option, options) => {
    const make = () => openaiResponses({ model: 'm', ...options } as OpenAIResponsesOptions)
    expect(make).toThrow(ConfigError)
    expect(make).toThrow(`openaiResponses: ${option}`)
  })

  test('a client of one’s own makes the request', async () => {
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
