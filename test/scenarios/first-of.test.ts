import {
  type AgentEvent,
  type AgentOptions,
  ConfigError,
  createAgent,
  defineShield,
  withFallbacks,
  type MediaKind,
  memoryStore,
  type ModelProvider,
  openaiChat,
  openaiResponses,
  patternShield,
} from '../../src/index.js'
import { SimulatedClock } from 'xstate'
import { type Rehearsal, startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { until } from '../support/play.js'
import { tool } from '../support/tools.js'
import { sampledRows } from '../support/extent.js'

const rehearsals: Rehearsal[] = []

afterEach(async () => {
  await Promise.all(rehearsals.splice(0).map((one) => one.close()))
})

const prices = {
  one: { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000 },
  two: { inputPerMillion: 100, outputPerMillion: 100 },
}
const usage = { input: 10, output: 5 }
const noTokens = { cachedInputTokens: 0, reasoningTokens: 0 }
const overloaded: Turn = { status: 503, error: { message: 'Too many people.', code: 'overloaded' } }

/**
 * Two models, each behind a separate server. The first uses the Responses API, the second Chat Completions.
 */
async function theatre(first: Turn[], second: Turn[], options: Partial<AgentOptions> = {}) {
  const [one, two] = await Promise.all(
    [first, second].map((turns) => startRehearsal({ scenario: { turns }, strict: true })),
  )
  if (!one || !two) throw new Error('There are two.')
  rehearsals.push(one, two)
  const clock = new SimulatedClock()
  const agent = () =>
    createAgent({
      model: withFallbacks([
        openaiResponses({ model: 'one', provider: 'p', baseURL: one.url, apiKey: 'none' }),
        openaiChat({ model: 'two', provider: 'q', baseURL: two.url, apiKey: 'none' }),
      ]),
      tools: [tool('look', () => 'seen')],
      prices,
      clock,
      ...options,
    })
  const play = async (input: string, session = 's') => {
    const run = agent().run(input, { session })
    const events: AgentEvent[] = []
    run.events$.subscribe((event) => {
      events.push(event)
      if (event.type === 'retry' && event.delayMs > 0) queueMicrotask(() => clock.increment(event.delayMs))
    })
    const result = await run.result
    return { result, events, retries: events.filter((event) => event.type === 'retry') }
  }
  return { one, two, clock, agent, play }
}

describe.each(sampledRows([true, false]))('the first of several models (stream: %s)', (stream) => {
  it('answers, and if it is overloaded the next model answers for the rest of the run', async () => {
    const { one, two, play } = await theatre(
      [overloaded, { text: 'I am back.', usage }],
      [
        { toolCalls: [{ name: 'look' }], usage },
        { text: 'Done.', usage },
      ],
      { stream, store: memoryStore() },
    )
    const { result, events, retries } = await play('Go.')
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.', steps: 2 })
    expect(retries).toMatchObject([{ delayMs: 0, attempt: 1, code: 'overloaded', model: 'two' }])
    expect(retries[0]).toMatchObject({
      message: expect.stringMatching(/Too many people.* Asking two \(q\) instead\.$/),
    })
    expect([one.requests.length, two.requests.length]).toEqual([1, 2])
    expect(result.usage).toMatchObject({ totalTokens: 30, cost: 30 * 1e-4 })
    expect(
      result.messages.map((message) => message.role === 'assistant' && message.by).filter(Boolean),
    ).toEqual(['q/two', 'q/two'])
    expect(events.filter(({ type }) => type === 'usage')).toHaveLength(2)
    const next = await play('And now?')
    expect(next.result.output).toBe('I am back.')
    expect(one.requests).toHaveLength(2)
    expect(next.result.usage.cost).toBe(15)
  })

  it.each([
    ['a rate limit', { status: 429, retryAfter: 60 }, 1],
    ['an exhausted account', { status: 429, error: { message: 'Pay.', code: 'insufficient_quota' } }, 1],
    ['a cut connection', { text: 'Half', cutAfter: 0 }, 1],
    ['an invalid request', { status: 400, error: { message: 'No.', code: 'bad' } }, 0],
    ['a refused key', { status: 401, error: { message: 'Who?', code: 'invalid_api_key' } }, 0],
  ])('%s: whether another model may do better', async (_what, turn, question) => {
    const { two, play } = await theatre([turn], [{ text: 'Hi.', usage }], {
      stream,
      retry: { maxAttempts: 1 },
    })
    const { result } = await play('Go.')
    expect(two.requests).toHaveLength(question)
    expect(result.state).toBe(question === 1 ? 'COMPLETED' : 'ERROR')
  })

  it('all fail like a single model, and are requested again in order', async () => {
    const { one, two, play } = await theatre([overloaded, { text: 'Hi.', usage }], [overloaded], { stream })
    const { result, retries } = await play('Go.')
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Hi.' })
    expect(retries.map((event) => [event.attempt, 'model' in event])).toEqual([
      [1, true],
      [2, false],
    ])
    expect([one.requests.length, two.requests.length]).toEqual([2, 1])
  })

  it.each([
    ['has an exhausted account', { status: 402, error: { message: 'Pay.', code: 'no_credit' } }],
    ['is out of quota', { status: 429, error: { message: 'Pay.', code: 'insufficient_quota' } }],
  ])('one that %s does not exclude the other, which is overloaded', async (_what, turn) => {
    const { one, two, play } = await theatre([overloaded, { text: 'Hi.', usage }], [turn], { stream })
    const { result, retries } = await play('Go.')
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Hi.', usage: { totalTokens: 15 } })
    expect(retries.map(({ code }) => code)).toEqual(['overloaded', 'overloaded'])
    expect([one.requests.length, two.requests.length]).toEqual([2, 1])
  })

  it('one that accepts no pictures does not exclude it either', async () => {
    const { one, two, clock } = await theatre([overloaded, { text: 'A dot.', usage }], [{ text: 'Never.' }])
    const make = (name: string, { url: baseURL }: Rehearsal, media: MediaKind[]) =>
      openaiChat({ model: name, baseURL, apiKey: 'none', media })
    const model = withFallbacks([make('seeing', one, ['image']), make('blind', two, [])])
    const run = createAgent({ model, stream, clock }).run([{ type: 'image', image: 'iVBORw0KGgo=' }])
    run.events$.subscribe((event) => {
      if (event.type === 'retry' && event.delayMs > 0) queueMicrotask(() => clock.increment(event.delayMs))
    })
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'A dot.' })
    expect([one.requests.length, two.requests.length]).toEqual([2, 0])
  })

  it('provider data of one model is sent to no other', async () => {
    const { two, play } = await theatre(
      [{ reasoning: 'I think.', text: 'Wait.', toolCalls: [{ name: 'look' }], usage }, overloaded],
      [{ text: 'Done.', usage }],
      { stream },
    )
    const { result } = await play('Go.')
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(JSON.stringify(result.messages)).toContain('encrypted_content')
    expect(two.requests[0]?.body.messages[1]).toEqual({
      role: 'assistant',
      content: 'Wait.',
      tool_calls: [{ id: 'call_1_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    })
    expect(result.usage.cost).toBeCloseTo(15 + 15 * 1e-4, 9)
  })

  it('the choice survives the process', async () => {
    const store = memoryStore()
    const { one, two, agent, play } = await theatre(
      [overloaded],
      [
        { toolCalls: [{ name: 'ask' }], usage },
        { text: 'Done.', usage },
      ],
      { stream, store, tools: [tool('ask', () => 'yes', { needsApproval: true })] },
    )
    expect((await play('Go.')).result.state).toBe('WAITING_FOR_INPUT')
    const run = await agent().resume('s')
    for (const pending of (await run.result).pending ?? []) run.approve(pending)
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect([one.requests.length, two.requests.length]).toEqual([1, 2])
  })
})

it('text of an abandoned model is retracted, and paid for', async () => {
  const error = { message: 'It broke.', code: 'server_error' }
  const { play } = await theatre(
    [{ text: 'Half an answer', chunkSize: 4, errorInStream: { after: 2, error } }],
    [{ text: 'Whole.', usage }],
  )
  const { result, events } = await play('Go.')
  expect(result).toMatchObject({ state: 'COMPLETED', output: 'Whole.', usage: { estimated: true } })
  const shown = events.flatMap((event) => (event.type === 'stream_chunk' ? [event] : []))
  const resets = shown.filter(({ reset }) => reset)
  expect(resets).toHaveLength(1)
  const after = shown.slice(shown.indexOf(resets[0] as (typeof shown)[number]))
  expect(after.map(({ text }) => text).join('')).toBe('Whole.')
  expect(shown.filter(({ finished }) => finished)).toHaveLength(1)
  // The first model's tokens are estimated at its price.
  expect(result.usage.cost).toBeGreaterThan(1)
})

it.each([
  ['cancelled', { text: 'Half of mine', chunkSize: 4, hang: 2 } as Turn],
  [
    'broken',
    {
      text: 'Half of mine',
      chunkSize: 4,
      errorInStream: { after: 2, error: { message: 'No.', code: 'bad' } },
    },
  ],
])('a fallback that is %s midway costs the output of each model, at its own price', async (how, turn) => {
  const error = { message: 'It broke.', code: 'server_error' }
  const { two, agent } = await theatre(
    [{ text: 'Half an answer', chunkSize: 4, errorInStream: { after: 2, error } }],
    [turn],
    { retry: { maxAttempts: 1 } },
  )
  const run = agent().run('Go.')
  let received = ''
  run.text$.subscribe((text) => (received += text))
  if (how === 'cancelled') {
    await until(() => two.requests.length === 1 && received.endsWith(' of '))
    run.cancel()
  }
  const { state, usage } = await run.result
  expect(state).toBe(how === 'cancelled' ? 'CANCELLED' : 'ERROR')
  // Both used the same number of tokens. The second costs a ten-thousandth.
  const half = usage.totalTokens / 2
  expect(usage).toMatchObject({ estimated: true, outputTokens: 4 })
  expect(usage.cost).toBeCloseTo(half + half * 1e-4, 9)
})

it('an answer that is stopped during output shields is paid for', async () => {
  let isLooking = false
  const check = () => {
    isLooking = true
    return new Promise<never>(() => undefined)
  }
  const { agent } = await theatre([{ text: 'Hi.', usage }], [{ text: 'Never.' }], {
    stream: false,
    shields: { output: [defineShield({ name: 'slow', check })] },
  })
  const run = agent().run('Go.')
  await until(() => isLooking)
  run.cancel()
  expect(await run.result).toMatchObject({
    state: 'CANCELLED',
    usage: { totalTokens: 15, cost: 15, estimated: false },
  })
})

it('a summary that is stopped midway is paid for, too', async () => {
  let isSummingUp = false
  const model: ModelProvider = {
    provider: 'p',
    model: 'one',
    request: async ({ instructions }, { signal, onDelta }) => {
      if (instructions?.startsWith('You take notes')) {
        onDelta('So far', '')
        isSummingUp = true
        await new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(new Error('x'))),
        )
      }
      const toolCalls = [{ id: '', type: 'function' as const, function: { name: 'look', arguments: '{}' } }]
      const tokens = { ...noTokens, inputTokens: 1, outputTokens: 1, totalTokens: 2 }
      return {
        text: '',
        reasoning: '',
        refusal: null,
        toolCalls,
        finishReason: 'stop',
        complete: true,
        usage: tokens,
        model: null,
      }
    },
  }
  const run = createAgent({
    model,
    prices,
    tools: [tool('look', () => 'word '.repeat(60))],
    context: { window: 260, strategy: 'summarize' },
    tokenizer: { count: (text) => Math.ceil(text.length / 4) },
    guardrails: { progress: null },
  }).run('Go.')
  await until(() => isSummingUp)
  run.cancel()
  const { state, steps, usage: spent } = await run.result
  expect(state).toBe('CANCELLED')
  expect(spent.totalTokens).toBeGreaterThan(2 * steps)
  expect(spent).toMatchObject({ cost: spent.totalTokens, estimated: true })
})

it('shields check each model’s answer separately, and abandoned text is not shown', async () => {
  const error = { message: 'It broke.', code: 'server_error' }
  const { play } = await theatre(
    [{ text: `The secret is swordfish. ${'word '.repeat(100)}`, errorInStream: { after: 30, error } }],
    [{ text: 'Whole.', usage }],
    { shields: { output: [patternShield({ name: 'numbers', patterns: [/swordfish/], action: 'block' })] } },
  )
  const { result, events } = await play('Go.')
  expect(result).toMatchObject({ state: 'COMPLETED', output: 'Whole.' })
  expect(JSON.stringify(events)).not.toContain('swordfish')
})

it('a silent model is abandoned, too, and the next model makes the next attempt', async () => {
  const { one, two, clock, play } = await theatre([{ hang: true }], [{ text: 'Hi.', usage }], {
    streamIdleMs: 1_000,
  })
  const playing = play('Go.')
  await until(() => one.requests.length === 1)
  clock.increment(1_000)
  const { result, retries } = await playing
  expect(result).toMatchObject({ state: 'COMPLETED', output: 'Hi.' })
  expect(two.requests).toHaveLength(1)
  expect(retries.map(({ code }) => code)).toEqual(['idle_timeout', 'idle_timeout'])
})

it('a cancelled run requests no other model', async () => {
  const { one, two, agent } = await theatre([{ hang: true }], [{ text: 'Hi.' }])
  const run = agent().run('Go.')
  await until(() => one.requests.length === 1)
  run.cancel()
  expect((await run.result).state).toBe('CANCELLED')
  expect(two.requests).toHaveLength(0)
})

it('a cost limit needs the prices of all models', async () => {
  const { one, agent } = await theatre([overloaded], [overloaded], {
    limits: { costLimit: 1 },
    prices: { one: prices.one },
  })
  await expect(agent().run('Go.').result).rejects.toMatchObject({
    code: 'unknown_price',
    message: expect.stringContaining("the price of 'two' (q)"),
  })
  expect(one.requests).toHaveLength(0)
})

const good = openaiChat({ model: 'm', baseURL: 'http://127.0.0.1:9/v1', apiKey: 'none' })

it.each([
  ['an empty list', [], /needs a list of models/],
  ['not a list', good, /needs a list of models/],
  ['not a model', [good, 'gpt-5'], /models\[1\] must be a model/],
])('%s is refused', (_what, models, sentence) => {
  const make = () => withFallbacks(models as ModelProvider[])
  expect(make).toThrow(ConfigError)
  expect(make).toThrow(sentence)
})

it('a nested list is flattened', () => {
  const names = withFallbacks([good, withFallbacks([good, good])]).fallbacks?.map(({ model }) => model)
  expect(names).toEqual(['m', 'm'])
})
