import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { createAgent, memoryStore, ModelError, type ModelProvider, openaiChat } from '../../src/index.js'
import { toUsage } from '../../src/ai-sdk/ai-sdk-usage.js'
import { createLimiter } from '../../src/fleet/index.js'
import { normalizeResponse } from '../../src/core/models/normalize-response.js'
import { readUsage } from '../../src/core/models/openai/read-usage.js'
import { toModelFailure } from '../../src/core/models/to-model-failure.js'
import { readTask } from '../../src/mcp/client/task-wire.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { ManualModel, plainAnswer } from '../support/manual-model.js'
import { sampled } from '../support/extent.js'

/** Numbers, and values in place of numbers, as third-party servers and code send them. */
const foreign = fc.oneof(
  fc.constantFrom<unknown>(NaN, Infinity, -Infinity, 1e308, -1e308, 1e15, 2 ** 53, -1, -0, 0.5, 12.25),
  fc.constantFrom<unknown>('12', '', '1e308', 'NaN', null, undefined, true, [7], {}),
  fc.double(),
  fc.integer({ min: 0, max: 100_000 }),
)
const isCount = (value: unknown): boolean =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= 1e10
const counts = ['inputTokens', 'outputTokens', 'totalTokens', 'cachedInputTokens', 'reasoningTokens'] as const

function expectCounts(usage: object | null): void {
  if (usage === null) return
  const { cacheWriteTokens = 0, providerCost = 0, ...rest } = usage as Record<string, unknown>
  expect(counts.filter((key) => !isCount(rest[key]))).toEqual([])
  expect(isCount(cacheWriteTokens)).toBe(true)
  expect(Number.isFinite(providerCost) && Number(providerCost) >= 0 && Number(providerCost) <= 1e9).toBe(true)
  expect(rest['totalTokens']).toBeGreaterThanOrEqual(
    Number(rest['inputTokens']) + Number(rest['outputTokens']),
  )
}

test('usage of any provider is an integer, at least 0 and bounded, or null', () => {
  const own = fc.record(
    {
      ...Object.fromEntries(counts.map((key) => [key, foreign])),
      cacheWriteTokens: foreign,
      providerCost: foreign,
    },
    { requiredKeys: [] },
  )
  const wire = fc.record(
    {
      prompt_tokens: foreign,
      completion_tokens: foreign,
      total_tokens: foreign,
      cost: foreign,
      cost_in_usd_ticks: foreign,
      prompt_tokens_details: fc.record({ cached_tokens: foreign, audio_tokens: foreign }),
      completion_tokens_details: fc.record({ reasoning_tokens: foreign }),
    },
    { requiredKeys: [] },
  )
  const nested = fc.record({
    inputTokens: fc.record({ total: foreign, cacheRead: foreign, cacheWrite: foreign, noCache: foreign }),
    outputTokens: fc.record({ total: foreign, text: foreign, reasoning: foreign }),
  })
  const flat = fc.record({
    inputTokens: foreign,
    outputTokens: foreign,
    totalTokens: foreign,
    cachedInputTokens: foreign,
  })
  const source = { provider: 'anthropic', metadata: undefined }
  fc.assert(
    fc.property(own, wire, nested, flat, (a, b, c, d) => {
      expectCounts(normalizeResponse({ ...plainAnswer, usage: a as never }).usage)
      for (const usage of [readUsage(b), toUsage(c, source), toUsage(d, source)])
        expectCounts(normalizeResponse({ ...plainAnswer, usage }).usage)
    }),
    { numRuns: sampled(1000) },
  )
})

test('an unreadable count is not free', () => {
  for (const prompt of [-1, 1e308, 1e15, '12']) {
    expect(readUsage({ prompt_tokens: prompt, completion_tokens: 5 })).toBeNull()
  }
  expect(readUsage({ prompt_tokens: 10.5, completion_tokens: 5 })).toMatchObject({ inputTokens: 11 })
  const source = { provider: 'openai', metadata: undefined }
  expect(toUsage({ inputTokens: NaN, outputTokens: 5 }, source)).toBeNull()
})

test('a wait requested by a server is an integer and at most a year, or null', () => {
  const texts = fc.oneof(
    fc.constantFrom('1e3', '-1', 'NaN', '1.5', '999999999999999', '0', 'Infinity', ''),
    fc.constantFrom('Wed, 21 Oct 2015 07:28:00 GMT', 'Fri, 31 Dec 275759 23:59:59 GMT', '12:61:00'),
    fc.string(),
  )
  const headers = fc.record(
    {
      'retry-after': texts,
      'retry-after-ms': texts,
      'x-ratelimit-remaining-tokens': fc.constant('0'),
      'x-ratelimit-reset-tokens': fc.constantFrom('999999999d', '1s', '-1', '1e9'),
    },
    { requiredKeys: [] },
  )
  const isWait = (wait: number | null): boolean =>
    wait === null || (Number.isSafeInteger(wait) && wait >= 0 && wait <= 366 * 86_400_000)
  fc.assert(
    fc.property(headers, foreign, (input, own) => {
      const failure = { kind: 'rate_limit', code: 'x', message: 'x', retryAfterMs: own }
      expect(isWait(toModelFailure({ status: 429, headers: input }, 0).retryAfterMs)).toBe(true)
      expect(isWait(toModelFailure(new ModelError(failure as never), 0).retryAfterMs)).toBe(true)
      const { pollMs } = readTask({ taskId: 't', pollInterval: own })
      expect(pollMs >= 50 && pollMs <= 60_000).toBe(true)
    }),
    { numRuns: sampled(500) },
  )
})

describe('a provider over HTTP that reports impossible usage', () => {
  let server: Server
  let usages: unknown[] = []
  beforeAll(async () => {
    server = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json')
      const message = { role: 'assistant', content: 'Answer.' }
      const choices = [{ index: 0, finish_reason: 'stop', message }]
      response.end(JSON.stringify({ id: 'x', model: 'm', choices, usage: usages.shift() }))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
  })
  afterAll(() => new Promise((resolve) => server.close(resolve)))

  test.each([
    ['huge', { prompt_tokens: 1e308, completion_tokens: 1e308, total_tokens: 1 }],
    ['negative', { prompt_tokens: -50, completion_tokens: 2, total_tokens: -48 }],
    ['a fraction', { prompt_tokens: 10.5, completion_tokens: 0.5, total_tokens: 11 }],
    ['expensive', { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, cost: 1e308 }],
  ])('does not make its session unreadable (%s)', async (_name, usage) => {
    usages = [usage, usage, { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }]
    const { port } = server.address() as AddressInfo
    const store = memoryStore()
    const model = openaiChat({ model: 'm', baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'x' })
    const agent = createAgent({ model, store, stream: false })
    for (const text of ['One.', 'Two.', 'Three.']) {
      const result = await agent.run(text, { session: 's' }).result
      expect(result.state).toBe('COMPLETED')
      expectCounts(result.usage)
      expect(result.usage.outputTokens).toBeGreaterThan(0)
    }
    expect(await agent.replay('s')).toMatchObject({ messages: { length: 6 } })
    expect(checkSessionLog(store.read('s'))).toBeNull()
  })
})

test.each([NaN, Infinity, 1e308, 1e15, -1e6, 0.5, '50', null])(
  'a limiter keeps its rate after a provider has reported %p tokens',
  async (total) => {
    const clock = new SimulatedClock()
    const limiter = createLimiter({ id: 'x', tokensPerMinute: 6000, burst: 1 / 60, clock })
    const manual = new ManualModel()
    const agent = createAgent({
      model: limiter.limit(manual) as ModelProvider,
      clock,
      sampling: { maxTokens: 45 },
    })
    for (let i = 0; i < 10; i += 1) void agent.run('Hello.').result
    const usual = {
      inputTokens: 25,
      outputTokens: 25,
      totalTokens: 50,
      cachedInputTokens: 0,
      reasoningTokens: 0,
    }
    for (let passed = 0; passed < 2500; passed += 100) {
      for (let i = 0; i < 10; i += 1) await new Promise((resolve) => setImmediate(resolve))
      const isFirst = manual.attempts.length === 1
      const usage = isFirst ? { ...usual, inputTokens: total, totalTokens: total } : usual
      manual.pending?.answer({ text: 'Hi.', usage: usage as typeof usual })
      clock.increment(100)
    }
    // 6,000 a minute allow two of 50 a second, and two at once.
    expect(manual.attempts.length).toBeGreaterThanOrEqual(4)
    expect(manual.attempts.length).toBeLessThanOrEqual(8)
  },
)

test.each([NaN, Infinity, 1e308, -1, '1'])(
  'a price of %p is unknown, and never part of a total',
  async (cost) => {
    const model = {
      provider: 'own',
      model: 'm',
      request: () => Promise.resolve({ ...plainAnswer, text: 'Hi.' }),
    }
    const result = await createAgent({ model, prices: () => cost as number }).run('Hello.').result
    expect(result.usage.cost).toBeNull()
  },
)
