import { jest } from '@jest/globals'
import { SimulatedClock } from 'xstate'
import * as fc from 'fast-check'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import { languageModel } from '../../src/ai-sdk/index.js'
import {
  createLimiter,
  type CreateLimiterOptions,
  flexibleLimiter,
  type Limiter,
} from '../../src/fleet/index.js'
import { createRateWindow } from '../../src/fleet/create-limiter.js'
import {
  createAgent,
  createEventFormatter,
  memoryStore,
  ModelError,
  type ModelProvider,
  openaiChat,
  openaiResponses,
  type Run,
  type RunResult,
  withFallbacks,
} from '../../src/index.js'
import { parseRateLimitReset } from '../../src/core/models/to-model-failure.js'
import { createPageView } from '../../src/web/exposure.js'
import { call, ManualModel, plainAnswer, settled } from '../support/manual-model.js'
import { sampled, sampledRows } from '../support/extent.js'
import { stage, until } from '../support/play.js'
import { tool } from '../support/tools.js'

/** 200 runs take a while. */
jest.setTimeout(120_000)

const look = tool('look', () => 'seen', { readOnly: true })

/** Advances the time in small steps until the work is done. */
async function passTime<Value>(clock: SimulatedClock, work: Promise<Value>, stepMs = 50): Promise<Value> {
  const state = { isOver: false }
  const noted = work.finally(() => {
    state.isOver = true
  })
  noted.catch(() => undefined)
  while (!state.isOver) {
    for (let i = 0; i < 3; i += 1) await settled()
    clock.increment(stepMs)
  }
  return noted
}

/** The server's response to a request at a given time: the required wait, or 0. */
type Gate = (now: number) => number

/** Clock minutes. The counter resets with each minute. */
function fixedWindow(limit: number): Gate {
  let minute = -1
  let count = 0
  return (now) => {
    const current = Math.floor(now / 60_000)
    if (current !== minute) [minute, count] = [current, 0]
    if (count >= limit) return (minute + 1) * 60_000 - now
    count += 1
    return 0
  }
}

/** A sliding minute. */
function slidingWindow(limit: number): Gate {
  const times: number[] = []
  return (now) => {
    while (times.length > 0 && (times[0] as number) <= now - 60_000) times.shift()
    if (times.length >= limit) return (times[0] as number) + 60_000 - now
    times.push(now)
    return 0
  }
}

/** A bucket that holds a tenth of a minute's allowance. */
function bucket(limit: number): Gate {
  let level = limit / 10
  let at = 0
  return (now) => {
    level = Math.min(limit / 10, level + ((now - at) * limit) / 60_000)
    at = now
    if (level < 1) return ((1 - level) * 60_000) / limit
    level -= 1
    return 0
  }
}

/** A provider with this rate limit and a latency of a third of a second. Each run calls a tool three times. */
function createServer(clock: SimulatedClock, gate: Gate) {
  const log = { answered: 0, refused: 0, lastAt: 0 }
  const pass = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
  const model: ModelProvider = {
    provider: 'played',
    model: 'strict',
    request: async ({ messages }) => {
      await pass(30)
      const waitMs = gate(clock.now())
      if (waitMs > 0) {
        log.refused += 1
        const retryAfterMs = Math.ceil(waitMs / 1000) * 1000
        throw new ModelError({
          kind: 'rate_limit',
          code: 'rate_limit',
          message: 'Slow down.',
          status: 429,
          retryAfterMs,
        })
      }
      await pass(300)
      log.answered += 1
      log.lastAt = clock.now()
      const calls = messages.filter(({ role }) => role === 'tool').length
      return calls === 3
        ? { ...plainAnswer, text: 'Done.' }
        : { ...plainAnswer, toolCalls: [call(`c${calls}`, 'look', { n: calls })], finishReason: 'tool_calls' }
    },
  }
  return { model, log }
}

async function playRuns(clock: SimulatedClock, model: ModelProvider, count: number): Promise<RunResult[]> {
  const agent = createAgent({ model, clock, tools: [look], prices: null })
  return passTime(clock, Promise.all(Array.from({ length: count }, () => agent.run('Go.').result)))
}

describe('200 runs against a server that allows 600 requests a minute', () => {
  const servers: [string, (limit: number) => Gate][] = [
    ['a bucket', bucket],
    ['fixed windows', fixedWindow],
    ['a sliding window', slidingWindow],
  ]
  test.each(sampledRows(servers))(
    'with %s, get 95%% of the rate, and at most 1%% are refused',
    async (_name, open) => {
      const clock = new SimulatedClock()
      const { model, log } = createServer(clock, open(600))
      const limiter = createLimiter({ id: 'strict', requestsPerMinute: 600, clock })
      const results = await playRuns(clock, limiter.limit(model), 200)
      expect(results.filter(({ state }) => state !== 'COMPLETED')).toEqual([])
      expect(log.answered).toBe(800)
      expect(log.answered / ((600 * log.lastAt) / 60_000)).toBeGreaterThan(0.95)
      expect(log.refused / (log.answered + log.refused)).toBeLessThan(0.01)
    },
  )

  test('are mostly refused without a limiter', async () => {
    const clock = new SimulatedClock()
    const { model, log } = createServer(clock, bucket(600))
    const results = await playRuns(clock, model, 200)
    expect(log.refused / (log.answered + log.refused)).toBeGreaterThan(0.3)
    expect(results.filter(({ state }) => state !== 'COMPLETED').length).toBeGreaterThan(0)
  })
})

describe('a window', () => {
  test('never exceeds the limit per minute or the burst, and wastes no capacity', () => {
    const amounts = fc.array(fc.tuple(fc.integer({ min: 1, max: 40 }), fc.nat({ max: 20_000 })), {
      minLength: 1,
      maxLength: 200,
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        amounts,
        (limit, share, demand) => {
          const burst = Math.max(1, limit * share)
          const window = createRateWindow(limit, burst, 0)
          const gone: [at: number, amount: number][] = []
          let now = 0
          for (const [amount, pauseMs] of demand) {
            const wait = window.getWaitMs(amount, now + pauseMs)
            now += pauseMs + Math.ceil(wait)
            expect(window.getWaitMs(amount, now)).toBe(0)
            window.take(amount, now)
            gone.push([now, amount])
          }
          for (const [at, amount] of gone) {
            const inMinute = gone.filter(([other]) => other > at - 60_000 && other <= at)
            const sum = inMinute.reduce((total, [, one]) => total + one, 0)
            // A request above the limit runs alone.
            if (amount <= limit && inMinute.every(([, one]) => one <= limit))
              expect(sum).toBeLessThanOrEqual(limit)
            const atOnce = gone.filter(([other]) => other === at)
            if (atOnce.length > 1)
              expect(atOnce.slice(0, -1).reduce((total, [, one]) => total + one, 0)).toBeLessThanOrEqual(
                burst + 1,
              )
          }
        },
      ),
      { numRuns: sampled(60) },
    )
  })
})

/** A limiter on a model that answers when the test releases it. */
function limited(options: Omit<CreateLimiterOptions, 'id' | 'clock'>, more: object = {}) {
  const clock = new SimulatedClock()
  const manual = new ManualModel()
  const limiter = createLimiter({ id: 'test', clock, ...options })
  const agent = createAgent({ model: limiter.limit(manual), clock, tools: [look], ...more })
  return { clock, manual, limiter, agent }
}

function listen(run: Run): AgentEvent[] {
  const events: AgentEvent[] = []
  run.events$.subscribe({ next: (event) => void events.push(event), error: () => undefined })
  return events
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await settled()
}

test('a waiting request is reported once, and shown on one line', async () => {
  const { manual, limiter, agent } = limited({ concurrency: 1 })
  const runs = [agent.run('One.'), agent.run('Two.'), agent.run('Three.')]
  const logs = runs.map(listen)
  await settle()
  expect(limiter.status()).toEqual({ waiting: 2, active: 1, pausedMs: 0 })
  const waits = logs.map((events) => events.filter(({ type }) => type === 'waiting_for_slot'))
  expect(waits).toMatchObject([[], [{ limiter: 'test', ahead: 0 }], [{ limiter: 'test', ahead: 1 }]])
  const [event] = waits[2] as [AgentEvent]
  expect(createEventFormatter()(event)).toContain("waiting for a slot of 'test' (1 ahead)")
  for (let i = 0; i < 3; i += 1) {
    manual.pending?.answer({ text: 'Done.' })
    await settle()
  }
  const results = await Promise.all(runs.map(({ result }) => result))
  expect(results.map(({ state }) => state)).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED'])
  expect(limiter.status()).toEqual({ waiting: 0, active: 0, pausedMs: 0 })
})

test('the run that came first is served first, with each of its requests', async () => {
  const { manual, agent } = limited({ concurrency: 1 })
  const runs = ['One.', 'Two.', 'Three.'].map((input) => agent.run(input))
  const order: unknown[] = []
  for (let i = 0; i < 6; i += 1) {
    await settle()
    const { request } = manual.attempts.at(-1) as {
      request: { messages: readonly { content: unknown; role: string }[] }
    }
    order.push(request.messages[0]?.content)
    const isFirst = request.messages.length === 1
    manual.pending?.answer(
      isFirst ? { toolCalls: [call('a', 'look')], finishReason: 'tool_calls' } : { text: 'Done.' },
    )
  }
  await Promise.all(runs.map(({ result }) => result))
  // The first run's second request starts before the third run.
  expect(order.filter((texts) => texts === 'One.').length).toBe(2)
  expect(order.indexOf('Three.')).toBeGreaterThan(order.lastIndexOf('One.'))
})

test('a wait ends with the cancellation and the deadline of its run, and frees its place', async () => {
  const { clock, manual, limiter, agent } = limited({ concurrency: 1 })
  const first = agent.run('One.')
  await settle()
  const second = agent.run('Two.')
  const third = agent.run('Three.', { limits: { timeoutMs: 5000 } })
  await settle()
  second.cancel()
  expect(await second.result).toMatchObject({ state: 'CANCELLED' })
  expect(limiter.status()).toMatchObject({ waiting: 1, active: 1 })
  clock.increment(5000)
  expect(await third.result).toMatchObject({ state: 'TIMED_OUT' })
  expect(limiter.status()).toMatchObject({ waiting: 0, active: 1 })
  manual.pending?.answer({ text: 'Done.' })
  expect(await first.result).toMatchObject({ state: 'COMPLETED' })
  expect(manual.attempts.length).toBe(1)
})

test.each([
  ['streamed', true],
  ['whole', false],
])(
  'a wait of an hour counts neither as silence of the provider nor as an attempt, for %s answers',
  async (_name, stream) => {
    const { clock, manual, agent } = limited({ concurrency: 1 }, { stream, limits: { timeoutMs: 0 } })
    const first = agent.run('One.')
    await settle()
    const second = agent.run('Two.')
    const events = listen(second)
    await settle()
    for (let i = 0; i < 36; i += 1) {
      clock.increment(100_000)
      manual.attempts[0]?.delta('.')
      await settled()
    }
    manual.attempts[0]?.answer({ text: 'Done.' })
    await first.result
    await settle()
    expect(manual.attempts.length).toBe(2)
    manual.pending?.answer({ text: 'Done.' })
    expect(await second.result).toMatchObject({ state: 'COMPLETED' })
    expect(events.filter(({ type }) => type === 'retry')).toEqual([])
  },
)

test('the silence of the provider counts as usual after the wait', async () => {
  const { clock, manual, agent } = limited(
    { concurrency: 1 },
    { streamIdleMs: 1000, retry: { maxAttempts: 1 } },
  )
  const first = agent.run('One.')
  await settle()
  const second = agent.run('Two.')
  await settle()
  manual.pending?.answer({ text: 'Done.' })
  await first.result
  await settle()
  clock.increment(1000)
  expect(await second.result).toMatchObject({ state: 'ERROR', error: { code: 'idle_timeout' } })
})

test('a 429 slows every request of the limiter, for the time that the provider requests', async () => {
  const { clock, manual, limiter, agent } = limited({ requestsPerMinute: 6000 })
  const first = agent.run('One.')
  await settle()
  manual.pending?.fail({ kind: 'rate_limit', code: 'rate_limit', status: 429, retryAfterMs: 7000 })
  await settle()
  expect(limiter.status().pausedMs).toBe(7000)
  const second = agent.run('Two.')
  await settle()
  clock.increment(6900)
  await settle()
  expect(manual.attempts.length).toBe(1)
  for (let i = 0; i < 100; i += 1) {
    clock.increment(100)
    await settle()
    for (const attempt of manual.attempts.slice(1)) attempt.answer({ text: 'Done.' })
  }
  expect(await second.result).toMatchObject({ state: 'COMPLETED' })
  expect(await first.result).toMatchObject({ state: 'COMPLETED' })
})

test('a 429 without a time causes growing waits, until an answer arrives', async () => {
  const clock = new SimulatedClock()
  const limiter = createLimiter({ id: 'test', concurrency: 4, clock })
  const manual = new ManualModel()
  const model = limiter.limit(manual)
  const ask = () => {
    const options = {
      signal: new AbortController().signal,
      onDelta: () => undefined,
      onActivity: () => undefined,
    }
    return model.request({ messages: [], tools: [], nudges: [], sampling: {} } as never, options)
  }
  const waits: number[] = []
  for (let i = 0; i < 4; i += 1) {
    const pending = ask().catch(() => undefined)
    await settle()
    if (i === 2) manual.pending?.answer({ text: 'Yes.' })
    else manual.pending?.fail({ kind: 'rate_limit', code: 'rate_limit', status: 429 })
    await pending
    waits.push(limiter.status().pausedMs)
    clock.increment(60_000)
  }
  expect(waits).toEqual([1000, 2000, 0, 1000])
})

test('tokens count as estimated, and then as used', async () => {
  const { clock, manual, limiter, agent } = limited(
    { tokensPerMinute: 1000, burst: 1 },
    { sampling: { maxTokens: 600 } },
  )
  const usage = {
    inputTokens: 10,
    outputTokens: 5,
    totalTokens: 15,
    cachedInputTokens: 0,
    reasoningTokens: 0,
  }
  const runs = [agent.run('One.'), agent.run('Two.')]
  await settle()
  expect(limiter.status()).toMatchObject({ active: 1, waiting: 1 })
  // The usage was far below the estimate, so the next request starts immediately.
  manual.pending?.answer({ text: 'Done.', usage })
  await settle()
  expect(limiter.status()).toMatchObject({ active: 1, waiting: 0 })
  manual.pending?.answer({ text: 'Done.', usage: { ...usage, totalTokens: 900 } })
  await Promise.all(runs.map(({ result }) => result))
  const third = agent.run('Three.')
  await settle()
  expect(limiter.status()).toMatchObject({ active: 0, waiting: 1 })
  clock.increment(61_000)
  await settle()
  manual.pending?.answer({ text: 'Done.' })
  expect(await third.result).toMatchObject({ state: 'COMPLETED' })
})

test('a request that exceeds the whole allowance runs alone', async () => {
  const { manual, agent } = limited({ tokensPerMinute: 10 })
  const run = agent.run('A question of far more than ten tokens, which the provider may refuse or not.')
  await settle()
  manual.pending?.answer({ text: 'Done.' })
  expect(await run.result).toMatchObject({ state: 'COMPLETED' })
})

describe('each provider accepts a limiter', () => {
  const rows: [string, (url: string, limiter: Limiter) => ModelProvider][] = [
    ['openaiChat', (baseURL, limiter) => openaiChat({ model: 'm', baseURL, apiKey: 'none', limiter })],
    [
      'openaiResponses',
      (baseURL, limiter) => openaiResponses({ model: 'm', baseURL, apiKey: 'none', limiter }),
    ],
    [
      'withFallbacks',
      (baseURL, limiter) => withFallbacks([openaiChat({ model: 'm', baseURL, apiKey: 'none', limiter })]),
    ],
    [
      'limiter.limit',
      (baseURL, limiter) =>
        limiter.limit(withFallbacks([openaiChat({ model: 'm', baseURL, apiKey: 'none' })])),
    ],
  ]
  test.each(rows)('%s', async (_name, open) => {
    const { rehearsal } = await stage([{ text: 'One.' }, { text: 'Two.' }])
    const limiter = createLimiter({ id: 'test', concurrency: 1 })
    const model = open(rehearsal.url, limiter)
    const agent = createAgent({ model, store: memoryStore() })
    const runs = [agent.run('One.'), agent.run('Two.')]
    const logs = runs.map(listen)
    const results = await Promise.all(runs.map(({ result }) => result))
    expect(results.map(({ state }) => state)).toEqual(['COMPLETED', 'COMPLETED'])
    expect(logs.flat().filter(({ type }) => type === 'waiting_for_slot').length).toBe(1)
    expect(model.endpoint?.host).toBe('127.0.0.1')
  })

  test('languageModel', async () => {
    const limiter = createLimiter({ id: 'test', concurrency: 1 })
    const model = {
      specificationVersion: 'v2',
      provider: 'played',
      modelId: 'm',
      supportedUrls: {},
      doGenerate: async () => ({
        content: [{ type: 'text', text: 'Done.' }],
        finishReason: 'stop',
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
        warnings: [],
      }),
      doStream: () => Promise.reject(new Error('It is not asked.')),
    } as const
    const agent = createAgent({ model: languageModel(model, { limiter }), stream: false })
    const runs = [agent.run('One.'), agent.run('Two.')]
    const logs = runs.map(listen)
    const results = await Promise.all(runs.map(({ result }) => result))
    expect(results.map(({ output }) => output)).toEqual(['Done.', 'Done.'])
    expect(logs.flat().filter(({ type }) => type === 'waiting_for_slot').length).toBe(1)
  })

  test.each([
    ['openaiChat', () => openaiChat({ model: 'm', limiter: {} as Limiter })],
    ['openaiResponses', () => openaiResponses({ model: 'm', limiter: 5 as never })],
    [
      'languageModel',
      () =>
        languageModel(
          { specificationVersion: 'v2', provider: 'p', modelId: 'm', doGenerate: settled, doStream: settled },
          { limiter: {} as Limiter },
        ),
    ],
  ])('%s refuses an invalid one', (_name, open) => {
    expect(open).toThrow(expect.objectContaining({ code: 'invalid_option', subject: 'limiter' }))
  })
})

test('a page receives no rate limit events', () => {
  const view = createPageView({}, 's')
  const event = { type: 'waiting_for_slot', stepId: 's1', limiter: 'tenant-acme', ahead: 3 } as AgentEvent
  expect(view.maskEvent(event)).toBeNull()
})

test.each([
  ['1s', '0', 1000],
  ['6m0s', '0', 360_000],
  ['120ms', '0', 120],
  ['1h2m3.5s', '0', 3_723_500],
  ['1.5', '0', 1500],
  ['soon', '0', null],
  ['1s1', '0', null],
  ['1s', '4', null],
  ['1s', '', null],
])('x-ratelimit-reset-requests: %s with %s left', (reset, remaining, expected) => {
  const headers = { 'x-ratelimit-reset-requests': reset, 'x-ratelimit-remaining-requests': remaining }
  expect(parseRateLimitReset(headers)).toBe(expected)
  const tokens = { 'x-ratelimit-reset-tokens': '2s', 'x-ratelimit-remaining-tokens': '0' }
  expect(parseRateLimitReset({ ...headers, ...tokens })).toBe(Math.max(2000, expected ?? 0))
})

test.each([
  ['no id', { requestsPerMinute: 1 }, 'id'],
  ['no limit', { id: 'a' }, 'requestsPerMinute'],
  ['a concurrency of zero', { id: 'a', concurrency: 0 }, 'concurrency'],
  ['a concurrency of one half', { id: 'a', concurrency: 1.5 }, 'concurrency'],
  ['no requests', { id: 'a', requestsPerMinute: 0 }, 'requestsPerMinute'],
  ['NaN', { id: 'a', requestsPerMinute: Number.NaN }, 'requestsPerMinute'],
  ['a negative number', { id: 'a', tokensPerMinute: -5 }, 'tokensPerMinute'],
  ['no burst', { id: 'a', concurrency: 1, burst: 0 }, 'burst'],
  ['a burst above the rate', { id: 'a', concurrency: 1, burst: 2 }, 'burst'],
  ['an unknown option', { id: 'a', concurrency: 1, rpm: 5 }, 'rpm'],
])('%s is refused, naming the option', (_name, options, subject) => {
  expect(() => createLimiter(options as never)).toThrow(
    expect.objectContaining({ code: 'invalid_option', subject }),
  )
})

/** A model that ignores its signal. It answers no request, or all but the first. */
function createDeaf(answersLater: boolean): { model: ModelProvider; requested: () => number } {
  let requests = 0
  const request: ModelProvider['request'] = () => {
    requests += 1
    const isAnswered = answersLater && requests > 1
    return isAnswered ? Promise.resolve({ ...plainAnswer, text: 'Hi.' }) : new Promise(() => undefined)
  }
  return { model: { provider: 'played', model: 'deaf', request }, requested: () => requests }
}

test('a provider that ignores its signal does not keep its place', async () => {
  const limiter = createLimiter({ id: 'one', concurrency: 1 })
  const { model, requested } = createDeaf(true)
  const agent = createAgent({ model: limiter.limit(model) })
  const first = agent.run('Go.')
  await until(() => requested() === 1)
  const second = agent.run('Go.')
  first.cancel()
  expect(await second.result).toMatchObject({ state: 'COMPLETED' })
  expect(limiter.status()).toMatchObject({ active: 0, waiting: 0 })
})

test('runs that are cancelled together send nothing more, and leave their places', async () => {
  const limiter = createLimiter({ id: 'one', concurrency: 1 })
  const { model, requested } = createDeaf(false)
  const agent = createAgent({ model: limiter.limit(model) })
  const runs = [agent.run('Go.'), agent.run('Go.'), agent.run('Go.')]
  await until(() => requested() === 1 && limiter.status().waiting === 2)
  for (const run of runs) run.cancel()
  await Promise.all(runs.map((run) => run.result))
  await settle()
  expect(requested()).toBe(1)
  expect(limiter.status()).toMatchObject({ active: 0, waiting: 0 })
})

describe('flexibleLimiter', () => {
  const ask = (limiter: Pick<Limiter, 'limit'>, model: ModelProvider, options: object = {}) =>
    limiter.limit(model).request({ messages: [], tools: [], nudges: [], sampling: {} } as never, {
      signal: new AbortController().signal,
      onDelta: () => undefined,
      onActivity: () => undefined,
      ...options,
    })

  test('a request without a point waits for the next window, and reports it', async () => {
    const memory = new RateLimiterMemory({ points: 1, duration: 1 })
    const limiter = flexibleLimiter('shared', memory)
    const manual = new ManualModel()
    const waits: unknown[] = []
    const onWaitForSlot = (slot: unknown) => void waits.push(slot)
    const first = ask(limiter, manual, { onWaitForSlot })
    const second = ask(limiter, manual, { onWaitForSlot })
    await settle()
    manual.pending?.answer({ text: 'One.' })
    expect(await first).toMatchObject({ text: 'One.' })
    expect(waits).toEqual([{ limiter: 'shared', ahead: 0 }])
    await until(() => manual.attempts.length === 2)
    manual.pending?.answer({ text: 'Two.' })
    expect(await second).toMatchObject({ text: 'Two.' })
    expect(waits.at(-1)).toBeNull()
  })

  test('a cancel ends the wait, a 429 blocks the key, and an unavailable store is a transient failure', async () => {
    const memory = new RateLimiterMemory({ points: 5, duration: 60 })
    const limiter = flexibleLimiter('shared', memory)
    const manual = new ManualModel()
    const refused = ask(limiter, manual)
    await settle()
    manual.pending?.fail({ kind: 'rate_limit', code: 'rate_limit', status: 429, retryAfterMs: 7000 })
    await expect(refused).rejects.toMatchObject({ code: 'rate_limit' })
    expect((await memory.get('shared'))?.msBeforeNext).toBeGreaterThan(6000)
    const abort = new AbortController()
    const waiting = ask(limiter, manual, { signal: abort.signal })
    await settle()
    abort.abort(new Error('cancelled'))
    await expect(waiting).rejects.toThrow('cancelled')
    const down = flexibleLimiter('shared', {
      consume: () => Promise.reject(new Error('connection refused')),
      block: settled,
    })
    await expect(ask(down, manual)).rejects.toMatchObject({
      code: 'limiter_unavailable',
      message: expect.stringContaining('connection refused'),
    })
    expect(manual.attempts).toHaveLength(1)
  })

  test('a 429 that asks for years blocks the key for ten minutes', async () => {
    const memory = new RateLimiterMemory({ points: 5, duration: 60 })
    const manual = new ManualModel()
    const refused = ask(flexibleLimiter('shared', memory), manual)
    await settle()
    manual.pending?.fail({ kind: 'rate_limit', code: 'rate_limit', status: 429, retryAfterMs: 1e12 })
    await expect(refused).rejects.toMatchObject({ failure: { kind: 'rate_limit' } })
    expect((await memory.get('shared'))?.msBeforeNext).toBeLessThanOrEqual(600_000)
  })

  test('a request that is cancelled while a slow store answers is not sent', async () => {
    let give = (): void => undefined
    const consume = () => new Promise<void>((resolve) => (give = resolve))
    const manual = new ManualModel()
    const abort = new AbortController()
    const limiter = flexibleLimiter('shared', { consume, block: settled })
    const waiting = ask(limiter, manual, { signal: abort.signal })
    abort.abort(new Error('cancelled'))
    give()
    await expect(waiting).rejects.toThrow('cancelled')
    expect(manual.attempts).toEqual([])
  })

  test.each([-1, 0, Number.NaN])('a key without a time (%d) is not asked for all the time', async (time) => {
    let asked = 0
    const consume = () => {
      asked += 1
      return Promise.reject({ msBeforeNext: time } as unknown as Error)
    }
    const abort = new AbortController()
    const limiter = flexibleLimiter('shared', { consume, block: settled })
    const timers = jest.spyOn(globalThis, 'setTimeout')
    const waiting = ask(limiter, new ManualModel(), { signal: abort.signal })
    await settle()
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([250])
    timers.mockRestore()
    abort.abort(new Error('cancelled'))
    await expect(waiting).rejects.toThrow('cancelled')
    expect(asked).toBe(1)
  })

  test.each([
    ['fails', () => Promise.reject(new Error('the store is down'))],
    ['does not respond', () => new Promise<never>(() => undefined)],
    [
      'throws',
      () => {
        throw new Error('the store is down')
      },
    ],
  ])('a 429 still asks for its wait if the store %s', async (_, block) => {
    const manual = new ManualModel()
    const refused = ask(flexibleLimiter('shared', { consume: settled, block }), manual)
    await settle()
    manual.pending?.fail({ kind: 'rate_limit', code: 'rate_limit', status: 429, retryAfterMs: 7000 })
    await expect(refused).rejects.toMatchObject({ failure: { kind: 'rate_limit', retryAfterMs: 7000 } })
  })
})
