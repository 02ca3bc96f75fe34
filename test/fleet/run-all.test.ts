import { SimulatedClock } from 'xstate'
import * as fc from 'fast-check'
import { runItems } from '../../src/fleet/run-all.js'
import { type BatchItem, type BatchProgress, createBudget, runAll } from '../../src/fleet/index.js'
import {
  type Agent,
  createAgent,
  memoryStore,
  ModelError,
  type ModelProvider,
  type RunResult,
  secretsShield,
  type SessionStore,
  StoreError,
  systemClock,
} from '../../src/index.js'
import { distant } from '../support/distant.js'
import { call, ManualModel, plainAnswer, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'
import { sampled, sampledKinds } from '../support/extent.js'

const items = (count: number): BatchItem[] =>
  Array.from({ length: count }, (_, i) => ({ id: `i${i}`, input: `Question ${i}` }))

async function collect<Value>(results: AsyncIterable<Value>): Promise<Value[]> {
  const all: Value[] = []
  for await (const result of results) all.push(result)
  return all
}

const outputs = (results: { result: RunResult | null }[]) => results.map(({ result }) => result?.output)

/** Runs ready work until the condition holds. */
async function until(holds: () => unknown): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i += 1) await settled()
}

type Words = (prompt: string) => string | Promise<string>

/** A model that echoes the last message and counts concurrent requests. */
function echo(words: Words = (prompt) => `You said: ${prompt}`) {
  const log = { requests: [] as string[], most: 0 }
  let now = 0
  const model: ModelProvider = {
    provider: 'played',
    model: 'echo',
    request: async ({ messages }) => {
      const prompt = messages.at(-1)?.content as string
      log.requests.push(prompt)
      now += 1
      log.most = Math.max(log.most, now)
      try {
        return { ...plainAnswer, text: await words(prompt) }
      } finally {
        now -= 1
      }
    },
  }
  return { model, log }
}

const stores: [string, () => SessionStore | undefined][] = [
  ['a store', () => memoryStore()],
  ['a store that answers later', () => distant(memoryStore())],
  ['no store', () => undefined],
]

describe.each(sampledKinds(stores))('with %s', (_name, open) => {
  test('results arrive in the order of the items, with the configured concurrency', async () => {
    const waiting: (() => void)[] = []
    const { model, log } = echo(
      (prompt) => new Promise((resolve) => waiting.unshift(() => resolve(prompt.toUpperCase()))),
    )
    const store = open()
    const agent = createAgent({ model, ...(store && { store }) })
    const running = collect(runAll(agent, items(7), { id: 'b', concurrency: 3 }))
    for (let left = 7; left > 0; left -= 1) {
      await until(() => waiting.length >= Math.min(3, left))
      waiting.shift()?.()
    }
    const results = await running
    expect(results.map(({ item, session }) => [item.id, session])).toEqual(
      items(7).map(({ id }) => [id, `b.${id}`]),
    )
    expect(outputs(results)).toEqual(items(7).map((_item, i) => `QUESTION ${i}`))
    expect(log.most).toBe(3)
  })

  test('an item that cannot run is reported, and the others continue', async () => {
    const { model } = echo((prompt) => {
      if (prompt !== 'Question 1') return prompt
      throw new ModelError({ kind: 'fatal', code: 'no_luck', message: 'No luck.' })
    })
    const store = open()
    const agent = createAgent({ model, ...(store && { store }) })
    const batchItems = [
      ...items(3),
      { id: 'i3', input: '' },
      { id: 'a b', input: 'Go.' },
      ...items(6).slice(4),
    ]
    const results = await collect(runAll(agent, batchItems, { id: 'b' }))
    expect(results.map(({ result, error }) => result?.state ?? error?.code)).toEqual([
      'COMPLETED',
      'ERROR',
      'COMPLETED',
      'invalid_input',
      'invalid_input',
      'COMPLETED',
      'COMPLETED',
    ])
    expect(results[4]?.error?.message).toMatch(/Item 'a b' has the id "a b"\. Use letters/)
  })

  test('its items spend from the budgets of the batch, and an item that they cannot pay for reports it', async () => {
    const { model, log } = echo()
    const usage = {
      inputTokens: 10,
      outputTokens: 200,
      totalTokens: 210,
      cachedInputTokens: 0,
      reasoningTokens: 0,
    }
    const costly: ModelProvider = {
      ...model,
      request: async (...args) => ({ ...(await model.request(...args)), usage }),
    }
    const store = open()
    const budget = createBudget({ id: 'batch', tokens: 300, store: memoryStore() })
    const agent = createAgent({ model: costly, sampling: { maxTokens: 250 }, ...(store && { store }) })
    const results = await collect(runAll(agent, items(3), { id: 'b', concurrency: 1, budgets: [budget] }))
    expect(results.map(({ result }) => [result?.state, result?.reason])).toEqual([
      ['COMPLETED', 'end_turn'],
      ['BUDGET_EXCEEDED', 'shared_budget'],
      ['BUDGET_EXCEEDED', 'shared_budget'],
    ])
    expect(log.requests).toHaveLength(1)
    expect((await budget.status()).spent.tokens).toBe(210)
    expect(() => runAll(agent, items(1), { id: 'b', budgets: [{}] as never })).toThrow(
      expect.objectContaining({ code: 'invalid_config', subject: 'budgets[0]' }),
    )
  })

  test('onProgress receives the state of the batch, and its remaining time', async () => {
    const clock = new SimulatedClock()
    const { model } = echo((prompt) => {
      clock.increment(1000)
      if (prompt !== 'Question 2') return prompt
      throw new ModelError({ kind: 'fatal', code: 'no_luck', message: 'No luck.' })
    })
    const store = open()
    const prices = { echo: { inputPerMillion: 1_000_000, outputPerMillion: 0 } }
    const agent = createAgent({ model, clock, prices, ...(store && { store }) })
    const reports: BatchProgress[] = []
    const onProgress = (progress: BatchProgress): void => void reports.push(progress)
    await collect(runAll(agent, items(4), { id: 'b', concurrency: 1, onProgress }))
    expect(reports[0]).toEqual({
      total: 4,
      done: 0,
      running: 1,
      waiting: 0,
      failed: 0,
      cost: 0,
      timeLeftMs: null,
    })
    expect(reports.find(({ done }) => done === 1)).toMatchObject({ running: 1, cost: 10, timeLeftMs: 3000 })
    expect(reports.at(-1)).toEqual({ ...reports[0], done: 3, running: 0, failed: 1, cost: 30, timeLeftMs: 0 })
  })

  test('leaving the loop parks the batch', async () => {
    const { model, log } = echo()
    const store = open()
    const agent = createAgent({ model, ...(store && { store }) })
    let isOpen = true
    async function* stream() {
      try {
        yield* items(50)
      } finally {
        isOpen = false
      }
    }
    for await (const { item } of runAll(agent, stream(), { id: 'b', concurrency: 2 })) {
      if (item.id === 'i1') break
    }
    const requests = log.requests.length
    await settled()
    expect(log.requests.length).toBe(requests)
    expect(requests).toBeLessThan(10)
    expect(isOpen).toBe(false)
    for (const { id } of items(50)) {
      expect((await store?.get(`b.${id}`))?.holder ?? null).toBeNull()
    }
  })
})

test('the same call continues: completed items do not run again, and the results are the same', async () => {
  const paid: string[] = []
  const pay = tool('pay', ({ text }) => void paid.push(String(text)))
  const model: ModelProvider = {
    provider: 'played',
    model: 'payer',
    request: async ({ messages }) => {
      const last = messages.at(-1)
      return last?.role === 'tool'
        ? { ...plainAnswer, text: 'Paid.' }
        : {
            ...plainAnswer,
            toolCalls: [call('a', 'pay', { text: last?.content })],
            finishReason: 'tool_calls',
          }
    },
  }
  const store = memoryStore()
  const open = () => createAgent({ model, store, tools: [pay] })
  const stop = new AbortController()
  const first: string[] = []
  for await (const { item } of runAll(open(), items(9), { id: 'b', concurrency: 2, signal: stop.signal })) {
    first.push(item.id)
    if (item.id === 'i3') stop.abort()
  }
  expect(first).toEqual(['i0', 'i1', 'i2', 'i3'])
  const whole = await collect(runAll(open(), items(9), { id: 'b', concurrency: 2 }))
  const again = await collect(runAll(open(), items(9), { id: 'b' }))
  expect(whole.map(({ result }) => result?.state)).toEqual(Array.from({ length: 9 }, () => 'COMPLETED'))
  expect(again).toEqual(whole)
  expect(paid.toSorted()).toEqual(items(9).map(({ input }) => input))
})

test('a waiting item has a waiting result, and continues after the answer', async () => {
  const pay = tool('pay', () => 'paid', { needsApproval: true })
  const model: ModelProvider = {
    provider: 'played',
    model: 'payer',
    request: async ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? { ...plainAnswer, text: 'Paid.' }
        : { ...plainAnswer, toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' },
  }
  const agent = createAgent({ model, store: memoryStore(), tools: [pay] })
  const reports: BatchProgress[] = []
  const options = { id: 'b', onProgress: (progress: BatchProgress) => void reports.push(progress) }
  const [waiting] = await collect(runAll(agent, items(1), options))
  expect(waiting?.result).toMatchObject({ state: 'WAITING_FOR_INPUT', pending: [{ name: 'pay' }] })
  expect(reports.at(-1)).toMatchObject({ done: 0, waiting: 1, failed: 0, running: 0 })
  await agent.send('b.i0', { type: 'approve', ...waiting?.result?.pending?.[0] } as never)
  const [done] = await collect(runAll(agent, items(1), options))
  expect(done?.result).toMatchObject({ state: 'COMPLETED', output: 'Paid.' })
})

test('a session that another process holds is awaited, and others take its place', async () => {
  const clock = new SimulatedClock()
  const store = memoryStore({ now: () => clock.now() })
  const lease = store.acquire('b.i0', { holder: 'another', ttlMs: 30_000 })
  const { model, log } = echo()
  const agent = createAgent({ model, store, clock })
  const reports: BatchProgress[] = []
  const onProgress = (progress: BatchProgress): void => void reports.push(progress)
  const running = collect(runAll(agent, items(3), { id: 'b', concurrency: 1, onProgress }))
  await until(() => reports.at(-1)?.done === 2)
  expect(log.requests).toEqual(['Question 1', 'Question 2'])
  expect(reports.at(-1)).toMatchObject({ done: 2, waiting: 1, running: 0 })
  store.release(lease)
  clock.increment(1000)
  expect(outputs(await running)).toEqual(items(3).map(({ input }) => `You said: ${input as string}`))
})

test('a session that was started with another input is not a result of this batch', async () => {
  const { model } = echo()
  const store = memoryStore()
  const agent = createAgent({ model, store })
  await collect(runAll(agent, items(2), { id: 'b' }))
  const changed = [{ id: 'i0', input: 'Something else' }, ...items(2).slice(1)]
  const [first, second] = await collect(runAll(agent, changed, { id: 'b' }))
  expect(first).toMatchObject({ result: null, error: { code: 'input_changed', subject: 'b.i0' } })
  expect(second?.result?.state).toBe('COMPLETED')
})

test.each<[string, (BatchItem['input'] & readonly unknown[])[number]]>([
  ['question', { role: 'user', content: 'How many in March?' }],
  ['answer', { role: 'assistant', content: 'Eight.' }],
])('a session that was started with another earlier %s is not a result of this batch', async (_, changed) => {
  const { model } = echo()
  const agent = createAgent({ model, store: memoryStore() })
  const history = [
    { role: 'user', content: 'How many in April?' },
    { role: 'assistant', content: 'Seven.' },
    { role: 'user', content: 'And in May?' },
  ] as const
  const itemOf = (input: readonly unknown[]) => [{ id: 'i0', input }] as BatchItem[]
  await collect(runAll(agent, itemOf(history), { id: 'b' }))
  const at = history.findIndex(({ role }) => role === (changed as { role: string }).role)
  const [only] = await collect(runAll(agent, itemOf(history.with(at, changed as never)), { id: 'b' }))
  expect(only).toMatchObject({ result: null, error: { code: 'input_changed', subject: 'b.i0' } })
})

test('a store that throws anything ends a batch with a typed error, and a store that hangs in time', async () => {
  const clock = new SimulatedClock()
  const inner = memoryStore()
  let get: SessionStore['get'] = () => Promise.reject('No.' as unknown as Error)
  const store: SessionStore = { ...inner, get: (id) => get(id) }
  const agent = createAgent({ model: echo().model, store, clock, storeTimeoutMs: 5000 })
  const failed = { code: 'store_unavailable', subject: 'b.i0' }
  await expect(collect(runAll(agent, items(1), { id: 'b' }))).rejects.toMatchObject(failed)
  get = () => new Promise(() => undefined)
  const hanging = collect(runAll(agent, items(1), { id: 'b' }))
  const refused = expect(hanging).rejects.toMatchObject(failed)
  await settled()
  clock.increment(5000)
  await refused
})

test('a session that was started with another input is refused before it continues', async () => {
  const paid: string[] = []
  const manual = new ManualModel()
  const pay = tool('pay', () => {
    paid.push('Ann')
    return 'paid'
  })
  const store = memoryStore()
  const agent = createAgent({ model: manual, store, tools: [pay] })
  const stop = new AbortController()
  const first = collect(runAll(agent, [{ id: '1', input: 'Pay Ann.' }], { id: 'bills', signal: stop.signal }))
  await until(() => manual.pending)
  stop.abort()
  expect(await first).toEqual([])
  manual.request = () =>
    Promise.resolve({ ...plainAnswer, toolCalls: [call('c1', 'pay', {})], finishReason: 'tool_calls' })
  const head = store.get('bills.1')?.head
  const [second] = await collect(runAll(agent, [{ id: '1', input: 'Look at Bob.' }], { id: 'bills' }))
  expect(second).toMatchObject({ result: null, error: { code: 'input_changed' } })
  expect([paid, store.get('bills.1')?.head]).toEqual([[], head])
})

test.each(sampledKinds(['synchronously', 'asynchronously']))(
  'the same batch retries items that a shared budget cannot pay for, in a store that answers %s',
  async (kind) => {
    const { model, log } = echo()
    const inner = memoryStore()
    const store: SessionStore = kind === 'synchronously' ? inner : distant(inner)
    const budgetOf = (tokens: number) => createBudget({ id: 'tenant', tokens, store: inner })
    const agent = createAgent({ model, store, sampling: { maxTokens: 100 } })
    const reports: BatchProgress[] = []
    const run = (tokens: number) =>
      collect(
        runAll(agent, items(6), {
          id: 'b',
          concurrency: 3,
          budgets: [budgetOf(tokens)],
          onProgress: (progress) => void reports.push(progress),
        }),
      )
    const states = (results: { result: RunResult | null }[]) => results.map(({ result }) => result?.state)
    const few = states(await run(130))
    expect(few.filter((state) => state === 'BUDGET_EXCEEDED').length).toBeGreaterThan(2)
    expect(reports.at(-1)).toMatchObject({
      failed: 0,
      waiting: few.filter((state) => state !== 'COMPLETED').length,
    })
    await budgetOf(100_000).replaceLimits()
    const requests = log.requests.length
    expect(states(await run(100_000))).toEqual(items(6).map(() => 'COMPLETED'))
    // Answered items are not requested again.
    expect(log.requests.length - requests).toBe(few.filter((state) => state !== 'COMPLETED').length)
  },
)

test('failed items stay failed, and get one more run with retryFailed', async () => {
  let isDown = true
  const { model, log } = echo((prompt) => {
    if (isDown && prompt !== 'Question 0')
      throw new ModelError({ kind: 'fatal', code: 'down', message: 'Down.' })
    return `You said: ${prompt}`
  })
  const agent = createAgent({ model, store: memoryStore() })
  const states = async (options: object) =>
    (await collect(runAll(agent, items(3), { id: 'b', ...options }))).map(({ result }) => result?.state)
  const failed = ['COMPLETED', 'ERROR', 'ERROR']
  expect(await states({})).toEqual(failed)
  isDown = false
  expect(await states({})).toEqual(failed)
  expect(log.requests.length).toBe(3)
  expect(await states({ retryFailed: true })).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED'])
  expect(await states({ retryFailed: true })).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED'])
  expect(log.requests.length).toBe(5)
})

test('an input that a shield has changed is recognized', async () => {
  const { model } = echo()
  const shields = { input: [secretsShield({ action: 'redact' })] }
  const agent = createAgent({ model, store: memoryStore(), shields })
  const secret = [{ id: 'i0', input: 'The key is sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH.' }]
  const [first] = await collect(runAll(agent, secret, { id: 'b' }))
  const [second] = await collect(runAll(agent, secret, { id: 'b' }))
  expect(first?.result).toMatchObject({
    state: 'COMPLETED',
    output: expect.not.stringContaining('sk-abc') as string,
  })
  expect(second).toEqual(first)
})

test('a conversation is an input, and tags find the session', async () => {
  const { model } = echo()
  const store = memoryStore()
  const agent = createAgent({ model, store })
  const history = [
    { role: 'user', content: 'How many in April?' },
    { role: 'assistant', content: 'Seven.' },
    { role: 'user', content: 'And in May?' },
  ] as const
  const batchItems = [{ id: 'i0', input: history, tags: { user: 'ann' }, more: 17 }]
  for (let i = 0; i < 2; i += 1) {
    const [only] = await collect(runAll(agent, batchItems, { id: 'b' }))
    expect(only?.item.more).toBe(17)
    expect(only?.result?.output).toBe('You said: And in May?')
  }
  expect(store.list({ tags: { user: 'ann' } }).map(({ id }) => id)).toEqual(['b.i0'])
})

test("an app's own object reaches the tools", async () => {
  const seen: unknown[] = []
  const look = tool('look', (_input, { context }) => void seen.push(context), { readOnly: true })
  const model: ModelProvider = {
    provider: 'played',
    model: 'looker',
    request: async ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? { ...plainAnswer, text: 'Seen.' }
        : { ...plainAnswer, toolCalls: [call('a', 'look')], finishReason: 'tool_calls' },
  }
  const context = { tenant: 'acme' }
  await collect(
    runAll(createAgent({ model, store: memoryStore(), tools: [look] }), items(1), { id: 'b', context }),
  )
  await collect(runAll(createAgent({ model, tools: [look] }), items(1), { id: 'b', context }))
  expect(seen).toEqual([context, context])
})

test('items are read on demand, at most look-ahead items ahead of the results', async () => {
  const manual = new ManualModel()
  // The first item hangs. All others complete.
  const model: ModelProvider = {
    ...echo().model,
    request: (input, options) =>
      input.messages.at(-1)?.content === 'Question 0'
        ? manual.request(input, options)
        : Promise.resolve({ ...plainAnswer, text: 'Yes.' }),
  }
  let read = 0
  function* stream() {
    for (const item of items(70)) {
      read += 1
      yield item
    }
  }
  const reports: BatchProgress[] = []
  const store = memoryStore()
  const batch = runItems({
    agent: createAgent({ model, store }),
    store,
    retryFailed: false,
    isRedacted: false,
    clock: systemClock,
    source: stream(),
    lookAhead: 40,
    id: 'b',
    concurrency: 4,
    onProgress: (progress) => void reports.push(progress),
    total: null,
  })
  const running = collect(batch)
  await until(() => reports.at(-1)?.done === 39)
  for (let i = 0; i < 100; i += 1) await settled()
  expect(read).toBe(40)
  expect(reports.at(-1)).toMatchObject({ done: 39, running: 1, total: null, timeLeftMs: null })
  manual.pending?.answer({ text: 'At last.' })
  const results = await running
  expect(results.map(({ item }) => item)).toEqual(items(70))
  expect(results[0]?.result?.output).toBe('At last.')
})

test('a stream that waits for its next item does not prevent parking', async () => {
  const stop = new AbortController()
  async function* stream() {
    yield* items(1)
    await new Promise(() => undefined)
  }
  const { model } = echo()
  const agent = createAgent({ model, store: memoryStore() })
  const results: string[] = []
  for await (const { item } of runAll(agent, stream(), { id: 'b', signal: stop.signal })) {
    results.push(item.id)
    setImmediate(() => stop.abort())
  }
  expect(results).toEqual(['i0'])
})

describe('the end of a batch', () => {
  const { model } = echo()
  const agent = createAgent({ model, store: memoryStore() })

  test.each([
    ['two items with one id', [...items(2), ...items(1)], { code: 'duplicate_item', subject: 'i0' }],
    ['an item without an id', [...items(2), { input: 'Go.' }], { code: 'invalid_item', subject: 'items[2]' }],
    ['an invalid item', [...items(2), 'Go.'], { code: 'invalid_item', subject: 'items[2]' }],
  ])('%s: after the earlier results', async (_name, input, error) => {
    const done: string[] = []
    const run = async (): Promise<void> => {
      for await (const { item } of runAll(agent, input as BatchItem[], { id: 'b' })) done.push(item.id)
    }
    await expect(run()).rejects.toMatchObject(error)
    expect(done).toEqual(['i0', 'i1'])
  })

  test('by an agent that cannot run, an unavailable store, and a stream that fails', async () => {
    const check = (): void => {
      throw new TypeError('No key.')
    }
    const keyless = createAgent({ model: { ...model, check }, store: memoryStore() })
    await expect(collect(runAll(keyless, items(3), { id: 'b' }))).rejects.toThrow('No key.')

    const near = memoryStore()
    const acquire = (): never => {
      throw new StoreError('store_unavailable', 'The disk is away.')
    }
    const storeless = createAgent({ model, store: { ...near, acquire } })
    await expect(collect(runAll(storeless, items(3), { id: 'b' }))).rejects.toMatchObject({
      code: 'store_unavailable',
    })

    async function* failing() {
      yield* items(2)
      throw new RangeError('The disk is gone.')
    }
    await expect(collect(runAll(agent, failing(), { id: 'c' }))).rejects.toThrow('The disk is gone.')
  })

  test.each([
    ['an item starts', items(2)],
    ['an item is refused', [{ id: 'i0', input: '' }]],
  ])('by onProgress, which throws when %s', async (_name, input) => {
    const onProgress = (): void => {
      throw new RangeError('No screen.')
    }
    await expect(collect(runAll(agent, input, { id: 'd', onProgress }))).rejects.toThrow('No screen.')
  })

  test('by an already aborted signal: nothing starts', async () => {
    const probe = echo()
    const idle = createAgent({ model: probe.model, store: memoryStore() })
    expect(await collect(runAll(idle, items(3), { id: 'b', signal: AbortSignal.abort() }))).toEqual([])
    expect(probe.log.requests).toEqual([])
  })
})

test.each([
  ['no id', {}, 'id'],
  ['an id with a dot', { id: 'a.b' }, 'id'],
  ['an id with a slash', { id: 'a/b' }, 'id'],
  ['a concurrency of zero', { id: 'b', concurrency: 0 }, 'concurrency'],
  ['a concurrency of one half', { id: 'b', concurrency: 1.5 }, 'concurrency'],
  ['an invalid signal', { id: 'b', signal: {} }, 'signal'],
  ['an invalid listener', { id: 'b', onProgress: 'log' }, 'onProgress'],
  ['a negative number', { id: 'b', total: -1 }, 'total'],
  ['an unknown option', { id: 'b', parallel: 4 }, 'parallel'],
])('%s is refused immediately, naming the option', (_name, options, subject) => {
  const agent = createAgent({ model: echo().model })
  expect(() => runAll(agent, [], options as never)).toThrow(
    expect.objectContaining({ code: 'invalid_option', subject }),
  )
})

test('invalid agents and lists are refused', () => {
  const agent = createAgent({ model: echo().model })
  expect(() => runAll({} as Agent, [], { id: 'b' })).toThrow(
    expect.objectContaining({ code: 'invalid_argument', subject: 'agent' }),
  )
  expect(() => runAll(agent, 17 as never, { id: 'b' })).toThrow(
    expect.objectContaining({ code: 'invalid_argument', subject: 'items' }),
  )
})

test('a batch that is parked any number of times gives the same results, for any failing item', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.nat({ max: 30 }), { maxLength: 3 }),
      fc.uniqueArray(fc.nat({ max: 7 }), { maxLength: 3 }),
      async (count, concurrency, stops, failing) => {
        const answers: Words = async (prompt) => {
          await settled()
          if (!failing.some((i) => prompt === `Question ${i}`)) return prompt
          throw new ModelError({ kind: 'fatal', code: 'no_luck', message: 'No luck.' })
        }
        const play = async (store: SessionStore, after: readonly number[]) => {
          for (const turns of after) {
            const stop = new AbortController()
            const agent = createAgent({ model: echo(answers).model, store })
            const running = collect(
              runAll(agent, items(count), { id: 'b', concurrency, signal: stop.signal }),
            )
            for (let i = 0; i < turns; i += 1) await settled()
            stop.abort()
            const results = await running
            expect(results.map(({ item }) => item)).toEqual(items(count).slice(0, results.length))
          }
          const agent = createAgent({ model: echo(answers).model, store })
          return collect(runAll(agent, items(count), { id: 'b', concurrency }))
        }
        const toLines = (results: Awaited<ReturnType<typeof play>>) =>
          results.map(({ item, session, result }) => [
            item.id,
            session,
            result?.state,
            result?.output,
            result?.usage,
          ])
        expect(toLines(await play(memoryStore(), stops))).toEqual(toLines(await play(memoryStore(), [])))
      },
    ),
    { numRuns: sampled(12) },
  )
})
