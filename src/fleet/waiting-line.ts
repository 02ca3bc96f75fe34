import type { Clock } from '../core/base/clock.js'

interface Waiter<Asked, Granted> {
  asked: Asked
  resolve: (granted: Granted) => void
  reject: (error: unknown) => void
}

/** How long to wait for what other processes give back, in milliseconds; what this one gives back is noticed at once. */
const pollMs = 250

/**
 * A line of those who wait for their share of something: first come, first served, so that many that wait ask for one share at a
 * time, and a large one is not passed over for ever.
 */
export class WaitingLine<Asked, Granted> {
  readonly #waiters: Waiter<Asked, Granted>[] = []
  readonly #clock: Clock
  readonly #tryOnce: (asked: Asked) => Promise<Granted | null>
  readonly #giveBack: (granted: Granted) => void
  #isServing = false
  /** Ends the pause before the next try. */
  #resume: (() => void) | null = null
  /** Whether something was given back during a try. */
  #isStale = false

  /** `tryOnce` resolves with the share, or with null while there is none. It rejects when there will never be one. */
  constructor(
    clock: Clock,
    tryOnce: (asked: Asked) => Promise<Granted | null>,
    giveBack: (granted: Granted) => void,
  ) {
    this.#clock = clock
    this.#tryOnce = tryOnce
    this.#giveBack = giveBack
  }

  /** Resolves with what was asked for. Rejects with the reason of the signal when it aborts. */
  async join(asked: Asked, signal?: AbortSignal): Promise<Granted> {
    signal?.throwIfAborted()
    if (this.#waiters.length === 0) {
      const granted = await this.#tryOnce(asked)
      if (granted !== null) {
        if (!signal?.aborted) return granted
        this.#giveBack(granted)
        throw signal.reason
      }
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        const at = this.#waiters.indexOf(waiter)
        if (at >= 0) this.#waiters.splice(at, 1)
        if (at === 0) this.wake()
        reject(signal?.reason as Error)
      }
      const done = (): void => signal?.removeEventListener('abort', leave)
      const waiter: Waiter<Asked, Granted> = {
        asked,
        resolve: (granted) => {
          done()
          resolve(granted)
        },
        reject: (error) => {
          done()
          reject(error as Error)
        },
      }
      if (signal?.aborted) return leave()
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiters.push(waiter)
      void this.#serve()
    })
  }

  /** Something was given back. */
  wake(): void {
    this.#isStale = true
    this.#resume?.()
  }

  async #serve(): Promise<void> {
    if (this.#isServing) return
    this.#isServing = true
    for (let first = this.#waiters[0]; first !== undefined; first = this.#waiters[0]) {
      this.#isStale = false
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await this.#serveFirst(first)
    }
    this.#isServing = false
  }

  async #serveFirst(first: Waiter<Asked, Granted>): Promise<void> {
    try {
      const granted = await this.#tryOnce(first.asked)
      const isThere = this.#waiters[0] === first
      if (granted === null) {
        if (isThere && !this.#isStale) await this.#pause()
        return
      }
      if (!isThere) return this.#giveBack(granted)
      this.#waiters.shift()
      first.resolve(granted)
    } catch (error) {
      if (this.#waiters[0] === first) this.#waiters.shift()
      first.reject(error)
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const resume = (): void => {
        this.#clock.clearTimeout(timer)
        this.#resume = null
        resolve()
      }
      const timer = this.#clock.setTimeout(resume, pollMs)
      this.#resume = resume
    })
  }
}
