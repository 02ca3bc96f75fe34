import { createAgent, type ModelResponse } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { ManualModel, settled } from '../support/manual-model.js'
import { played, stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

/** A turn sent as one JSON document, regardless of the requested mode. */
const document = (body: object): Turn => ({
  raw: { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
})
/** The same, as the only event of a stream. */
const event = (body: object): Turn => ({ raw: { body: `data: ${JSON.stringify(body)}\n\ndata: [DONE]\n\n` } })

const completion = (message: object, more: object = {}, usage: object = {}) => ({
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop', ...more }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, ...usage },
})

const modes = [
  ['a document', document, true],
  ['a document', document, false],
  ['an event', event, true],
] as const

describe.each(modes)('a whole completion as %s', (_name, turn, stream) => {
  it('is its message if an empty delta is next to it', async () => {
    const body = completion({ content: 'Hello.' }, { delta: { role: 'assistant', content: '' } })
    const { result, of } = await played([turn(body)], { stream })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Hello.', steps: 1 })
    expect(
      of('stream_chunk')
        .map((chunk) => chunk.text)
        .join(''),
    ).toBe('Hello.')
  })

  it('appears once if message and delta are the same', async () => {
    const body = completion({ content: 'Hello.' }, { delta: { content: 'Hello.' } })
    expect((await played([turn(body)], { stream })).result.output).toBe('Hello.')
  })

  it('becomes a call if it has a legacy function_call', async () => {
    const look = tool('look')
    const message = { content: null, function_call: { name: 'look', arguments: '{"at":1}' } }
    const body = completion(message, { finish_reason: 'function_call' })
    const { result } = await played([turn(body), text('Seen.')], { stream, tools: [look] })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Seen.', steps: 2 })
    expect(look.inputs).toEqual([{ at: 1 }])
  })
})

it('a function_call that is streamed in pieces is one call', async () => {
  const look = tool('look')
  const piece = (fields: object) => ({ choices: [{ index: 0, delta: { function_call: fields } }] })
  const pieces = [
    piece({ name: 'look', arguments: '' }),
    piece({ arguments: '{"at"' }),
    piece({ arguments: ':1}' }),
  ]
  const end = { choices: [{ index: 0, delta: {}, finish_reason: 'function_call' }] }
  const body = [...pieces, end].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
  const { result } = await played([{ raw: { body } }, text('Seen.')], { tools: [look] })
  expect(result.output).toBe('Seen.')
  expect(look.inputs).toEqual([{ at: 1 }])
})

it.each([true, false])(
  'calls without an id get ids that are unique in the session (stream: %s)',
  async (stream) => {
    const callTurn = () => document(completion({ tool_calls: [{ function: { name: 'look' } }] }))
    const theatre = await stage([callTurn(), callTurn(), text('Seen.'), callTurn(), text('Again.')], {
      stream,
      tools: [tool('look', () => Math.random())],
    })
    await theatre.run('Look.', { session: 's' }).end(3)
    const { messages } = await theatre.run('Again.', { session: 's' }).end(5)
    const ids = messages.flatMap((message) =>
      message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
    )
    expect(ids).toHaveLength(3)
    expect(new Set(ids).size).toBe(3)
    expect(ids.every((id) => /^call_\w{24}$/.test(id))).toBe(true)
  },
)

it.each([
  [
    'reasoning that is only in the total',
    { prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 },
    35,
    74,
  ],
  [
    'audio that is only in the total',
    {
      prompt_tokens: 3,
      completion_tokens: 1,
      total_tokens: 379,
      prompt_tokens_details: { audio_tokens: 375 },
    },
    378,
    1,
  ],
  ['a total that is too small', { prompt_tokens: 3, completion_tokens: 1, total_tokens: 2 }, 3, 1],
])('%s is counted', async (_name, usage, inputTokens, outputTokens) => {
  for (const stream of [true, false]) {
    const { result } = await played([document(completion({ content: 'Hi.' }, {}, usage))], { stream })
    expect(result.usage).toMatchObject({ inputTokens, outputTokens, estimated: false })
    expect(result.usage.totalTokens).toBe(inputTokens + outputTokens)
  }
})

it.each([
  { message: 'The total length of all messages is too long.', type: 'too_many_prompt_tokens' },
  { message: 'too many tokens: size limit exceeded by 1234', type: 'invalid_request_error' },
  { message: 'Number of input tokens exceeds maximum length', code: 'invalid_request' },
])('a request that is too long is recognized by its error message: $message', async (error) => {
  const { result } = await played([{ status: 400, error }])
  expect(result).toMatchObject({ state: 'ERROR', reason: 'context_overflow' })
})

it.each([401, '401'])('a status code is not an error code: %j', async (code) => {
  const body = JSON.stringify({ error: { message: 'Access denied.', code } })
  const { result } = await played([{ raw: { status: 401, body } }])
  expect(result.error?.code).toBe('http_401')
})

it.each(['48s', '47.5001s'])('a wait in the response body is used: %s', async (retryDelay) => {
  const details = [{ '@type': 'type.googleapis.com/google.rpc.QuotaFailure' }, { retryDelay }]
  const error = { code: 429, message: 'Resource exhausted.', status: 'RESOURCE_EXHAUSTED', details }
  const theatre = await stage([{ status: 429, error }, text('Thanks.')])
  const play = theatre.run().skipBackOff()
  const { delayMs } = await play.event('retry')
  expect(delayMs).toBe(Math.ceil(Number(retryDelay.slice(0, -1)) * 1000))
  expect((await play.end(2)).output).toBe('Thanks.')
})

describe('a custom provider', () => {
  it.each([
    { inputTokens: Number.NaN, outputTokens: 5 },
    { inputTokens: -1, outputTokens: 5 },
    { inputTokens: '10', outputTokens: '5' },
    { prompt_tokens: 10, completion_tokens: 5 },
    {},
    'many',
  ])('whose usage cannot be read is not free: %j', async (usage) => {
    const model = new ManualModel()
    const run = createAgent({ model }).run('Go.')
    const codes: string[] = []
    run.events$.subscribe((event) => {
      if (event.type === 'warning') codes.push(event.code)
    })
    await settled()
    model.pending?.answer({ text: 'Hello there.', usage: usage as ModelResponse['usage'] })
    const result = await run.result
    expect(result).toMatchObject({ state: 'COMPLETED', usage: { estimated: true } })
    expect(result.usage.inputTokens).toBeGreaterThan(0)
    expect(result.usage.outputTokens).toBeGreaterThan(0)
    expect(codes).toEqual(['missing_usage'])
  })

  it('whose failure cannot be read costs an estimate, and ends the run', async () => {
    const model = new ManualModel()
    const run = createAgent({ model }).run('Go.')
    await settled()
    const nonsense = { kind: 'odd', code: 7, usage: { inputTokens: Number.NaN }, partialText: 'Hel' }
    model.pending?.fail(nonsense as unknown as Parameters<typeof model.pending.fail>[0])
    const result = await run.result
    expect(result).toMatchObject({ state: 'ERROR', reason: 'provider_error', error: { code: 'unknown' } })
    expect(result.usage.inputTokens).toBeGreaterThan(0)
  })

  it('whose error is token_budget does not affect our budget', async () => {
    const model = new ManualModel()
    const run = createAgent({ model }).run('Go.')
    await settled()
    model.pending?.fail({ kind: 'fatal', code: 'token_budget', message: 'Your plan is used up.' })
    const result = await run.result
    expect(result).toMatchObject({
      state: 'ERROR',
      reason: 'provider_error',
      error: { code: 'provider_token_budget', message: 'Your plan is used up.' },
    })
  })
})

it('a server whose error is token_budget does not affect our budget', async () => {
  const error = { message: 'Your plan is used up.', code: 'token_budget' }
  const { result } = await played([call('look'), { status: 400, error }], { tools: [tool('look')] })
  expect(result).toMatchObject({ state: 'ERROR', reason: 'provider_error' })
})
