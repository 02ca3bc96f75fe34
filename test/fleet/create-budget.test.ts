import { SimulatedClock } from 'xstate'
import * as fc from 'fast-check'
import { findWindow } from '../../src/fleet/budget-limits.js'
import { type BudgetStore, createBudget } from '../../src/fleet/index.js'
import { memoryStore, StoreError } from '../../src/index.js'

const store = memoryStore()

describe('options', () => {
  test.each([
    ['a limit below 0', { usd: -1 }, 'usd'],
    ['NaN', { usd: Number.NaN }, 'usd'],
    ['zero', { usd: 0 }, 'usd'],
    ['an unsafe integer', { usd: 1e9 }, 'usd'],
    ['zero tokens', { tokens: 0 }, 'tokens'],
    ['half a token', { tokens: 1.5 }, 'tokens'],
    ['a limit that is not a number', { usd: '5' }, 'usd'],
    ['no limit', {}, 'usd'],
    ['an unknown period', { usd: 1, per: 'week' }, 'per'],
    ['an empty period', { usd: 1, per: 0 }, 'per'],
    ['an unknown zone', { usd: 1, per: 'day', timezone: 'Mars/Base' }, 'timezone'],
    ['a zone without days', { usd: 1, per: 60_000, timezone: 'UTC' }, 'timezone'],
    ['a zone without a period', { usd: 1, timezone: 'UTC' }, 'timezone'],
    ['no id', { id: '', usd: 1 }, 'id'],
    ['an output of zero', { usd: 1, reserveOutputTokens: 0 }, 'reserveOutputTokens'],
    ['a lease of zero', { usd: 1, leaseMs: 0 }, 'leaseMs'],
    ['another onLost', { usd: 1, lostReservations: 'gone' }, 'lostReservations'],
    ['no store', { usd: 1, store: undefined }, 'store'],
    ['a store that keeps no budgets', { usd: 1, store: {} }, 'store'],
    ['an unknown option', { usd: 1, limit: 5 }, 'limit'],
  ])('%s is refused, naming the key', (_name, options, subject) => {
    const make = () => createBudget({ id: 'b', store, ...options } as never)
    expect(make).toThrow(expect.objectContaining({ subject }))
  })
})

test('an amount is reserved, and settled for the paid amount', async () => {
  const budget = createBudget({ id: 'one', usd: 1, tokens: 1000, store: memoryStore() })
  const held = await budget.reserve({ usd: 0.6, tokens: 500 })
  expect(await budget.status()).toMatchObject({
    limits: { usd: 1, tokens: 1000 },
    reserved: { usd: 0.6, tokens: 500 },
    left: { usd: 0.4, tokens: 500 },
    live: 1,
    resetsAt: null,
  })
  await held.settle({ usd: 0.1, tokens: 80 })
  await held.settle({ usd: 0.5, tokens: 80 })
  expect(await budget.status()).toMatchObject({
    spent: { usd: 0.1, tokens: 80 },
    reserved: { usd: 0, tokens: 0 },
    left: { usd: 0.9, tokens: 920 },
    live: 0,
  })
})

test('an unknown amount counts as reserved', async () => {
  const budget = createBudget({ id: 'one', usd: 1, store: memoryStore() })
  const held = await budget.reserve({ usd: 0.6 })
  await held.settle({ usd: null })
  expect((await budget.status()).spent.usd).toBe(0.6)
})

test('an amount that cannot fit is refused, with the spent amount', async () => {
  const budget = createBudget({ id: 'small', usd: 0.5, per: 'day', store: memoryStore() })
  await (await budget.reserve({ usd: 0.2 })).settle({ usd: 0.2 })
  await expect(budget.reserve({ usd: 0.4 })).rejects.toMatchObject({
    code: 'budget_exceeded',
    subject: 'small',
    resetsAt: expect.any(Number),
    message: expect.stringContaining('0.2 of 0.5 USD has been spent, and the request may cost up to 0.4'),
  })
})

test('an amount that fits only after others are settled waits for them, in order', async () => {
  const budget = createBudget({ id: 'b', usd: 1, store: memoryStore() })
  const held = await budget.reserve({ usd: 0.9 })
  const order: string[] = []
  const large = budget.reserve({ usd: 0.8 }).then((one) => {
    order.push('large')
    return one
  })
  await new Promise((resolve) => setImmediate(resolve))
  const small = budget.reserve({ usd: 0.05 }).then(() => order.push('small'))
  await held.settle({ usd: 0.1 })
  await Promise.all([large, small])
  expect(order).toEqual(['large', 'small'])
})

test('a waiting amount is refused as soon as it can never fit', async () => {
  const budget = createBudget({ id: 'b', usd: 1, store: memoryStore() })
  const held = await budget.reserve({ usd: 0.9 })
  const waiting = budget.reserve({ usd: 0.8 })
  await Promise.all([
    expect(waiting).rejects.toMatchObject({ code: 'budget_exceeded' }),
    held.settle({ usd: 0.9 }),
  ])
})

test('a waiting amount stops when its signal aborts, and the next is served', async () => {
  const budget = createBudget({ id: 'b', usd: 1, store: memoryStore() })
  await budget.reserve({ usd: 0.9 })
  const controller = new AbortController()
  const large = budget.reserve({ usd: 0.8 }, { signal: controller.signal })
  const small = budget.reserve({ usd: 0.05 })
  controller.abort(new Error('Enough.'))
  await expect(large).rejects.toThrow('Enough.')
  await small
  expect((await budget.status()).reserved.usd).toBeCloseTo(0.95, 9)
})

test.each([
  ['free', 0.1],
  ['awaited', 0.9],
])('an abort at any moment loses no %s share: it is received or returned', async (_name, usd) => {
  const outcomes = new Set<string>()
  for (let ticks = 0; ticks < 80; ticks += 1) {
    const budget = createBudget({ id: 'b', usd: 1, store: memoryStore() })
    const first = await budget.reserve({ usd })
    const controller = new AbortController()
    const asked = budget.reserve({ usd: 0.8 }, { signal: controller.signal }).catch(() => null)
    if (usd > 0.2) await new Promise((resolve) => setImmediate(resolve))
    const settled = first.settle({ usd: 0 })
    for (let i = 0; i < ticks; i += 1) await Promise.resolve()
    controller.abort()
    const received = await asked
    outcomes.add(received ? 'received' : 'aborted')
    await received?.settle({ usd: 0 })
    await settled
    await new Promise((resolve) => setImmediate(resolve))
    expect((await budget.status()).live).toBe(0)
  }
  expect(outcomes).toEqual(new Set(['aborted', 'received']))
})

test('an amount that another process releases is noticed', async () => {
  const clock = new SimulatedClock()
  const shared = memoryStore()
  const [here, there] = [1, 2].map(() => createBudget({ id: 'b', usd: 1, store: shared, clock }))
  const held = await there?.reserve({ usd: 0.9 })
  const waiting = here?.reserve({ usd: 0.5 })
  await held?.settle({ usd: 0.2 })
  const done = waiting?.then(() => true)
  while (!(await Promise.race([done, new Promise((resolve) => setImmediate(resolve, false))])))
    clock.increment(250)
  expect((await here?.status())?.reserved.usd).toBe(0.5)
})

test('two limits for one budget are refused, and both are named', async () => {
  const shared = memoryStore()
  const five = createBudget({ id: 'b', usd: 5, per: 'day', store: shared })
  const ten = createBudget({ id: 'b', usd: 10, per: 'day', store: shared })
  await five.reserve({ usd: 1 })
  const refusal = {
    code: 'budget_conflict',
    message: expect.stringMatching(/usd 5 per day \(UTC\) in its store, but usd 10 per day \(UTC\) here/),
  }
  await expect(ten.reserve({ usd: 1 })).rejects.toMatchObject(refusal)
  await expect(ten.status()).rejects.toMatchObject(refusal)
  await ten.replaceLimits()
  expect((await ten.status()).left.usd).toBe(9)
  await expect(five.reserve({ usd: 1 })).rejects.toMatchObject({ code: 'budget_conflict' })
})

test('a budget in USD refuses a request without a known price', async () => {
  const budget = createBudget({ id: 'b', usd: 5, store: memoryStore() })
  await expect(budget.reserve({ usd: null, tokens: 5 })).rejects.toMatchObject({ code: 'unknown_price' })
})

test('an unavailable store fails closed, and a missed settlement is retried', async () => {
  const clock = new SimulatedClock()
  const inner = (await memoryStore({ now: () => clock.now() }).openBudgets?.()) as BudgetStore
  let isAway = false
  const check = <Value>(value: () => Value): Value => {
    if (isAway) throw new StoreError('store_unavailable', 'The store is away.')
    return value()
  }
  const flaky: BudgetStore = {
    ...inner,
    reserve: (options) => check(() => inner.reserve(options)),
    settle: (options) => check(() => inner.settle(options)),
  }
  const budget = createBudget({ id: 'b', usd: 1, store: flaky, clock, leaseMs: 3000 })
  const held = await budget.reserve({ usd: 0.9 })
  isAway = true
  await expect(budget.reserve({ usd: 0.05 })).rejects.toMatchObject({ code: 'store_unavailable' })
  await held.settle({ usd: 0.1 })
  expect((await budget.status()).reserved.usd).toBe(0.9)
  isAway = false
  clock.increment(1000)
  await new Promise((resolve) => setImmediate(resolve))
  expect(await budget.status()).toMatchObject({ spent: { usd: 0.1 }, reserved: { usd: 0 } })
})

test.each(['is lost', 'arrives after the time limit'])(
  'an amount that the store reserves is released if the answer %s',
  async (answer) => {
    const clock = new SimulatedClock()
    const inner = (await memoryStore({ now: () => clock.now() }).openBudgets?.()) as BudgetStore
    const pass = async (ms: number): Promise<void> => {
      clock.increment(ms)
      await new Promise((resolve) => setImmediate(resolve))
    }
    const store: BudgetStore = {
      ...inner,
      reserve: async (options) => {
        if (answer !== 'is lost') await new Promise<void>((resolve) => void clock.setTimeout(resolve, 40_000))
        const reserved = await inner.reserve(options)
        if (answer === 'is lost') throw new Error('The connection was reset.')
        return reserved
      },
    }
    const budget = createBudget({ id: 'b', usd: 1, store, clock })
    const refused = expect(budget.reserve({ usd: 0.9 })).rejects.toThrow(/reset|did not respond/)
    await pass(0)
    await pass(30_000)
    await refused
    await pass(10_000)
    await pass(120_000)
    await (await createBudget({ id: 'b', usd: 1, store: inner, clock }).reserve({ usd: 1 })).settle({
      usd: 0,
    })
    expect(await budget.status()).toMatchObject({ spent: { usd: 0 }, reserved: { usd: 0 }, live: 0 })
  },
)

test('a slow first release does not end the retries of a second one', async () => {
  const clock = new SimulatedClock()
  const inner = (await memoryStore({ now: () => clock.now() }).openBudgets?.()) as BudgetStore
  const pass = async (ms: number): Promise<void> => {
    clock.increment(ms)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const later = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
  let settlements = 0
  const store: BudgetStore = {
    ...inner,
    reserve: async (options) => {
      await later(40_000)
      return inner.reserve(options)
    },
    settle: async (options) => {
      settlements += 1
      if (settlements === 1) return later(15_000)
      if (settlements === 2) throw new Error('The connection was reset.')
      return inner.settle(options)
    },
  }
  const budget = createBudget({ id: 'b', usd: 1, store, clock })
  const refused = expect(budget.reserve({ usd: 0.9 })).rejects.toThrow(/did not respond/)
  await pass(0)
  for (let i = 0; i < 30; i += 1) await pass(5_000)
  await refused
  expect(await budget.status()).toMatchObject({ spent: { usd: 0 }, reserved: { usd: 0 }, live: 0 })
})

test('an unavailable store receives one retry at a time, and all missed settlements once it is back', async () => {
  const clock = new SimulatedClock()
  const inner = (await memoryStore({ now: () => clock.now() }).openBudgets?.()) as BudgetStore
  const tried: string[] = []
  let refuses = (_reservation: string) => true
  const store: BudgetStore = {
    ...inner,
    settle: (options) => {
      tried.push(options.reservation)
      if (refuses(options.reservation)) throw new StoreError('store_unavailable', 'The store is away.')
      return inner.settle(options)
    },
  }
  const beat = async (): Promise<string[]> => {
    tried.length = 0
    clock.increment(1000)
    await new Promise((resolve) => setImmediate(resolve))
    return [...tried]
  }
  const budget = createBudget({ id: 'b', tokens: 100, store, clock, leaseMs: 3000 })
  for (let i = 0; i < 5; i += 1)
    await (await budget.reserve({ tokens: 10 }, { onUnsettled: () => undefined })).settle({ tokens: 1 })
  const ids = [...tried]
  expect([await beat(), await beat()]).toEqual([[ids[0]], [ids[1]]])
  // A store that refuses only one settlement still receives the others.
  refuses = (reservation) => reservation === ids[2]
  expect(await beat()).toEqual([ids[2]])
  expect(await beat()).toEqual([ids[3], ids[4], ids[0], ids[1], ids[2]])
  refuses = () => false
  await beat()
  expect(await budget.status()).toMatchObject({ spent: { tokens: 5 }, live: 0 })
})

test('the window follows the clock of the store, regardless of the clocks of processes', async () => {
  const hour = 3_600_000
  let now = Date.parse('2026-05-04T06:20:00Z')
  const store = memoryStore({ now: () => now })
  const budgetAt = (ahead: number) =>
    createBudget({
      id: 'b',
      usd: 1,
      per: 'hour',
      onEmpty: 'wait',
      store,
      clock: { now: () => now + ahead, setTimeout: () => 0, clearTimeout: () => undefined },
    })
  const nextHour = Date.parse('2026-05-04T07:00:00Z')
  for (const ahead of [30 * 24 * hour, -30 * 24 * hour, hour, 0]) {
    const budget = budgetAt(ahead)
    await (await budget.reserve({ usd: 0.2 })).settle({ usd: 0.2 })
    expect(await budget.status()).toMatchObject({ resetsAt: nextHour })
  }
  for (const ahead of [30 * 24 * hour, 0, -hour]) {
    await expect(budgetAt(ahead).reserve({ usd: 0.5 })).rejects.toMatchObject({
      code: 'budget_exceeded',
      resetsAt: nextHour,
      waitMs: nextHour - now,
    })
  }
  now += hour
  expect(await budgetAt(0).reserve({ usd: 1 })).toBeDefined()
})

test.each([
  ['spent', { spent: { nanoUsd: NaN, tokens: 0 } }],
  ['live', { live: '1' }],
  ['now', { now: undefined }],
])(
  'a store that returns a damaged row (%s) fails closed, and the error names the field',
  async (field, damage) => {
    const inner = (await memoryStore().openBudgets?.()) as BudgetStore
    const store = {
      ...inner,
      reserve: async (options) => ({ ...(await inner.reserve(options)), ...damage }),
    } as BudgetStore
    await expect(createBudget({ id: 'b', usd: 1, store }).reserve({ usd: 0.1 })).rejects.toMatchObject({
      code: 'corrupt_log',
      subject: 'b',
      message: expect.stringContaining(field),
    })
  },
)

test('a renewal that hangs does not keep later reservations from being renewed', async () => {
  const clock = new SimulatedClock()
  const budgets = (await memoryStore({ now: () => clock.now() }).openBudgets?.()) as BudgetStore
  const renewed: number[] = []
  const hanging: BudgetStore = {
    ...budgets,
    renew: (ids) => {
      renewed.push(ids.length)
      return new Promise(() => undefined)
    },
  }
  const budget = createBudget({ id: 'hang', tokens: 10, leaseMs: 3000, store: hanging, clock })
  await budget.reserve({ tokens: 1 })
  clock.increment(1000)
  await new Promise((resolve) => setImmediate(resolve))
  await budget.reserve({ tokens: 1 })
  clock.increment(1000)
  await new Promise((resolve) => setImmediate(resolve))
  expect(renewed).toEqual([1, 2])
})

test('a settlement is not retried again while its retry hangs', async () => {
  const clock = new SimulatedClock()
  const budgets = (await memoryStore({ now: () => clock.now() }).openBudgets?.()) as BudgetStore
  let tries = 0
  const hanging: BudgetStore = {
    ...budgets,
    settle: async (options) => {
      tries += 1
      if (tries === 1) throw new Error('The disk is full.')
      return tries === 2 ? new Promise(() => undefined) : budgets.settle(options)
    },
  }
  const pass = async (ms: number): Promise<void> => {
    clock.increment(ms)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const budget = createBudget({ id: 'hang', tokens: 10, leaseMs: 3000, store: hanging, clock })
  const held = await budget.reserve({ tokens: 1 }, { onUnsettled: () => undefined })
  await held.settle({ tokens: 1 })
  for (let beat = 0; beat < 5; beat += 1) await pass(1000)
  expect(tries).toBe(2)
  // The retry reaches its time limit.
  await pass(30_000)
  await pass(1000)
  expect(tries).toBe(3)
  expect(await budget.status()).toMatchObject({ spent: { tokens: 1 }, live: 0 })
})

test('the reservation of a live process is renewed, and that of a dead process expires and counts as spent', async () => {
  const clock = new SimulatedClock()
  const shared = memoryStore({ now: () => clock.now() })
  const options = { id: 'b', usd: 1, store: shared, leaseMs: 3000 }
  const dead = createBudget({
    ...options,
    clock: {
      now: () => clock.now(),
      setTimeout: () => 0,
      clearTimeout: () => undefined,
    },
  })
  const alive = createBudget({ ...options, clock })
  await dead.reserve({ usd: 0.5 })
  await alive.reserve({ usd: 0.2 })
  for (let second = 0; second < 6; second += 1) {
    clock.increment(1000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await (await alive.reserve({ usd: 0.1 })).settle({ usd: 0.1 })
  expect(await alive.status()).toMatchObject({ spent: { usd: 0.6 }, reserved: { usd: 0.2 }, live: 1 })
})

test('an amount that is not a number is refused', async () => {
  const budget = createBudget({ id: 'b', usd: 5, store: memoryStore() })
  await expect(budget.reserve({ usd: -1 })).rejects.toMatchObject({ code: 'invalid_config', subject: 'usd' })
  await expect(budget.reserve({ tokens: Number.NaN })).rejects.toMatchObject({ subject: 'tokens' })
})

describe('windows', () => {
  const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  const zurich = (at: string, per: 'hour' | 'day' | 'month') => {
    const { windowAt, windowEndsAt: endsAt } = findWindow(Date.parse(at), per, 'Europe/Zurich')
    return [iso(windowAt), iso(endsAt)]
  }

  test('a day starts at midnight of its zone, also if it has 23 or 25 hours', () => {
    expect(zurich('2026-03-29T10:00:00Z', 'day')).toEqual([
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ])
    expect(zurich('2026-10-25T10:00:00Z', 'day')).toEqual([
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T23:00:00.000Z',
    ])
  })

  test('a month and an hour do so, too', () => {
    expect(zurich('2026-07-31T23:30:00Z', 'month')).toEqual([
      '2026-07-31T22:00:00.000Z',
      '2026-08-31T22:00:00.000Z',
    ])
    const { windowAt } = findWindow(Date.parse('2026-07-01T10:20:00Z'), 'hour', 'Asia/Kolkata')
    expect(iso(windowAt)).toBe('2026-07-01T09:30:00.000Z')
  })

  test('every moment is in its window, and all moments of a window have the same one', () => {
    const zones = [
      'UTC',
      'Europe/Zurich',
      'America/Sao_Paulo',
      'Asia/Beirut',
      'Australia/Lord_Howe',
      'Asia/Kathmandu',
    ]
    const at = fc.integer({ min: Date.UTC(2015, 0, 1), max: Date.UTC(2035, 0, 1) })
    const per = fc.oneof(
      fc.constantFrom('hour' as const, 'day' as const, 'month' as const),
      fc.integer({ min: 1000, max: 1e9 }),
    )
    fc.assert(
      fc.property(
        at,
        per,
        fc.constantFrom(...zones),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (now, period, zone, share) => {
          const { windowAt, windowEndsAt: endsAt } = findWindow(now, period, zone)
          expect(endsAt).toBeGreaterThan(windowAt)
          if (period !== 'day' && period !== 'month') {
            expect(windowAt).toBeLessThanOrEqual(now)
            expect(endsAt).toBeGreaterThan(now)
          }
          // When clocks move back across midnight, a date occurs twice. Both belong to the window of that date.
          const hour = 3_600_000
          expect(windowAt - hour).toBeLessThanOrEqual(now)
          expect((endsAt ?? 0) + hour).toBeGreaterThan(now)
          const other =
            now + Math.floor(share * Math.min(60_000, typeof period === 'number' ? period : 60_000))
          const next = findWindow(other, period, zone)
          expect([windowAt, endsAt]).toContain(next.windowAt)
        },
      ),
    )
  })
})
