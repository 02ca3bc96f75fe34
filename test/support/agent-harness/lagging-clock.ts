import { SimulatedClock } from 'xstate'
import type { Clock } from '../../../src/index.js'

/** A manual clock that can also advance while the event loop is busy, before any timer fires. */
export class LaggingClock implements Clock {
  readonly #timers = new SimulatedClock()
  #ahead: number

  constructor(now: number) {
    this.#ahead = now
  }

  now(): number {
    return this.#timers.now() + this.#ahead
  }

  /** Advances time and fires timers. */
  increment(ms: number): void {
    this.#timers.increment(ms)
  }

  /** Advances time without firing timers. */
  lag(ms: number): void {
    this.#ahead += ms
  }

  setTimeout(fn: () => void, ms: number): unknown {
    return this.#timers.setTimeout(fn, ms)
  }

  clearTimeout(id: unknown): void {
    this.#timers.clearTimeout(id as number)
  }
}
