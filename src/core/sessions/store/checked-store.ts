import type { Clock } from '../../base/clock.js'
import { limitTime } from '../../base/abort.js'
import { ConfigError } from '../../base/errors.js'
import type { BudgetStore } from '../../budgets/budget-store.js'
import { StoreError } from './store-error.js'
import type { Lease, SessionStore } from './store.js'

const requiredMethods = [
  'acquire',
  'renew',
  'release',
  'append',
  'read',
  'get',
  'list',
  'delete',
  'close',
] as const

/** @throws {ConfigError} for a store that lacks a method, such as a promise of a store */
export function checkStore(store: unknown): void {
  if (store === undefined) return
  const candidate = store as Partial<SessionStore> | null
  const missing = requiredMethods.find((method) => typeof candidate?.[method] !== 'function')
  if (missing === undefined) return
  const hint = store instanceof Promise ? ' It is a promise: await it first.' : ''
  throw new ConfigError(
    'invalid_config',
    `store must be a SessionStore, such as memoryStore() or fileStore({ dir }); it has no ${missing}().${hint}`,
    'store',
  )
}

const innerStores = new WeakMap<SessionStore, SessionStore>()

/** The store without its time limit. Per-store registries use it as the key. */
export function getInnerStore(store: SessionStore): SessionStore {
  return innerStores.get(store) ?? store
}

/**
 * Wraps a store so that calls without a response within `timeoutMs` fail as `store_unavailable`. A promise that never
 * settles would otherwise block even a cancelled run forever. Synchronous responses add no overhead. `late` creates the
 * error.
 */
export function limitStoreTime(
  store: SessionStore,
  timeoutMs: number,
  clock: Clock,
  late: (what: string, timeoutMs: number) => StoreError = storeTimeoutError,
): SessionStore {
  if (timeoutMs === 0) return store
  const limited = <Value>(
    what: string,
    answer: Value | Promise<Value>,
    onLate?: (value: Value) => void,
  ): Value | Promise<Value> => {
    if (!(answer instanceof Promise)) return answer
    return limitTime({ ms: timeoutMs, clock, late: () => late(what, timeoutMs), onLate }, answer)
  }
  /** The caller no longer waits, so the lease is released. */
  const giveBack = async (lease: Lease): Promise<void> => {
    try {
      await store.release(lease)
    } catch {
      // The lease expires by itself.
    }
  }
  let limitedStore: SessionStore = {
    acquire: (...args) => limited('acquire', store.acquire(...args), (lease) => void giveBack(lease)),
    renew: (...args) => limited('renew', store.renew(...args)),
    release: (...args) => limited('release', store.release(...args)),
    append: (...args) => limited('append', store.append(...args)),
    read: (...args) => limited('read', store.read(...args)),
    get: (...args) => limited('get', store.get(...args)),
    list: (...args) => limited('list', store.list(...args)),
    delete: (...args) => limited('delete', store.delete(...args)),
    close: () => store.close(),
  }
  const { inbox } = store
  if (store.renewAll) {
    limitedStore.renewAll = (leases, ttlMs) => limited('renewAll', store.renewAll?.(leases, ttlMs) ?? [])
  }
  if (store.setTitle) {
    limitedStore.setTitle = (...args) => limited('setTitle', store.setTitle?.(...args) ?? false)
  }
  if (store.setMark) {
    limitedStore.setMark = (...args) => limited('setMark', store.setMark?.(...args) ?? false)
  }
  if (store.purge) limitedStore.purge = () => limited('purge', store.purge?.())
  if (store.openBudgets) {
    limitedStore.openBudgets = () => limited('openBudgets', store.openBudgets?.() as BudgetStore)
  }
  if (inbox) {
    limitedStore = {
      ...limitedStore,
      inbox: {
        put: (...args) => limited('inbox.put', inbox.put(...args)),
        read: (...args) => limited('inbox.read', inbox.read(...args)),
        remove: (...args) => limited('inbox.remove', inbox.remove(...args)),
        ...(inbox.findUnread && {
          findUnread: (ids) => limited('inbox.findUnread', inbox.findUnread?.(ids) ?? []),
        }),
        ...(inbox.listUnread && {
          listUnread: () => limited('inbox.listUnread', inbox.listUnread?.() ?? []),
        }),
      },
    }
  }
  const { timers } = store
  if (timers) {
    limitedStore = {
      ...limitedStore,
      timers: {
        get: (...args) => limited('timers.get', timers.get(...args)),
        set: (...args) => limited('timers.set', timers.set(...args)),
        listDue: (...args) => limited('timers.listDue', timers.listDue(...args)),
        list: (...args) => limited('timers.list', timers.list(...args)),
        move: (...args) => limited('timers.move', timers.move(...args)),
      },
    }
  }
  innerStores.set(limitedStore, store)
  return limitedStore
}

function storeTimeoutError(what: string, timeoutMs: number): StoreError {
  return new StoreError(
    'store_unavailable',
    `The session store did not answer ${what}() within ${timeoutMs} ms (storeTimeoutMs). Check that it can be reached. agent.resume(id) continues from the stored records.`,
  )
}
