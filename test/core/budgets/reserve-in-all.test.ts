import fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { reserveInAll } from '../../../src/core/budgets/reserve-in-all.js'
import { createBudget, type SharedBudget } from '../../../src/fleet/index.js'
import { memoryStore } from '../../../src/index.js'
import { settled } from '../../support/manual-model.js'
import { sampled } from '../../support/extent.js'

const limits = { a: 100, b: 60, c: 30 }
type Id = keyof typeof limits

function openBudgets() {
  const [store, clock] = [memoryStore(), new SimulatedClock()]
  const of = (id: Id) => createBudget({ id, tokens: limits[id], store, clock })
  return { a: of('a'), b: of('b'), c: of('c') }
}

const take = (budgets: readonly SharedBudget[], tokens: number, signal = new AbortController().signal) =>
  reserveInAll(budgets, async () => ({ usd: 0, tokens }), signal)

/**
 * One of many concurrent requests: its budgets, their order, the amount, the duration, and whether it is
 * aborted.
 */
const requests = fc.array(
  fc.record({
    ids: fc.shuffledSubarray<Id>(['a', 'b', 'c'], { minLength: 1 }),
    tokens: fc.integer({ min: 1, max: 110 }),
    turns: fc.integer({ min: 0, max: 3 }),
    stopAfter: fc.option(fc.integer({ min: 0, max: 3 }), { freq: 4 }),
  }),
  { minLength: 2, maxLength: 12 },
)

async function pass(turns: number): Promise<void> {
  for (let i = 0; i < turns; i += 1) await settled()
}

it('concurrent reservations in several budgets never exceed a limit, all end, and none remains', async () => {
  await fc.assert(
    fc.asyncProperty(requests, async (plans) => {
      const budgets = openBudgets()
      const held: Record<Id, number> = { a: 0, b: 0, c: 0 }
      const overdrawn: string[] = []
      const ends = plans.map(async ({ ids, tokens, turns, stopAfter }) => {
        const stop = new AbortController()
        if (stopAfter !== null) void pass(stopAfter).then(() => stop.abort(new Error('Stopped.')))
        try {
          const amounts = await take(
            ids.map((id) => budgets[id]),
            tokens,
            stop.signal,
          )
          for (const id of ids) held[id] += tokens
          for (const id of ids) if (held[id] > limits[id]) overdrawn.push(`${id}: ${held[id]}`)
          await pass(turns)
          for (const id of ids) held[id] -= tokens
          await Promise.all(amounts.map(({ settle }) => settle({ usd: 0, tokens: 0 })))
          return 'held'
        } catch (error) {
          const isTooMuch = ids.some((id) => tokens > limits[id])
          return stop.signal.reason === error || isTooMuch ? 'refused' : error
        }
      })
      const outcomes = await Promise.all(ends)
      expect(outcomes.filter((outcome) => outcome !== 'held' && outcome !== 'refused')).toEqual([])
      plans.forEach(({ ids, tokens }, i) => {
        if (ids.some((id) => tokens > limits[id])) expect(outcomes[i]).toBe('refused')
      })
      expect(overdrawn).toEqual([])
      for (const budget of Object.values(budgets))
        expect(await budget.status()).toMatchObject({
          live: 0,
          reserved: { tokens: 0 },
          spent: { tokens: 0 },
        })
    }),
    { numRuns: sampled(40) },
  )
})

it('a refused request releases its held amount to a waiting request', async () => {
  const { a, b } = openBudgets()
  const [first] = await take([a], 60)
  const full = await take([b], 60)
  // It holds a part of `a` and waits for `b`.
  const stop = new AbortController()
  const waiting = take([b, a], 40, stop.signal)
  waiting.catch(() => undefined)
  while ((await a.status()).live < 2) await settled()
  const next = take([a], 40)
  stop.abort(new Error('Stopped.'))
  await expect(waiting).rejects.toThrow('Stopped.')
  expect(await next).toHaveLength(1)
  expect(await a.status()).toMatchObject({ live: 2, reserved: { tokens: 100 } })
  expect((await b.status()).live).toBe(1)
  expect([first, ...full]).toHaveLength(2)
})

it('a budget that is listed twice is reserved once, because it would wait for itself', async () => {
  const { a } = openBudgets()
  expect(await take([a, a], 60)).toHaveLength(1)
  expect(await a.status()).toMatchObject({ live: 1, reserved: { tokens: 60 } })
})

it('names the budget that refused, even if another budget cannot release', async () => {
  const { b } = openBudgets()
  const settle = () => Promise.reject(new Error('The store is away.'))
  const a = { ...b, id: 'a', reserve: () => Promise.resolve({ settle }) }
  await expect(take([a, b], 1000)).rejects.toMatchObject({ code: 'budget_exceeded', subject: 'b' })
})
