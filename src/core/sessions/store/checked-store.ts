import type { Clock } from '../../base/clock.js'
import { limitTime } from '../../base/abort.js'
import { attempt } from '../../base/maybe-promise.js'
import { describeError, StatewrightError, configError } from '../../base/errors.js'
import { StoreError } from './store-error.js'
import type { Lease, SessionStore } from './store.js'

const methods = ['acquire', 'renew', 'release', 'append', 'read', 'get', 'list', 'delete'] as const
const optionalMethods = ['renewAll', 'setTitle', 'setMark', 'purge', 'openBudgets'] as const
export const storeMethods = [...methods, ...optionalMethods] as const

/** @throws {ConfigError} for a store without a required method, such as a promise for a store */
export function checkStore(store: unknown): void {
  if (store === undefined) return
  const candidate = store as Partial<SessionStore> | null
  const missing = [...methods, 'close' as const].find((method) => typeof candidate?.[method] !== 'function')
  if (missing === undefined) return
  const hint = store instanceof Promise ? ' It is a promise. Await it first.' : ''
  const message = `store must be a SessionStore, such as memoryStore() or fileStore({ dir }); it has no ${missing}().${hint}`
  throw configError(message, 'store')
}

const innerStores = new WeakMap<SessionStore, SessionStore>()

export const getInnerStore = (store: SessionStore): SessionStore => innerStores.get(store) ?? store

/**
 * Wraps a store so that it throws only typed errors, and calls without a response within `timeoutMs` (0: no limit)
 * fail as `store_unavailable`. A promise that never settles would block even a cancelled run. `remedy` ends the error
 * message.
 */
export function limitStoreTime(
  store: SessionStore,
  timeoutMs: number,
  clock: Clock,
  remedy = ' (storeTimeoutMs). Check that it is reachable. agent.resume(id) continues from the stored records.',
): SessionStore {
  const ignore = (): void => undefined
  const limitAll = <Part extends object>(
    part: Part,
    names: readonly (keyof Part & string)[],
    prefix = '',
    onLate: { [name: string]: (value: never) => void } = {},
  ): Part =>
    Object.fromEntries(
      names
        .filter((name) => part[name] !== undefined)
        .map((name) => [
          name,
          (...args: unknown[]) => {
            const what = prefix + name
            const toError = (error: unknown): Error => toStoreFailure(what, args[0], error)
            const answer = attempt(
              () => (part as Record<string, (...args: unknown[]) => unknown>)[name]?.(...args),
              (value) => value,
              (error) => {
                throw toError(error)
              },
            )
            if (timeoutMs === 0 || !(answer instanceof Promise)) return answer
            const late = (): Error => toError(new Error(`no answer within ${timeoutMs} ms${remedy}`))
            return limitTime({ ms: timeoutMs, clock, late, onLate: onLate[name] as never }, answer)
          },
        ]),
    ) as Part
  const { inbox, timers } = store
  const limitedStore: SessionStore = {
    ...limitAll(store, storeMethods, '', {
      // Nobody waits for a lease that arrives too late. If its release fails, it expires by itself.
      acquire: (lease: Lease) => void attempt(() => store.release(lease), ignore, ignore),
    }),
    close: () => store.close(),
    ...(inbox && {
      inbox: limitAll(inbox, ['put', 'read', 'remove', 'findUnread', 'listUnread'], 'inbox.'),
    }),
    ...(timers && { timers: limitAll(timers, ['get', 'set', 'listDue', 'list', 'move'], 'timers.') }),
  }
  innerStores.set(limitedStore, store)
  return limitedStore
}

/** The error from a custom store, which may throw any value. `first` is the session or its lease. */
function toStoreFailure(method: string, first: unknown, cause: unknown): Error {
  if (cause instanceof StatewrightError) return cause
  const session = (first as Partial<Lease> | undefined)?.sessionId ?? first
  const message = `The session store failed in ${method}(): ${describeError(cause)}`
  return new StoreError('store_unavailable', message, typeof session === 'string' ? session : method, {
    cause,
  })
}
