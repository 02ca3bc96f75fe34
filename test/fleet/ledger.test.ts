import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BudgetStore } from '../../src/core/budgets/budget-store.js'
import { memoryStore } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { request, describeBudgetStore } from './budget-store.js'
import { checkBudgets } from './check-budgets.js'

describeBudgetStore(
  'the budgets of memoryStore',
  async (now) => memoryStore({ now }).openBudgets?.() as Promise<BudgetStore>,
)

const folders: { dir: string; store: SyncSessionStore }[] = []
afterEach(() => {
  for (const { dir, store } of folders.splice(0)) {
    store.close()
    rmSync(dir, { recursive: true, force: true })
  }
})

function openFolder(
  now?: () => number,
  dir = mkdtempSync(join(tmpdir(), 'statewright-budgets-')),
): SyncSessionStore {
  const store = fileStore({ dir, ...(now && { now }) })
  folders.push({ dir, store })
  return store
}

describeBudgetStore(
  'the budgets of fileStore',
  async (now) => openFolder(now).openBudgets?.() as Promise<BudgetStore>,
  20,
)

checkBudgets('spending from memoryStore', async () => memoryStore().openBudgets?.() as Promise<BudgetStore>)

checkBudgets('spending from fileStore', async () => openFolder().openBudgets?.() as Promise<BudgetStore>)

test('budgets of a folder are available when it is opened again, next to its sessions', async () => {
  const first = openFolder()
  const lease = first.acquire('ann', { holder: 'me', ttlMs: 1000 })
  first.append(lease, [{ seq: 1, at: 0, type: 'opened', data: '{"version":1}', check: '…' }])
  await (await first.openBudgets?.())?.reserve(request())
  const again = openFolder(undefined, folders[0]?.dir)
  expect(await (await again.openBudgets?.())?.list()).toMatchObject([
    { budget: 'b', reserved: { nanoUsd: 60 }, live: 1 },
  ])
  expect(again.get('ann')).toMatchObject({ head: 1 })
})

test('a store returns the same budgets each time', async () => {
  const store = memoryStore()
  expect(await store.openBudgets?.()).toBe(await store.openBudgets?.())
})
