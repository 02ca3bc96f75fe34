import * as fc from 'fast-check'
import type { BudgetStore } from '../../src/core/budgets/budget-store.js'
import { createMemoryBudgets } from '../../src/core/budgets/memory-budgets.js'

const limit = { nanoUsd: 1_000, tokens: 500 }

const step = fc.oneof(
  fc.record({
    type: fc.constant('reserve' as const),
    nanoUsd: fc.integer({ min: 0, max: 600 }),
    tokens: fc.integer({ min: 0, max: 300 }),
  }),
  fc.record({
    type: fc.constant('settle' as const),
    which: fc.nat(),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({ type: fc.constant('renew' as const), which: fc.nat() }),
  fc.record({ type: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 150 }) }),
)

const ttlMs = 100

/** Plays steps on a store, and looks after each whether the limit holds. Returns what the store has in the end. */
export async function playSteps(
  store: BudgetStore,
  time: { now: number },
  steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[],
  budget = 'b',
): Promise<void> {
  const live: { reservation: string; nanoUsd: number; tokens: number }[] = []
  let made = 0
  for (const one of steps) {
    if (one.type === 'wait') time.now += one.ms
    if (one.type === 'reserve') {
      const { nanoUsd, tokens } = one
      const reservation = `${budget}-${(made += 1)}`
      const given = {
        budget,
        terms: 't',
        allowance: limit,
        windowAt: 0,
        reservation,
        ttlMs,
        countsLost: true,
      }
      // oxlint-disable-next-line no-await-in-loop -- in order
      const { granted } = await store.reserve({ ...given, nanoUsd, tokens })
      if (granted) live.push({ reservation, nanoUsd, tokens })
    }
    const held = 'which' in one ? live[one.which % Math.max(1, live.length)] : undefined
    // oxlint-disable-next-line no-await-in-loop -- in order
    if (one.type === 'renew' && held) await store.renew([held.reservation], ttlMs)
    if (one.type === 'settle' && held) {
      const paid = {
        nanoUsd: Math.floor(held.nanoUsd * one.share),
        tokens: Math.floor(held.tokens * one.share),
      }
      // oxlint-disable-next-line no-await-in-loop -- in order
      await store.settle({ budget, reservation: held.reservation, ...paid })
    }
    // oxlint-disable-next-line no-await-in-loop -- in order
    const [row] = await store.list(budget)
    if (row === undefined) continue
    for (const key of ['nanoUsd', 'tokens'] as const) {
      expect(row.spent[key] + row.reserved[key]).toBeLessThanOrEqual(limit[key])
      expect(row.spent[key]).toBeGreaterThanOrEqual(0)
      expect(row.reserved[key]).toBeGreaterThanOrEqual(0)
    }
    expect(row.live).toBeGreaterThanOrEqual(0)
  }
}

test('what is spent and what is reserved never exceed the limit, however reservations are made, settled, renewed and run out', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const time = { now: 0 }
      await playSteps(
        createMemoryBudgets(() => time.now),
        time,
        steps,
      )
    }),
  )
})

const asked = (over: object) => ({
  budget: 'b',
  terms: 't',
  allowance: { nanoUsd: 100, tokens: null },
  windowAt: 0,
  ttlMs,
  countsLost: true,
  nanoUsd: 60,
  tokens: 0,
  reservation: 'r1',
  ...over,
})

test('a reservation that has run out counts as spent, and for what was paid once it is settled, once', async () => {
  let now = 0
  const store = createMemoryBudgets(() => now)
  expect(await store.reserve(asked({}))).toMatchObject({ granted: true, live: 1 })
  now = 101
  expect(await store.reserve(asked({ reservation: 'r2' }))).toMatchObject({
    granted: false,
    spent: { nanoUsd: 60 },
    live: 0,
  })
  const paid = { budget: 'b', reservation: 'r1', nanoUsd: 10, tokens: 0 }
  await store.settle(paid)
  await store.settle(paid)
  expect(await store.list('b')).toMatchObject([{ spent: { nanoUsd: 10 }, reserved: { nanoUsd: 0 } }])
})

test('where lost reservations do not count, what has run out is free again', async () => {
  let now = 0
  const store = createMemoryBudgets(() => now)
  await store.reserve(asked({ countsLost: false }))
  now = 101
  const again = await store.reserve(asked({ countsLost: false, reservation: 'r2' }))
  expect(again).toMatchObject({ granted: true, spent: { nanoUsd: 0 }, reserved: { nanoUsd: 60 } })
})

test('a later window begins with nothing, and a request of the earlier one is settled for nothing in it', async () => {
  const store = createMemoryBudgets(() => 0)
  await store.reserve(asked({}))
  expect(await store.reserve(asked({ reservation: 'r2', windowAt: 50 }))).toMatchObject({
    granted: true,
    reserved: { nanoUsd: 60 },
  })
  await store.settle({ budget: 'b', reservation: 'r1', nanoUsd: 60, tokens: 0 })
  expect(await store.list('b')).toMatchObject([
    { windowAt: 50, spent: { nanoUsd: 0 }, reserved: { nanoUsd: 60 } },
  ])
  // A host whose clock is behind does not open the earlier window again.
  expect(await store.reserve(asked({ reservation: 'r3', windowAt: 0 }))).toMatchObject({
    granted: false,
    windowAt: 50,
  })
})
