import * as fc from 'fast-check'
import type { BudgetStore, ReserveOptions } from '../../src/core/budgets/budget-store.js'
import { createMemoryBudgets } from '../../src/core/budgets/memory-budgets.js'

const limit = { nanoUsd: 1_000, tokens: 500 }
const ttlMs = 100
const windowMs = 1000

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

/** The operations on a budget. */
const step = fc.oneof(
  fc.record({
    type: fc.constant('reserve' as const),
    nanoUsd: fc.integer({ min: 0, max: 600 }),
    tokens: fc.integer({ min: 0, max: 300 }),
    /** One-second windows: the current one, or another one that the store rejects. */
    windows: fc.constantFrom(0, 0, 0, 0, 1, -1),
    countsLost: fc.boolean(),
  }),
  fc.record({
    type: fc.constant('settle' as const),
    which: fc.nat(),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({ type: fc.constant('renew' as const), which: fc.nat() }),
  fc.record({ type: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 150 }) }),
  // Sets the store's clock.
  fc.record({ type: fc.constant('wait' as const), ms: fc.constantFrom(-5000, -1000, 800, 5000, 90_000_000) }),
)

export const request = (over: Partial<ReserveOptions> = {}): ReserveOptions => ({
  budget: 'b',
  terms: 't',
  allowance: { nanoUsd: 100, tokens: null },
  windowAt: 0,
  windowEndsAt: null,
  ttlMs,
  countsLost: true,
  nanoUsd: 60,
  tokens: 0,
  reservation: 'r1',
  ...over,
})

/** Runs steps on a store and checks the limit after each. `of` changes the arguments. */
export async function playSteps(
  store: BudgetStore,
  time: { now: number },
  steps: readonly Step[],
  of: { budget: string; countsLost?: boolean },
  onRow: (row: unknown) => void = () => undefined,
): Promise<void> {
  const { budget } = of
  const live: { reservation: string; nanoUsd: number; tokens: number }[] = []
  let count = 0
  for (const one of steps) {
    const held = 'which' in one ? live[one.which % Math.max(1, live.length)] : undefined
    if (one.type === 'wait') time.now += one.ms
    if (one.type === 'reserve') {
      const { type: _type, windows, ...amount } = one
      const reservation = `${budget}-${(count += 1)}`
      const windowAt = (Math.floor(time.now / windowMs) + windows) * windowMs
      const window = { windowAt, windowEndsAt: windowAt + windowMs }
      const options = request({ ...amount, ...window, ...of, allowance: limit, reservation })
      const { granted, now } = await store.reserve(options)
      expect(now).toBe(time.now)
      if (windows !== 0) expect(granted).toBe(false)
      if (granted) live.push({ reservation, nanoUsd: one.nanoUsd, tokens: one.tokens })
      onRow(granted)
    }
    if (one.type === 'renew' && held) await store.renew([held.reservation], ttlMs)
    if (one.type === 'settle' && held) {
      const nanoUsd = Math.floor(held.nanoUsd * one.share)
      const tokens = Math.floor(held.tokens * one.share)
      await store.settle({ budget, reservation: held.reservation, nanoUsd, tokens })
    }
    const [row] = await store.list(budget)
    onRow(row)
    if (row === undefined) continue
    for (const key of ['nanoUsd', 'tokens'] as const) {
      if (of.countsLost) expect(row.spent[key] + row.reserved[key]).toBeLessThanOrEqual(limit[key])
      expect(row.spent[key]).toBeGreaterThanOrEqual(0)
      expect(row.reserved[key]).toBeGreaterThanOrEqual(0)
    }
    expect(row.live).toBeGreaterThanOrEqual(0)
  }
}

/** The contract of all budget stores. */
export function describeBudgetStore(
  name: string,
  open: (now: () => number) => Promise<BudgetStore> | BudgetStore,
  numRuns = 100,
): void {
  describe(name, () => {
    const time = { now: 0 }
    let store: BudgetStore
    let budgets = 0
    beforeEach(async () => {
      time.now = 0
      store = await open(() => time.now)
    })

    const steps = fc.array(step, { maxLength: 40 })

    test('spent and reserved amounts never exceed the limit, for any sequence of reserve, settle, renew and expiry', async () => {
      const property = fc.asyncProperty(steps, async (all) => {
        await playSteps(store, time, all, { budget: `limit ${(budgets += 1)}`, countsLost: true })
      })
      await fc.assert(property, { numRuns })
    })

    test('behaves like the store in memory', async () => {
      const property = fc.asyncProperty(steps, async (all) => {
        const budget = `same ${(budgets += 1)}`
        const here: unknown[] = []
        const there: unknown[] = []
        const begun = time.now
        await playSteps(store, time, all, { budget }, (row) => here.push(row))
        const other = { now: begun }
        await playSteps(
          createMemoryBudgets(() => other.now),
          other,
          all,
          { budget },
          (row) => there.push(row),
        )
        expect(here).toEqual(there)
      })
      await fc.assert(property, { numRuns })
    })

    test('an expired reservation counts as spent, and its later settlement counts the paid amount once', async () => {
      expect(await store.reserve(request())).toMatchObject({ granted: true, live: 1 })
      time.now = 101
      const again = await store.reserve(request({ reservation: 'r2' }))
      expect(again).toMatchObject({ granted: false, spent: { nanoUsd: 60 }, live: 0 })
      const paid = { budget: 'b', reservation: 'r1', nanoUsd: 10, tokens: 0 }
      await store.settle(paid)
      await store.settle(paid)
      expect(await store.list('b')).toMatchObject([{ spent: { nanoUsd: 10 }, reserved: { nanoUsd: 0 } }])
    })

    test('if lost reservations do not count, an expired reservation is free again', async () => {
      await store.reserve(request({ budget: 'free', countsLost: false }))
      time.now = 101
      const again = await store.reserve(request({ budget: 'free', countsLost: false, reservation: 'r2' }))
      expect(again).toMatchObject({ granted: true, spent: { nanoUsd: 0 }, reserved: { nanoUsd: 60 } })
    })

    test('a later window starts at zero, and settles a request of the earlier one for nothing', async () => {
      const of = { budget: 'windows', windowEndsAt: 50 }
      await store.reserve(request({ ...of, reservation: 'w1' }))
      time.now = 60
      const [first, next] = [
        { windowAt: 0, windowEndsAt: 50 },
        { windowAt: 50, windowEndsAt: 100 },
      ]
      const later = await store.reserve(request({ ...of, reservation: 'w2', ...next }))
      expect(later).toMatchObject({ granted: true, reserved: { nanoUsd: 60 } })
      await store.settle({ ...of, reservation: 'w1', nanoUsd: 60, tokens: 0 })
      const now = { windowAt: 50, spent: { nanoUsd: 0 }, reserved: { nanoUsd: 60 } }
      expect(await store.list('windows')).toMatchObject([now])
      // A host with a slow clock does not reopen the earlier window.
      const behind = await store.reserve(request({ ...of, reservation: 'w3', ...first }))
      expect(behind).toMatchObject({ granted: false, windowAt: 50, now: 60 })
      // A host with a fast clock does not open the next window.
      const ahead = { windowAt: 100, windowEndsAt: 150 }
      expect(await store.reserve(request({ ...of, reservation: 'w4', ...ahead }))).toMatchObject({
        granted: false,
        windowAt: 50,
        now: 60,
      })
    })

    test('a window that has not started becomes the current one, with its spent amount', async () => {
      time.now = 1000
      const of = { budget: 'ahead', allowance: { nanoUsd: 100, tokens: null } }
      await store.reserve(
        request({ ...of, reservation: 'a1', windowAt: 1000, windowEndsAt: 1050, nanoUsd: 30 }),
      )
      await store.reserve(
        request({ ...of, reservation: 'a2', windowAt: 1000, windowEndsAt: 1050, nanoUsd: 20 }),
      )
      await store.settle({ budget: 'ahead', reservation: 'a1', nanoUsd: 25, tokens: 0 })
      time.now = 20
      const now = { windowAt: 0, windowEndsAt: 50 }
      const back = await store.reserve(request({ ...of, reservation: 'a3', ...now, nanoUsd: 60 }))
      expect(back).toMatchObject({ granted: false, windowAt: 0, spent: { nanoUsd: 45 }, live: 0 })
      time.now = 70
      const next = { windowAt: 50, windowEndsAt: 100 }
      expect(await store.reserve(request({ ...of, reservation: 'a4', ...next, nanoUsd: 100 }))).toMatchObject(
        {
          granted: true,
          spent: { nanoUsd: 0 },
        },
      )
    })

    test('totals stop at the largest safe integer, and stay readable', async () => {
      const most = Number.MAX_SAFE_INTEGER
      const of = { budget: 'most', allowance: { nanoUsd: null, tokens: null }, nanoUsd: most, tokens: most }
      for (const reservation of ['t1', 't2', 't3'])
        expect(await store.reserve(request({ ...of, reservation }))).toMatchObject({ granted: true })
      for (const reservation of ['t1', 't2', 't3'])
        await store.settle({ budget: 'most', reservation, nanoUsd: most, tokens: most })
      expect(await store.list('most')).toMatchObject([
        { spent: { nanoUsd: most, tokens: most }, reserved: { nanoUsd: 0, tokens: 0 }, live: 0 },
      ])
    })

    test('nothing is reserved under other terms until the budget is replaced', async () => {
      const of = { budget: 'terms', nanoUsd: 10 }
      await store.reserve(request({ ...of, reservation: 't1' }))
      const other = await store.reserve(request({ ...of, reservation: 't2', terms: 'others' }))
      expect(other).toMatchObject({ granted: false, terms: 't', reserved: { nanoUsd: 10 } })
      expect(await store.replaceTerms('terms', 'others')).toBe(true)
      expect(await store.replaceTerms('nobody’s', 'others')).toBe(false)
      const now = await store.reserve(request({ ...of, reservation: 't2', terms: 'others' }))
      expect(now).toMatchObject({ granted: true, terms: 'others', reserved: { nanoUsd: 20 } })
    })

    test('concurrent reservations never exceed the limit', async () => {
      const many = Array.from({ length: 50 }, async (_, i) =>
        store.reserve(request({ budget: 'many', nanoUsd: 7, reservation: `m${i}` })),
      )
      const granted = (await Promise.all(many)).filter((one) => one.granted)
      expect(granted).toHaveLength(14)
      expect(await store.list('many')).toMatchObject([{ reserved: { nanoUsd: 98 }, live: 14 }])
    })
  })
}
