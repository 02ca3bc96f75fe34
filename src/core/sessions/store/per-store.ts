import { getOrCreate } from '../../base/values.js'
import type { Clock } from '../../base/clock.js'
import { getInnerStore } from './checked-store.js'
import type { SessionStore } from './store.js'

/** One instance per store and clock in a process. Wrappers of a store share the instance of the wrapped store. */
export class PerStore<Value> {
  readonly #make: (store: SessionStore, clock: Clock) => Value
  readonly #known = new WeakMap<SessionStore, Map<Clock, Value>>()

  constructor(make: (store: SessionStore, clock: Clock) => Value) {
    this.#make = make
  }

  get(store: SessionStore, clock: Clock): Value {
    const origin = getInnerStore(store)
    const byClock = getOrCreate(this.#known, origin, () => new Map<Clock, Value>())
    return getOrCreate(byClock, clock, () => this.#make(store, clock))
  }

  /** The instances of a store, for all clocks. */
  list(store: SessionStore): Value[] {
    return [...(this.#known.get(getInnerStore(store))?.values() ?? [])]
  }
}
