import { SimulatedClock } from 'xstate'
import type { BudgetStore, ReserveOptions } from '../../../src/core/budgets/budget-store.js'
import { createMemoryBudgets } from '../../../src/core/budgets/memory-budgets.js'
import { createBudget, createLimiter, type Limiter } from '../../../src/fleet/index.js'
import { memoryStore } from '../../../src/index.js'
import { plainAnswer } from '../../support/manual-model.js'
import { type Row, row } from '../measure.js'

const options: Omit<ReserveOptions, 'reservation'> = {
  budget: 'b',
  terms: 't',
  allowance: { nanoUsd: null, tokens: null },
  windowAt: 0,
  windowEndsAt: null,
  ttlMs: 1000,
  countsLost: true,
  nanoUsd: 1,
  tokens: 1,
}

const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

/** A store with this many reservations of one budget, each from a different moment. */
function reserved(n: number): { store: BudgetStore; time: { now: number } } {
  const time = { now: 0 }
  const store = createMemoryBudgets(() => time.now)
  for (const i of numbers(n)) {
    time.now += 0.01
    void store.reserve({ ...options, ttlMs: 1e6, reservation: `r${i}` })
  }
  return { store, time }
}

const never = { signal: new AbortController().signal, onDelta: () => undefined, onActivity: () => undefined }
const request = {
  instructions: null,
  messages: [],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
  stream: false,
}
const model = { provider: 'own', model: 'm', request: () => Promise.resolve(plainAnswer) }
/** Its answers never arrive. */
const silent = { ...model, request: () => new Promise<never>(() => undefined) }

const size = { from: 500, atMost: 32_000 }

/** A store with this many timers, all due. */
function timed(n: number) {
  const { timers } = memoryStore({ now: () => 1e9 })
  timers.set(numbers(n).map((i) => ({ id: `t:${(i * 7919) % n}`, at: i, data: '{}' })))
  return timers
}

/** Queues this many requests at a limiter and aborts them, the last first. */
async function queue(limiter: Limiter, n: number): Promise<void> {
  const limited = limiter.limit(silent)
  const aborts = numbers(n).map(() => new AbortController())
  const asking = aborts.map(({ signal }) =>
    limited.request(request, { ...never, signal }).catch(() => undefined),
  )
  for (const abort of aborts.toReversed()) abort.abort()
  void asking
  await new Promise((resolve) => setImmediate(resolve))
}

export const fleetRows: readonly Row[] = [
  row({
    name: 'many reservations of a budget, each settled',
    covers: ['budgets reserve', 'budgets settle', 'budgets list'],
    ...size,
    prepare: (n) => n,
    run: (n) => {
      const { store } = reserved(n)
      for (const i of numbers(n)) {
        void store.settle({ budget: 'b', reservation: `r${i}`, nanoUsd: 1, tokens: 1 })
        void store.list('b')
      }
    },
  }),
  row({
    name: 'many reservations of a budget that run out one after the other',
    covers: [],
    ...size,
    prepare: (n) => n,
    run: (n) => {
      const { store, time } = reserved(n)
      time.now += 1e6
      for (const i of numbers(n)) {
        time.now += 0.01
        void store.reserve({ ...options, reservation: `again${i}` })
      }
    },
  }),
  row({
    name: 'many reservations of a budget that are renewed',
    covers: ['budgets renew', 'budgets replaceTerms'],
    ...size,
    prepare: (n) => n,
    run: (n) => {
      const { store, time } = reserved(n)
      for (const i of numbers(10)) {
        time.now += 6e5
        void store.renew(
          numbers(n).map((one) => `r${one}`),
          1e6,
        )
        void store.reserve({ ...options, reservation: `next${i}` })
        void store.replaceTerms('b', 't')
      }
    },
  }),
  row({
    name: 'many budgets of a store',
    covers: [],
    ...size,
    prepare: (n) => n,
    run: async (n) => {
      const store = createMemoryBudgets(() => 0)
      for (const i of numbers(n)) void store.reserve({ ...options, budget: `b${i}`, reservation: `r${i}` })
      await store.list()
    },
  }),
  row({
    name: 'many requests that wait for a budget, and leave',
    covers: ['budget reserve', 'budget status', 'budget replaceLimits'],
    ...size,
    prepare: (n) => n,
    run: async (n) => {
      const clock = new SimulatedClock()
      const budget = createBudget({ id: 'b', tokens: 10, store: memoryStore({ now: () => 0 }), clock })
      const held = await budget.reserve({ tokens: 10 })
      const aborts = numbers(n).map(() => new AbortController())
      const waiting = aborts.map(({ signal }) => budget.reserve({ tokens: 1 }, { signal }).catch(() => null))
      await budget.status()
      for (const abort of aborts.slice(n / 2).toReversed()) abort.abort()
      await held.settle({ tokens: 0 })
      const served = waiting.slice(0, n / 2).map(async (one) => (await one)?.settle({ tokens: 0 }))
      await Promise.all(served)
      await budget.replaceLimits()
    },
  }),
  row({
    name: 'many requests that wait at a limiter, and leave',
    covers: ['limiter limit', 'limiter status'],
    ...size,
    prepare: (n) => n,
    run: (n) => queue(createLimiter({ id: 'l', concurrency: 1, clock: new SimulatedClock() }), n),
  }),
  row({
    name: 'many requests of a minute at a limiter',
    covers: [],
    ...size,
    prepare: (n) => n,
    run: async (n) => {
      const clock = new SimulatedClock()
      const limiter = createLimiter({ id: 'l', requestsPerMinute: n, tokensPerMinute: n, burst: 1, clock })
      const limited = limiter.limit(model)
      const asking = numbers(n).map(() => limited.request({ ...request, sampling: { maxTokens: 1 } }, never))
      for (const _ of numbers(100)) {
        clock.increment(1000)
        await new Promise((resolve) => setImmediate(resolve))
      }
      void asking
    },
  }),
  row({
    name: 'many timers that are due, read page by page and moved',
    covers: ['timers get', 'timers set', 'timers listDue', 'timers move'],
    ...size,
    prepare: (n) => n,
    run: (n) => {
      const timers = timed(n)
      let page = timers.listDue({ limit: 100 }).timers
      while (page.length > 0) {
        for (const { id, at } of page) {
          timers.move({ id, from: timers.get(id)?.at ?? at, to: 2e9 + at })
        }
        page = timers.listDue({ limit: 100, after: page.at(-1) }).timers
      }
    },
  }),
  row({
    name: 'many timers, listed page by page',
    covers: ['timers list'],
    ...size,
    prepare: timed,
    run: (timers) => {
      let page = timers.list({ prefix: 't:', limit: 100 })
      while (page.length > 0) page = timers.list({ prefix: 't:', limit: 100, after: page.at(-1)?.id })
    },
  }),
]
