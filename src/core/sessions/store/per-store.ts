import type { Clock } from '../../base/clock.js'
import { originOf } from './checked-store.js'
import type { SessionStore } from './store.js'

/** What a process has once for each store, however it is wrapped, and for each clock that time goes by there. */
export class PerStore<Kept> {
  readonly #make: (store: SessionStore, clock: Clock) => Kept
  readonly #known = new WeakMap<SessionStore, Map<Clock, Kept>>()

  constructor(make: (store: SessionStore, clock: Clock) => Kept) {
    this.#make = make
  }

  of(store: SessionStore, clock: Clock): Kept {
    const origin = originOf(store)
    const byClock = this.#known.get(origin) ?? new Map<Clock, Kept>()
    this.#known.set(origin, byClock)
    const kept = byClock.get(clock) ?? this.#make(store, clock)
    byClock.set(clock, kept)
    return kept
  }

  /** Those of a store, by whichever clock. */
  all(store: SessionStore): Kept[] {
    return [...(this.#known.get(originOf(store))?.values() ?? [])]
  }
}
