import type { Clock } from '../../base/clock.js'
import { getInnerStore } from './checked-store.js'
import type { SessionStore } from './store.js'

/** What a process has once for each store, however it is wrapped, and for each clock that time goes by there. */
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

  /** Those of a store, by whichever clock. */
  list(store: SessionStore): Kept[] {
    return [...(this.#known.get(getInnerStore(store))?.values() ?? [])]
  }
}
