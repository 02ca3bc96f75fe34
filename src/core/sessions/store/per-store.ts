import { getOrCreate, memoize } from '../../base/values.js'
import { type Clock, unrefTimer } from '../../base/clock.js'
import { chain, type MaybePromise } from '../../base/maybe-promise.js'
import { getInnerStore } from './checked-store.js'
import type { SessionStore } from './store.js'

/** One instance per store and clock in a process. Wrappers of a store share the instance of the wrapped store. */
export function perStore<Value>(make: (store: SessionStore, clock: Clock) => Value) {
  const byStore = memoize((_store: SessionStore) => new Map<Clock, Value>())
  return {
    get(store: SessionStore, clock: Clock): Value {
      return getOrCreate(byStore(getInnerStore(store)), clock, () => make(store, clock))
    },
    /** The instances of a store, for all clocks. */
    list: (store: SessionStore): Value[] => [...byStore(getInnerStore(store)).values()],
  }
}

/**
 * Calls `work` again and again while there is something to do. The next wait starts when the work is done. `start` and
 * `stop` are called when that may have changed. Does not keep the process alive.
 */
export function createTicker(
  clock: Clock,
  parts: { getMs: () => number; isNeeded: () => boolean; work: () => MaybePromise<void> },
): { start: () => void; stop: () => void } {
  let timer: unknown
  const start = (): void => {
    if (timer !== undefined || !parts.isNeeded()) return
    const own = clock.setTimeout(() => void chain(parts.work(), () => restart(own)), parts.getMs())
    timer = own
    unrefTimer(timer)
  }
  /** It may have been stopped and started again in the meantime. */
  const restart = (own: unknown): void => {
    if (timer !== own) return
    timer = undefined
    start()
  }
  const stop = (): void => {
    if (parts.isNeeded()) return
    clock.clearTimeout(timer)
    timer = undefined
  }
  return { start, stop }
}
