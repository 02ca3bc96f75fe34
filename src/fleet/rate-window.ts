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
