import { type CallAbort, onAbort } from '../core/base/abort.js'
import { type Clock, readElapsed } from '../core/base/clock.js'

export interface SlotLimits {
  concurrency: number | null
  requests: RateWindow | null
  tokens: RateWindow | null
}

export interface Slot {
  /** Ends the request. `tokens` is its usage, or null to keep the estimate. */
  release(tokens: number | null): void
}

export interface SlotRequest {
  runId: string | undefined
  tokens: number
  abort: AbortSignal | CallAbort
  /** Called once if the request must wait. `ahead` is the number of requests before it. */
  onWait: (ahead: number) => void
}

interface Waiter extends Pick<SlotRequest, 'tokens'> {
  /** The position of the waiter's run. Earlier runs come first. */
  order: number
  grant: (slot: Slot) => void
}

/** Maximum number of runs to remember. A forgotten run counts as new. */
const maxRuns = 10_000

/** Grants requests as fast as the limits allow, ordered by run, then by arrival. */
export class SlotQueue {
  readonly #limits: SlotLimits
  readonly #clock: Clock
  readonly #waiters: Waiter[] = []
  readonly #orders = new Map<string, number>()
  #nextOrder = 0
  #active = 0
  #pausedUntil = -Infinity
  #timer: unknown

  constructor(limits: SlotLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
  }

  get waiting(): number {
    return this.#waiters.length
  }

  get active(): number {
    return this.#active
  }

  /** The remaining pause in milliseconds, or 0 if the queue is not paused. */
  get pausedMs(): number {
    return Math.max(0, this.#pausedUntil - readElapsed(this.#clock))
  }

  /** Resolves when the request may start. Rejects with its abort reason. */
  acquire({ runId, tokens, abort, onWait }: SlotRequest): Promise<Slot> {
    return new Promise((resolve, reject) => {
      if (abort.aborted) return reject(abort.reason as Error)
      let isGranted = false
      let unfollow = (): void => undefined
      const waiter: Waiter = {
        order: this.#findOrder(runId),
        tokens,
        grant: (slot) => {
          isGranted = true
          unfollow()
          resolve(slot)
        },
      }
      const place = this.#insert(waiter)
      this.#letGo()
      if (isGranted) return
      unfollow = onAbort(abort, () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
        reject(abort.reason as Error)
        this.#letGo()
      })
      onWait(place)
    })
  }

  /** Holds all requests for a time, without a burst afterwards. */
  pause(ms: number): void {
    const until = readElapsed(this.#clock) + ms
    if (until <= this.#pausedUntil) return
    this.#pausedUntil = until
    this.#limits.requests?.drain(until)
    this.#limits.tokens?.drain(until)
    this.#letGo()
  }

  #findOrder(runId: string | undefined): number {
    const known = runId === undefined ? undefined : this.#orders.get(runId)
    if (known !== undefined) return known
    const order = this.#nextOrder
    this.#nextOrder += 1
    if (runId === undefined) return order
    this.#orders.set(runId, order)
    const [oldest] = this.#orders.keys()
    if (this.#orders.size > maxRuns && oldest !== undefined) this.#orders.delete(oldest)
    return order
  }

  #insert(waiter: Waiter): number {
    let low = 0
    let high = this.#waiters.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#waiters[middle] as Waiter).order <= waiter.order) low = middle + 1
      else high = middle
    }
    this.#waiters.splice(low, 0, waiter)
    return low
  }

  #letGo(): void {
    this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    for (let next = this.#waiters[0]; next !== undefined; next = this.#waiters[0]) {
      const waitMs = this.#getWaitMs(next)
      if (waitMs > 0) {
        // At the concurrency limit, the next release calls this again.
        if (waitMs < Infinity) this.#timer = this.#clock.setTimeout(() => this.#letGo(), Math.ceil(waitMs))
        return
      }
      this.#waiters.shift()
      next.grant(this.#take(next))
    }
  }

  #getWaitMs({ tokens }: Waiter): number {
    const now = readElapsed(this.#clock)
    const { concurrency, requests, tokens: tokenWindow } = this.#limits
    if (concurrency !== null && this.#active >= concurrency) return Infinity
    return Math.max(
      0,
      this.#pausedUntil - now,
      requests?.getWaitMs(1, now) ?? 0,
      tokenWindow?.getWaitMs(tokens, now) ?? 0,
    )
  }

  #take({ tokens }: Waiter): Slot {
    const now = readElapsed(this.#clock)
    this.#active += 1
    this.#limits.requests?.take(1, now)
    const entry: RateEntry | undefined = this.#limits.tokens?.take(tokens, now)
    let isOver = false
    return {
      release: (used) => {
        if (isOver) return
        isOver = true
        this.#active -= 1
        if (entry && used !== null) this.#limits.tokens?.correct(entry, used, readElapsed(this.#clock))
        this.#letGo()
      },
    }
  }
}

export interface RateEntry {
  readonly at: number
  amount: number
}

const minuteMs = 60_000
/** Network delays vary, so the local window is one percent longer than the server's. */
const windowMs = minuteMs * 1.01
const tolerance = 1e-6

/**
 * A rate limit per minute. A token bucket bounds bursts, and no sliding minute exceeds the limit, so the rate is safe
 * for servers with fixed windows, sliding windows or buckets.
 */
export class RateWindow {
  readonly #limit: number
  readonly #burst: number
  /** Available amount. Negative after an amount larger than a burst. */
  #level: number
  #filledAt: number
  readonly #entries: RateEntry[] = []
  #sum = 0

  /** `burst` is the amount that may start at once. Times are monotonic, in milliseconds. */
  constructor(limit: number, burst: number, now: number) {
    this.#limit = limit
    this.#burst = burst
    this.#level = burst
    this.#filledAt = now
  }

  /** Time until the amount is available, or 0. An amount above the limit waits until the window is empty. */
  getWaitMs(amount: number, now: number): number {
    this.#passTime(now)
    const missing = Math.min(amount, this.#burst) - this.#level
    const bucketMs = missing > tolerance ? (missing * minuteMs) / this.#limit : 0
    return Math.max(bucketMs, this.#getWindowWaitMs(Math.min(amount, this.#limit), now))
  }

  take(amount: number, now: number): RateEntry {
    this.#passTime(now)
    const entry = { at: now, amount }
    this.#entries.push(entry)
    this.#sum += amount
    this.#level -= amount
    return entry
  }

  correct(entry: RateEntry, amount: number, now: number): void {
    this.#passTime(now)
    const less = entry.amount - amount
    this.#level = Math.min(this.#burst, this.#level + less)
    if (entry.at + windowMs > now + tolerance) this.#sum -= less
    entry.amount = amount
  }

  drain(until: number): void {
    this.#level = Math.min(this.#level, 0)
    this.#filledAt = Math.max(this.#filledAt, until)
  }

  #passTime(now: number): void {
    if (now > this.#filledAt) {
      const gain = ((now - this.#filledAt) * this.#limit) / minuteMs
      this.#level = Math.min(this.#burst, this.#level + gain)
      this.#filledAt = now
    }
    let past = 0
    while (
      past < this.#entries.length &&
      (this.#entries[past] as RateEntry).at + windowMs <= now + tolerance
    ) {
      this.#sum -= (this.#entries[past] as RateEntry).amount
      past += 1
    }
    if (past > 0) this.#entries.splice(0, past)
    if (this.#entries.length === 0) this.#sum = 0
  }

  #getWindowWaitMs(amount: number, now: number): number {
    let over = this.#sum + amount - this.#limit
    for (const { at, amount: gone } of this.#entries) {
      if (over <= tolerance) return 0
      over -= gone
      if (over <= tolerance) return Math.max(0, at + windowMs - now)
    }
    return 0
  }
}
