import { createBudget } from '../../src/fleet/index.js'
import { createPlace } from './kept.js'
import { removeFolders } from './support.js'

afterEach(removeFolders)

async function twoBudgets() {
  const place = await createPlace()
  await place.withStore(async (store) => {
    const tenant = createBudget({ id: 'tenant-acme', usd: 20, per: 'day', timezone: 'Europe/Zurich', store })
    await (await tenant.reserve({ usd: 1 })).settle({ usd: 0.5 })
    await tenant.reserve({ usd: 0.25 })
    const app = createBudget({ id: 'app', tokens: 1000, store })
    await (await app.reserve({ tokens: 10 })).settle({ tokens: 7 })
  })
  return place
}

test('budgets prints a table of spent, reserved and remaining amounts', async () => {
  const { code, out, err } = await (await twoBudgets()).run(['budgets'])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const [head, app, tenant] = out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/))
  expect(head).toEqual(['budget', 'spent', 'reserved', 'left', 'in progress', 'limits', 'resets'])
  expect(app).toEqual(['app', '7 tokens', '0 tokens', '993 tokens', '0', 'tokens 1000', 'never'])
  const words = ['0.5 USD', '0.25 USD', '19.25 USD', '1', 'usd 20 per day (Europe/Zurich)']
  expect(tenant).toEqual([
    'tenant-acme',
    ...words,
    expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:00:00\.000Z$/),
  ])
})

test('budgets prints the same data with --json', async () => {
  const { out } = await (await twoBudgets()).run(['budgets', '--json'])
  const [app, tenant] = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  expect(app).toMatchObject({
    id: 'app',
    limits: { tokens: 1000 },
    spent: { tokens: 7 },
    left: { tokens: 993 },
    resetsAt: null,
  })
  expect(tenant).toMatchObject({ id: 'tenant-acme', spent: { usd: 0.5 }, reserved: { usd: 0.25 }, live: 1 })
})

test('budgets reports that there are none, and refuses an argument', async () => {
  const place = await createPlace()
  await place.withStore(() => undefined)
  expect((await place.run(['budgets'])).out).toContain('There are no budgets in this store.')
  expect(await place.run(['budgets', 'acme'])).toMatchObject({
    code: 2,
    err: expect.stringContaining("Unexpected argument 'acme'"),
  })
})

test('a damaged budget is reported, and the others are shown', async () => {
  const place = await twoBudgets()
  await place.withStore(async (store) => {
    const budgets = await store.openBudgets?.()
    await budgets?.replaceTerms('app', '{"tokens":"many","timezone":"Nowhere"}')
  })
  const { code, out, err } = await place.run(['budgets'])
  expect(code).toBe(1)
  expect(err).toContain("statewright: The limits of budget 'app' cannot be read")
  expect(out).toContain('tenant-acme')
})
