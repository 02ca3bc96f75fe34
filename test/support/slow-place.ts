import fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { memoryStore, type SessionStore } from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { distant } from './distant.js'
import { settled } from './manual-model.js'

/** How long each way to a store takes, in milliseconds: one after the other, again and again. */
export const delays = fc.array(fc.nat(10), { minLength: 1, maxLength: 12 })

/** A store far away, and the time that its answers take: every call of it takes 0 to 20 ms of simulated time. */
export class SlowPlace {
  readonly clock = new SimulatedClock()
  /** Where the records are: what is asked here is answered at once. */
  readonly near: SyncSessionStore
  /** Time that has passed while no timer was looked at: a process that was killed never hears of it. */
  #ahead = 1_000_000
  readonly #delays: readonly number[]
  #asked = 0

  constructor(delays: readonly number[]) {
    this.#delays = delays
    this.near = memoryStore({ now: () => this.clock.now() + this.#ahead })
  }

  /** The same store, as one more process reaches it. */
  open(): SessionStore {
    return distant(
      this.near,
      () => this.way(),
      () => this.way(),
    )
  }

  /** Time passes, millisecond by millisecond, and all that is ready happens. */
  async pass(ms: number): Promise<void> {
    for (let i = 0; i < ms; i += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one millisecond after the other
      await settled()
      this.clock.increment(1)
    }
    await settled()
  }

  /** Time passes until this holds. */
  async until(holds: () => unknown): Promise<void> {
    // oxlint-disable-next-line no-await-in-loop -- as above
    for (let i = 0; i < 5000 && !holds(); i += 1) await this.pass(1)
    if (!holds()) throw new Error('It did not come to pass within five seconds.')
  }

  /** Time passes until this settles. */
  async of<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false
    const settle = (): void => void (isSettled = true)
    promise.then(settle, settle)
    await this.until(() => isSettled)
    return promise
  }

  /** Every lease runs out. */
  outlive(): void {
    this.#ahead += 60_000
  }

  /** As long as one way to the store takes. */
  way(): Promise<void> {
    const ms = this.#delays[this.#asked++ % this.#delays.length] ?? 0
    return new Promise((resolve) => {
      if (ms === 0) resolve()
      else void this.clock.setTimeout(() => resolve(), ms)
    })
  }
}

const which = process.env['STATEWRIGHT_LATENCY']

/** How many cases of a property are tried, and the seed that draws them: all, and another seed, by STATEWRIGHT_LATENCY. */
export const cases = { numRuns: which === undefined ? 4 : 400, seed: Number(which) || 1 }
