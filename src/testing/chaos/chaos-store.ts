import type { Lease, SessionStore } from '../../core/sessions/store/store.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import { expectArgument, objectRule } from '../../core/base/expect-argument.js'
import { type Chaos, type FaultKind, type FaultPlan, Faults } from './chaos.js'

/**
 * What can happen to a write (`append`):
 *
 * - `refused`: nothing is written, and the store says `store_unavailable`
 * - `lost_reply`: it is written, and the store says `store_unavailable`
 * - `disk_full`, `lease_lost`: nothing is written, and the store says so
 * - `hangs`: nothing is written, and the store never answers this write
 * - `dies`: nothing is written, and the store answers nothing any more, as if the process had died before the write
 * - `dies_after`: the same, after the write
 */
export type StoreFault =
  | 'refused'
  | 'lost_reply'
  | 'disk_full'
  | 'lease_lost'
  | 'hangs'
  | 'dies'
  | 'dies_after'

const kind: FaultKind<StoreFault> = {
  of: 'chaosStore',
  unit: 'write',
  faults: ['refused', 'lost_reply', 'disk_full', 'lease_lost', 'hangs', 'dies', 'dies_after'],
  passing: ['refused', 'lost_reply', 'disk_full'],
}

/**
 * A store whose writes fail as planned, and which says which of its faults have landed. All else is the inner store's: open the
 * inner one again to see what a process that died has left.
 *
 * @example
 * const store = chaosStore(memoryStore(), [{ at: 2, fault: 'lost_reply' }])
 * const { reason } = await createAgent({ model, store }).run('Go.', { session: 'ann' }).result
 * store.certify()
 *
 * @throws {ChaosError} `bad_option` for a plan that makes no sense
 */
export function chaosStore(
  store: SessionStore,
  plan: FaultPlan<StoreFault>,
): SessionStore & Chaos<StoreFault> {
  expectArgument('chaosStore(store)', store, objectRule(['append', 'acquire', 'read'], 'a session store'))
  const faults = new Faults(kind, plan)
  const state = { isDead: false }
  const append: SessionStore['append'] = async (lease, ...rest) => {
    const { at, fault } = faults.next()
    if (fault === undefined) return store.append(lease, ...rest)
    const isWritten = fault === 'lost_reply' || fault === 'dies_after'
    if (fault === 'dies') state.isDead = true
    if (isWritten) await store.append(lease, ...rest)
    if (fault === 'dies_after') state.isDead = true
    faults.land(at, fault)
    if (fault === 'hangs' || state.isDead) return silence()
    throw refuseWrite(fault, lease)
  }
  return { ...guardAll(store, append, state), landed: faults.landed, certify: faults.certify }
}

const silence = (): Promise<never> => new Promise(() => undefined)

function refuseWrite(fault: StoreFault, { sessionId }: Lease): StoreError {
  if (fault === 'disk_full') return new StoreError('disk_full', 'The disk is full.', sessionId)
  if (fault === 'lease_lost')
    return new StoreError('lease_lost', `Another process has taken '${sessionId}' over.`, sessionId)
  const what = fault === 'lost_reply' ? 'The reply of the store was lost.' : 'The store is away.'
  return new StoreError('store_unavailable', what, sessionId)
}

type Methods = Record<string, (...args: unknown[]) => unknown>

/** The same store, also where it is an object of a class, which answers nothing once it is dead. */
function guardAll(
  store: SessionStore,
  append: SessionStore['append'],
  state: { isDead: boolean },
): SessionStore {
  const guard = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value === 'object' && value !== null) return guard(value)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) =>
          state.isDead ? silence() : (value as Methods[string]).apply(target, args)
      },
    })
  const guarded = guard(store)
  const { inbox, timers } = guarded
  return {
    acquire: (...args) => guarded.acquire(...args),
    renew: (...args) => guarded.renew(...args),
    release: (...args) => guarded.release(...args),
    append: (...args) => (state.isDead ? silence() : append(...args)),
    read: (...args) => guarded.read(...args),
    get: (...args) => guarded.get(...args),
    list: (...args) => guarded.list(...args),
    delete: (...args) => guarded.delete(...args),
    close: () => store.close(),
    ...(guarded.renewAll && { renewAll: (...args) => guarded.renewAll?.(...args) ?? [] }),
    ...(guarded.setTitle && { setTitle: (...args) => guarded.setTitle?.(...args) ?? false }),
    ...(guarded.purge && { purge: () => guarded.purge?.() }),
    ...(guarded.openBudgets && { openBudgets: () => guarded.openBudgets?.() ?? silence() }),
    ...(inbox && { inbox }),
    ...(timers && { timers }),
  }
}
