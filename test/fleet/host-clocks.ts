import type { Clock } from '../../src/index.js'
import type { SessionStore } from '../../src/stores/index.js'

/** The event-loop turns after which unblocked work has ended. Some code is loaded lazily. */
const turns = { first: 300, later: 3 }
let settled = 0

/** True time, and processes with separate clocks on one store. */
export class Hosts {
  now: number
  readonly #timers = new Map<number, { at: number; fire: () => void; host: Host }>()
  #id = 0
  /** Calls to stores that have not returned. */
  calls = 0
  /** Whether `settle` waits for the stores. A store in a database takes real time. */
  readonly #awaitsStores: boolean

  constructor(now: number, { awaitsStores = false } = {}) {
    this.now = now
    this.#awaitsStores = awaitsStores
  }

  /** A process whose clock is ahead by `skew()`. Its calls to `store` resolve one turn later. */
  start(store: SessionStore, skew: () => number = () => 0): Host {
    return new Host(this, store, skew)
  }

  setTimer(host: Host, fire: () => void, ms: number): number {
    this.#timers.set(++this.#id, { at: this.now + Math.max(0, ms), fire, host })
    return this.#id
  }

  clearTimer(id: unknown): void {
    this.#timers.delete(id as number)
  }

  /** Advances true time, timer by timer. */
  async pass(ms: number): Promise<void> {
    const end = this.now + ms
    for (;;) {
      await this.settle()
      const [id, next] = [...this.#timers].sort(([, a], [, b]) => a.at - b.at)[0] ?? []
      if (id === undefined || !next || next.at > end) break
      this.#timers.delete(id)
      this.now = Math.max(this.now, next.at)
      next.host.perform(next.fire)
    }
    this.now = end
    await this.settle()
  }

  /** For lazily loaded code. Only the timeout of the test limits it: a busy machine loads code slowly. */
  async settleUntil(isSo: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await isSo())) await this.settle()
  }

  /** Awaits while the processes work. Time passes only if nothing else happens. */
  async until<Value>(promise: Promise<Value>): Promise<Value> {
    const over = { is: false }
    const end = (): void => void (over.is = true)
    promise.then(end, end)
    for (let i = 0; i < 800 && !over.is; i += 1) {
      await this.settle()
      if (!over.is && i % 10 === 9) await this.pass(1000)
    }
    return promise
  }

  async settle(): Promise<void> {
    settled += 1
    const count = settled <= 20 ? turns.first : turns.later
    for (let left = count; left > 0; left = this.#awaitsStores && this.calls > 0 ? count : left - 1)
      await new Promise((resolve) => setImmediate(resolve))
  }
}

/** One process. After its death, none of its calls reach the store and none of its timers fire. */
export class Host {
  isDead = false
  /** The work of a suspended process, for when it continues. */
  #waiting: (() => void)[] | null = null
  readonly clock: Clock
  readonly store: SessionStore
  readonly #hosts: Hosts

  constructor(hosts: Hosts, store: SessionStore, skew: () => number) {
    this.clock = {
      now: () => hosts.now + skew(),
      elapsed: () => hosts.now,
      setTimeout: (fire, ms) => hosts.setTimer(this, fire, ms),
      clearTimeout: (id) => hosts.clearTimer(id),
    }
    this.#hosts = hosts
    this.store = this.#cut(store)
  }

  kill(): void {
    this.isDead = true
  }

  /** Until `wake()`, no answer of the store arrives, and no timer fires. */
  suspend(): void {
    this.#waiting = []
  }

  wake(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = null
    for (const work of waiting) this.perform(work)
  }

  perform(work: () => void): void {
    if (this.#waiting) this.#waiting.push(work)
    else if (!this.isDead) work()
  }

  /** Every method returns a promise. The promises of a dead process never settle, and its calls never arrive. */
  #cut<Part extends object>(part: Part): Part {
    return new Proxy(part, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key)
        if (typeof value === 'function')
          return async (...args: unknown[]) => {
            if (this.isDead) return new Promise(() => undefined)
            await Promise.resolve()
            if (this.isDead) return new Promise(() => undefined)
            this.#hosts.calls += 1
            let answer: unknown
            try {
              answer = await Reflect.apply(value, target, args)
            } finally {
              this.#hosts.calls -= 1
            }
            if (this.#waiting) await new Promise<void>((resolve) => this.perform(resolve))
            return this.isDead ? new Promise(() => undefined) : answer
          }
        return typeof value === 'object' && value !== null ? this.#cut(value) : value
      },
    })
  }
}
