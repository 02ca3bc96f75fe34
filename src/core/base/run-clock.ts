import { type Clock, readElapsed } from './clock.js'

/**
 * The time of one run in one process, in milliseconds since the epoch. It begins where it is told to, or by the clock, and
 * passes steadily from there: setting the clock neither shortens nor prolongs what a run waits for.
 */
export class RunClock {
  readonly #clock: Clock
  #base: number
  #from: number

  constructor(clock: Clock, base = clock.now()) {
    this.#clock = clock
    this.#base = base
    this.#from = readElapsed(clock)
  }

  now(): number {
    return this.#base + Math.round(readElapsed(this.#clock) - this.#from)
  }

  /** By the clock from here on, but never back: nothing of the run waits for a time. */
  resetToClock(): void {
    this.#base = Math.max(this.now(), this.#clock.now())
    this.#from = readElapsed(this.#clock)
  }
}
