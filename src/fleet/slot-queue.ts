import { type CallAbort, onAbort } from '../core/base/abort.js'
import { type Clock, readElapsed } from '../core/base/clock.js'

/** What a queue lets go. Null: it is not limited. */
export interface SlotLimits {
  concurrency: number | null
  requests: RateWindow | null
  tokens: RateWindow | null
}

/** A request that was let go. */
export interface Slot {
  /** It is over. `tokens`: what it has used; null: as was estimated. */
  release(tokens: number | null): void
}

/** A request that wants to go. */
export interface SlotRequest {
  /** The run that asks; undefined: a request by itself. */
  runId: string | undefined
  /** An estimate. */
  tokens: number
  abort: AbortSignal | CallAbort
  /** Told once, when it has to wait. `ahead`: how many go before it. */
  onWait: (ahead: number) => void
}

interface Waiter extends Pick<SlotRequest, 'tokens'> {
  /** Of its run: earlier runs go first. */
  order: number
  grant: (slot: Slot) => void
}

/** How many runs are known by their order: one that was forgotten counts as new. */
const maxRuns = 10_000

/** Lets requests go as fast as limits allow: those of the run that came first before those of others. */
export class SlotQueue {
  readonly #limits: SlotLimits
  readonly #clock: Clock
  /** In the order in which they go. */
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

  /** For how long nothing goes, in milliseconds; 0: it is not paused. */
  get pausedMs(): number {
    return Math.max(0, this.#pausedUntil - readElapsed(this.#clock))
  }

  /** Resolves when the request may go. Rejects with the reason of its abort. */
  acquire({ runId, tokens, abort, onWait }: SlotRequest): Promise<Slot> {
    return new Promise((resolve, reject) => {
      if (abort.aborted) {
        reject(abort.reason as Error)
        return
      }
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

  /** Nothing goes for so long, and no burst follows. */
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

  /** Returns its place. */
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

  /** Lets go what may go now, and looks again when the next one may. */
  #letGo(): void {
    this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    for (let next = this.#waiters[0]; next !== undefined; next = this.#waiters[0]) {
      const waitMs = this.#getWaitMs(next)
      if (waitMs > 0) {
        // At the limit of concurrency there is no time to wait for: the next request that ends calls this again.
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

/** An amount that was let go. */
export interface RateEntry {
  readonly at: number
  amount: number
}

const minuteMs = 60_000
/** Requests arrive after different times: a window of ours is a hundredth longer than one of the server's. */
const windowMs = minuteMs * 1.01
/** What rounding leaves. */
const tolerance = 1e-6

/**
 * How much may go in a minute. A bucket that fills steadily bounds a burst, and no window of a minute ever has more than the
 * limit: so a server refuses nothing, whether it counts by fixed windows, by sliding ones, or by a bucket.
 */
export class RateWindow {
  readonly #limit: number
  readonly #burst: number
  /** What may go at once. Less than 0 after an amount that is larger than a burst. */
  #level: number
  #filledAt: number
  readonly #entries: RateEntry[] = []
  #sum = 0

  /** `burst`: how much may go at once. Times in milliseconds, which pass steadily. */
  constructor(limit: number, burst: number, now: number) {
    this.#limit = limit
    this.#burst = burst
    this.#level = burst
    this.#filledAt = now
  }

  /** How long so much has to wait; 0: it may go now. A request larger than the limit waits until nothing else counts in the minute. */
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
