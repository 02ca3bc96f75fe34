import fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { memoryStore, type SessionStore } from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { distant } from './distant.js'
import { settled } from './manual-model.js'

/** The latencies of each trip to a store in milliseconds, used in rotation. */
export const delays = fc.array(fc.nat(10), { minLength: 1, maxLength: 12 })

/** A remote store with latency. Every call takes 0 to 20 ms of simulated time. */
export class SlowPlace {
  readonly clock = new SimulatedClock()
  /** The records' store, which answers at once. */
  readonly near: SyncSessionStore
  /** Simulated time that passed while no timers ran. A killed process never sees it. */
  #ahead = 1_000_000
  readonly #delays: readonly number[]
  #callCount = 0

  constructor(delays: readonly number[]) {
    this.#delays = delays
    this.near = memoryStore({ now: () => this.clock.now() + this.#ahead })
  }

  /** The same store, as accessed by another process. */
  open(): SessionStore {
    return distant(
      this.near,
      () => this.way(),
      () => this.way(),
    )
  }

  /** Advances time in milliseconds and runs all ready work. */
  async pass(ms: number): Promise<void> {
    for (let i = 0; i < ms; i += 1) {
      await settled()
      this.clock.increment(1)
    }
    await settled()
  }

  /** Advances time until the condition holds. */
  async until(holds: () => unknown): Promise<void> {
    for (let i = 0; i < 5000 && !holds(); i += 1) await this.pass(1)
    if (!holds()) throw new Error('It did not come to pass within five seconds.')
  }

  /** Advances time until the promise settles. */
  async of<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false
    const settle = (): void => void (isSettled = true)
    promise.then(settle, settle)
    await this.until(() => isSettled)
    return promise
  }

  /** Expires every lease. */
  outlive(): void {
    this.#ahead += 60_000
  }

  /** Waits for the latency of one trip to the store. */
  way(): Promise<void> {
    const ms = this.#delays[this.#callCount++ % this.#delays.length] ?? 0
    return new Promise((resolve) => {
      if (ms === 0) resolve()
      else void this.clock.setTimeout(() => resolve(), ms)
    })
  }
}

const which = process.env['STATEWRIGHT_LATENCY']

/**
 * The number of cases of a property and their seed. STATEWRIGHT_LATENCY runs all cases with a different seed.
 */
export const cases = { numRuns: which === undefined ? 4 : 400, seed: Number(which) || 1 }
