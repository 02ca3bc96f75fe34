import type { Clock } from '../../base/clock.js'
import { getInnerStore } from './checked-store.js'
import type { SessionStore } from './store.js'

/** One instance per store and clock in a process. Wrappers of a store share the instance of the inner store. */
export class PerStore<Kept> {
  readonly #make: (store: SessionStore, clock: Clock) => Kept
  readonly #known = new WeakMap<SessionStore, Map<Clock, Kept>>()

  constructor(make: (store: SessionStore, clock: Clock) => Kept) {
    this.#make = make
  }

  get(store: SessionStore, clock: Clock): Kept {
    const origin = getInnerStore(store)
    const byClock = this.#known.get(origin) ?? new Map<Clock, Kept>()
    this.#known.set(origin, byClock)
    const kept = byClock.get(clock) ?? this.#make(store, clock)
    byClock.set(clock, kept)
    return kept
  }

  /** The instances of a store, for all clocks. */
  list(store: SessionStore): Kept[] {
    return [...(this.#known.get(getInnerStore(store))?.values() ?? [])]
  }
}
