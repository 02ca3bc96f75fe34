import { jest } from '@jest/globals'
import * as fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { createLimiter, type CreateLimiterOptions, type Limiter } from '../../src/fleet/index.js'
import { createAgent, memoryStore, type ModelProvider, ModelError } from '../../src/index.js'
import type { SessionStore } from '../../src/stores/index.js'
import { runsAll } from '../support/extent.js'
import { plainAnswer, settled } from '../support/manual-model.js'

jest.setTimeout(120_000)

const start = 1_700_000_000_000

/** A store, and processes that ask it; each answer comes some turns later, and the clock of the store is ahead of theirs. */
function setUp(latencies: readonly number[], options: Omit<CreateLimiterOptions, 'id' | 'store' | 'clock'>) {
  const clock = new SimulatedClock()
  const { timers } = memoryStore({ now: () => start + clock.now() })
  const pass = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
  const state = { isAway: false, moves: 0 }
  const limiters = latencies.map((ms) => {
    const slow = new Proxy(timers, {
      get:
        (target, key: keyof typeof timers) =>
        async (...args: never[]) => {
          await pass(ms / 2)
          if (key === 'move') state.moves += 1
          if (state.isAway) throw new Error('The store is away.')
          const answer: unknown = Reflect.apply(target[key] as never, target, args)
          await pass(ms / 2)
          return answer
        },
    }) as unknown as NonNullable<SessionStore['timers']>
    return createLimiter({ id: 'shared', store: { timers: slow }, clock, ...options })
  })
  return { clock, limiters, state }
}

async function passTime(clock: SimulatedClock, ms: number, stepMs = 10): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    // oxlint-disable-next-line no-await-in-loop -- one step after the other
    await settled()
    clock.increment(stepMs)
  }
}

/** Lets time pass until the work is over. */
async function passUntil<Value>(clock: SimulatedClock, work: Promise<Value>, stepMs = 10): Promise<Value> {
  let isOver = false
  const noted = work.finally(() => {
    isOver = true
  })
  noted.catch(() => undefined)
  // oxlint-disable-next-line no-await-in-loop, no-unmodified-loop-condition -- one step after the other
  while (!isOver) await passTime(clock, stepMs, stepMs)
  return noted
}

/** A model that notes when it is asked, and answers at once. */
function createNotingModel(clock: SimulatedClock, times: { at: number; tokens: number }[], tokens = 0) {
  const model: ModelProvider = {
    provider: 'played',
    model: 'noting',
    request: async () => {
      times.push({ at: clock.now(), tokens })
      const usage = {
        inputTokens: tokens,
        outputTokens: 0,
        totalTokens: tokens,
        cachedInputTokens: 0,
        reasoningTokens: 0,
      }
      return { ...plainAnswer, text: 'Done.', usage }
    },
  }
  return model
}

const request = {
  instructions: null,
  nudges: [],
  messages: [{ role: 'user' as const, content: 'Go.' }],
  tools: [],
  stream: false,
  sampling: {},
}

function ask(
  limiter: Limiter,
  model: ModelProvider,
  signal = new AbortController().signal,
): Promise<unknown> {
  return limiter
    .limit(model)
    .request(request as never, { signal, onDelta: () => undefined, onActivity: () => undefined } as never)
}

/** The most in any minute. */
function findMost(times: readonly { at: number; tokens: number }[], of: 'requests' | 'tokens'): number {
  let most = 0
  for (const { at } of times) {
    const inMinute = times.filter((one) => one.at >= at && one.at < at + 60_000)
    most = Math.max(
      most,
      of === 'requests' ? inMinute.length : inMinute.reduce((sum, { tokens }) => sum + tokens, 0),
    )
  }
  return most
}

test('processes together never send more than the limit in a minute, and waste less than a twentieth', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 300 }),
      fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 4 }),
      async (limit, latencies) => {
        const { clock, limiters } = setUp(latencies, { requestsPerMinute: limit })
        const times: { at: number; tokens: number }[] = []
        const model = createNotingModel(clock, times)
        const stop = new AbortController()
        // Each process has more to ask than it may.
        const asked = limiters.flatMap((limiter) =>
          Array.from({ length: limit * 2 + 2 }, () =>
            ask(limiter, model, stop.signal).catch(() => undefined),
          ),
        )
        await passTime(clock, 125_000)
        stop.abort(new Error('over'))
        await Promise.all(asked)
        expect(findMost(times, 'requests')).toBeLessThanOrEqual(limit)
        expect(times.length).toBeGreaterThanOrEqual(Math.floor(0.95 * limit * (125 / 60)) - 1)
      },
    ),
    { numRuns: runsAll ? 30 : 3 },
  )
})

test('tokens of all processes count together: as estimated, and then as they were used', async () => {
  const { clock, limiters } = setUp([0, 20, 40], { tokensPerMinute: 30_000 })
  const times: { at: number; tokens: number }[] = []
  const model = createNotingModel(clock, times, 300)
  const stop = new AbortController()
  const big = { ...request, sampling: { maxTokens: 1000 } }
  const asked = limiters.flatMap((limiter) =>
    Array.from({ length: 200 }, () =>
      limiter
        .limit(model)
        .request(big as never, { signal: stop.signal } as never)
        .catch(() => undefined),
    ),
  )
  await passTime(clock, 125_000, 20)
  stop.abort(new Error('over'))
  await Promise.all(asked)
  expect(findMost(times, 'tokens')).toBeLessThanOrEqual(30_000)
  // A process that asks for a thousand and uses three hundred gives seven hundred back. 208 are allowed.
  expect(times.length).toBeGreaterThan(150)
})

test('a busy process asks the store a few times a second, for the permits of a quarter of a second', async () => {
  const { clock, limiters, state } = setUp([0], { requestsPerMinute: 6000 })
  const times: { at: number; tokens: number }[] = []
  const model = createNotingModel(clock, times)
  const stop = new AbortController()
  const asked = Array.from({ length: 1500 }, () =>
    ask(limiters[0] as Limiter, model, stop.signal).catch(() => undefined),
  )
  await passTime(clock, 10_000)
  stop.abort(new Error('over'))
  await Promise.all(asked)
  expect(times.length).toBeGreaterThan(950)
  expect(state.moves).toBeLessThan(55)
})

test('a 429 slows the other processes, too', async () => {
  const { clock, limiters } = setUp([0, 0], { requestsPerMinute: 6000 })
  const times: { at: number; tokens: number }[] = []
  const model = createNotingModel(clock, times)
  const refusing: ModelProvider = {
    ...model,
    request: () =>
      Promise.reject(
        new ModelError({
          kind: 'rate_limit',
          code: 'rate_limit',
          message: 'Slow down.',
          status: 429,
          retryAfterMs: 20_000,
        }),
      ),
  }
  const [one, other] = limiters as [Limiter, Limiter]
  const refused = ask(one, refusing)
  await expect(passUntil(clock, refused)).rejects.toThrow('Slow down.')
  const asked = Promise.all([ask(other, model), ask(one, model)])
  await passTime(clock, 18_000, 50)
  expect(times).toEqual([])
  await passUntil(clock, asked, 50)
  expect(clock.now()).toBeLessThan(22_000)
  expect(times).toHaveLength(2)
})

test('a store that is away lets nothing go: the run tries again, and ends with an error that names the limiter', async () => {
  const { clock, limiters, state } = setUp([0], { requestsPerMinute: 600 })
  const [limiter] = limiters as [Limiter]
  const times: { at: number; tokens: number }[] = []
  const agent = createAgent({ model: limiter.limit(createNotingModel(clock, times)), clock, prices: null })
  state.isAway = true
  const run = agent.run('Go.')
  await passTime(clock, 1000, 50)
  expect(times).toEqual([])
  state.isAway = false
  expect((await passUntil(clock, run.result, 500)).state).toBe('COMPLETED')
  state.isAway = true
  const failing = agent.run('Go.')
  const { state: end, error } = await passUntil(clock, failing.result, 2000)
  expect(end).toBe('ERROR')
  expect(error).toMatchObject({ code: 'limiter_unavailable' })
  expect(error?.message).toContain("limiter 'shared'")
  expect(times).toHaveLength(1)
})

test('a clock of the store that moves back by hours delays nothing for hours', async () => {
  const clock = new SimulatedClock()
  let aheadMs = 5 * 3_600_000
  const store = memoryStore({ now: () => start + aheadMs + clock.now() })
  const limiter = createLimiter({ id: 'shared', store, clock, requestsPerMinute: 60 })
  const times: { at: number; tokens: number }[] = []
  const model = createNotingModel(clock, times)
  await ask(limiter, model)
  aheadMs = 0
  clock.increment(20_000)
  const asked = ask(limiter, model)
  await passUntil(clock, asked)
  expect(clock.now()).toBeLessThan(22_000)
})

test('a wait ends with its signal, and what was taken for it goes to others', async () => {
  const { clock, limiters } = setUp([10], { requestsPerMinute: 6 })
  const [limiter] = limiters as [Limiter]
  const times: { at: number; tokens: number }[] = []
  const model = createNotingModel(clock, times)
  await passUntil(clock, ask(limiter, model))
  const stop = new AbortController()
  const second = ask(limiter, model, stop.signal)
  const third = ask(limiter, model)
  await passTime(clock, 100)
  stop.abort(new Error('Not any more.'))
  await expect(second).rejects.toThrow('Not any more.')
  await passUntil(clock, third, 50)
  expect(clock.now()).toBeLessThan(11_000)
  expect(times).toHaveLength(2)
})

test('a limiter is no timer that is ever due, nor a schedule', async () => {
  const store = memoryStore()
  await ask(
    createLimiter({ id: 'shared', store, requestsPerMinute: 600, tokensPerMinute: 90_000 }),
    createNotingModel(new SimulatedClock(), []),
  )
  expect(store.timers.listDue({ limit: 10 }).timers).toEqual([])
  expect(store.timers.list({ prefix: 'limiter', limit: 10 }).map(({ id }) => id)).toEqual([
    'limiter:shared:requests',
    'limiter:shared:tokens',
    'limiters',
  ])
})

describe('what is refused names its key', () => {
  const store = memoryStore()
  test.each([
    [{ id: 'a', requestsPerMinute: 5, store: {} }, 'store must be a store that keeps timers'],
    [{ id: 'a', requestsPerMinute: 5, store: null }, 'store must be a store that keeps timers'],
    [{ id: 'a', concurrency: 5, store }, 'store needs requestsPerMinute or tokensPerMinute'],
    [{ id: 'a'.repeat(201), requestsPerMinute: 5, store }, 'id must have at most 200 characters'],
  ])('%j', (options, message) => {
    expect(() => createLimiter(options as never)).toThrow(message)
  })
})
