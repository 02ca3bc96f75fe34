import { SimulatedClock } from 'xstate'
import type { Clock } from '../../../src/index.js'

/** Time by hand; and time that passes while the event loop is busy, so that no timer has fired yet. */
export class LaggingClock implements Clock {
  readonly #timers = new SimulatedClock()
  #ahead: number

  constructor(now: number) {
    this.#ahead = now
  }

  now(): number {
    return this.#timers.now() + this.#ahead
  }

  /** Time passes, and timers fire. */
  increment(ms: number): void {
    this.#timers.increment(ms)
  }

  /** Time passes unnoticed. */
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
