import { createBudget } from '../../src/fleet/index.js'
import { memoryStore, type SessionStore } from '../../src/index.js'
import type { SessionsView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

async function studioOf(store: SessionStore) {
  const visitor = await visit({ store })
  return async () => (await visitor.get<SessionsView>(paths.sessions)).budgets
}

test('the list shows the shared budgets of the store: each limit with its spent and reserved amounts', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Done.' }])
  await agent.run('Go.', { session: 's' }).result
  const list = await studioOf(store)
  expect(await list()).toEqual([])

  const tenant = createBudget({ id: 'tenant', usd: 20, tokens: 1_000, per: 'day', store })
  const held = await tenant.reserve({ usd: 2, tokens: 100 })
  const app = createBudget({ id: 'app', tokens: 500, store })
  await (await app.reserve({ tokens: 40 })).settle({ tokens: 30 })
  const { resetsAt } = await tenant.status()
  expect(await list()).toEqual([
    { id: 'app', unit: 'tokens', spent: 30, reserved: 0, limit: 500, resetsAt: null },
    { id: 'tenant', unit: 'usd', spent: 0, reserved: 2, limit: 20, resetsAt },
    { id: 'tenant', unit: 'tokens', spent: 0, reserved: 100, limit: 1_000, resetsAt },
  ])
  await held.settle({ usd: 1, tokens: 60 })
  expect((await list())[1]).toMatchObject({ spent: 1, reserved: 0 })
  await close()
})

test('a store without sessions is not asked for budgets, and an unavailable one shows none', async () => {
  let opened = 0
  const openBudgets = () => {
    opened += 1
    return Promise.reject(new Error('away'))
  }
  const empty = { ...memoryStore(), openBudgets }
  expect(await (await studioOf(empty))()).toEqual([])
  expect(opened).toBe(0)

  const full = memoryStore()
  const { agent, close } = await rehearsedAgent(full, [{ text: 'Done.' }])
  await agent.run('Go.', { session: 's' }).result
  expect(await (await studioOf({ ...full, openBudgets }))()).toEqual([])
  expect(opened).toBe(1)
  const without: SessionStore = { ...full }
  delete without.openBudgets
  expect(await (await studioOf(without))()).toEqual([])
  await close()
})
