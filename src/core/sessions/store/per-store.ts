import { getOrCreate, memoize } from '../../base/values.js'
import type { Clock } from '../../base/clock.js'
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
