import type { BudgetStore } from '../../src/core/budgets/budget-store.js'
import { createBudget } from '../../src/fleet/index.js'
import { postgresStore } from '../../src/stores/postgres/index.js'
import { request, describeBudgetStore } from '../fleet/budget-store.js'
import { checkBudgets } from '../fleet/check-budgets.js'
import { usePlace } from '../stores/use-place.js'
import { postgresPlace } from './place.js'

const { keep, open } = usePlace(postgresPlace)

describeBudgetStore(
  'the budgets of postgresStore',
  async (now) => open(now).openBudgets?.() as Promise<BudgetStore>,
  30,
)

checkBudgets('spending from postgresStore', async () => open().openBudgets?.() as Promise<BudgetStore>, 30)

test('stores that open their budgets at the same time share one', async () => {
  const budgets = await Promise.all([open(), open(), open()].map(async (store) => store.openBudgets?.()))
  await Promise.all(
    budgets.map(async (one, i) => one?.reserve(request({ nanoUsd: 20, reservation: `r${i}` }))),
  )
  expect(await budgets[0]?.list()).toMatchObject([{ reserved: { nanoUsd: 60 }, live: 3 }])
})

test('concurrent reservations, settlements and expiries over several connections never exceed the limit', async () => {
  const [first, second] = await Promise.all([open().openBudgets?.(), open().openBudgets?.()])
  const stores = [first, second] as BudgetStore[]
  const limit = { nanoUsd: 1000, tokens: null }
  let granted = 0
  const work = async (i: number): Promise<void> => {
    const store = stores[i % 2] as BudgetStore
    const options = request({
      budget: 'busy',
      allowance: limit,
      nanoUsd: 40,
      reservation: `r${i}`,
      ttlMs: i % 5 === 0 ? 1000 : 60_000,
    })
    if (!(await store.reserve(options)).granted) return
    granted += 1
    const [row] = await store.list('busy')
    expect((row?.spent.nanoUsd ?? 0) + (row?.reserved.nanoUsd ?? 0)).toBeLessThanOrEqual(1000)
    if (i % 5 !== 0) await store.settle({ budget: 'busy', reservation: `r${i}`, nanoUsd: 4, tokens: 0 })
  }
  const worker = async (first: number): Promise<void> => {
    for (let n = 0; n < 20; n += 1) await work(first + n)
  }
  await Promise.all(Array.from({ length: 15 }, (_, i) => worker(i * 20)))
  const [row] = (await stores[0]?.list('busy')) ?? []
  expect(granted).toBeGreaterThan(25)
  expect((row?.spent.nanoUsd ?? 0) + (row?.reserved.nanoUsd ?? 0)).toBeLessThanOrEqual(1000)
})

test('an unavailable server fails closed', async () => {
  const store = keep(postgresStore({ connectionString: 'postgres://nobody@127.0.0.1:1/none' }))
  const budget = createBudget({ id: 'b', usd: 1, store })
  await expect(budget.reserve({ usd: 0.1 })).rejects.toMatchObject({ code: 'store_unavailable' })
})
