import { type Clock, readElapsed, wait } from '../core/base/clock.js'
import { limitTime } from '../core/base/abort.js'
import { getPlatform } from '../core/base/platform.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { SessionTimers } from '../core/sessions/store/timers.js'
import type { RateEntry, Window } from './rate-window.js'

/** What may go from a moment on, in the time of this process. */
interface Permit {
  at: number
  amount: number
  /** Later, it is given back. */
  until: number
}

interface SharedWindowParts {
  /** Of the store that the processes share. */
  timers: SessionTimers
  /** Unique in the store. */
  id: string
  /** What may go in a minute, in all processes together. */
  limit: number
  /** What may go at once. */
  burst: number
  clock: Clock
  /** How many wait in this process. */
  countWaiting: () => number
  /** Permits have come. */
  onPermits: () => void
  /** The store does not answer: those that wait now are refused with this. */
  onError: (error: unknown) => void
}

const minuteUs = 60_000_000
/** Requests arrive after different times, and permits may be used a little late: our minute is a hundredth longer than a server's. */
const windowUs = minuteUs * 1.01
/** A permit that was not used for so long is given back. */
const permitMs = 400
/** Permits are taken for so long ahead, so that a busy process asks the store a few times a second. */
const aheadMs = 250
/** How long the difference between the store's clock and this process's is trusted. */
const trustedMs = 10_000
/** Nothing is ever due so far ahead: the clock of the store has moved back. */
const mostAheadUs = 15 * minuteUs
/** A time that never comes. */
const never = 9_000_000_000_000_000
/** How long the store may take, in milliseconds. */
const answerMs = 30_000
const anchorId = 'limiters'

/**
 * How much may go in a minute in all processes of a store. The store keeps one number: the moment at which all that was let go is
 * paid for (GCRA). It is a timer whose time is in microseconds, so that it is never due. A process moves it on for each permit that it
 * takes, and knows then when the permit holds. No window of a minute ever has more than the limit.
 */
export class SharedWindow implements Window {
  readonly #parts: SharedWindowParts
  /** What one costs, in microseconds. */
  readonly #costUs: number
  readonly #permits: Permit[] = []
  /** What was taken and not used: it goes back with the next question. Less than 0: more was used. */
  #unused = 0
  #isAsking = false
  #isThere = false
  /** The store's clock less the time of this process, in microseconds. */
  #offsetUs = 0
  #measuredAt = -Infinity
  #pausedUntil = -Infinity

  constructor(parts: SharedWindowParts) {
    this.#parts = parts
    const { limit, burst } = parts
    // One goes when a window begins, `burst - 1` more go with it, and the others one after the other.
    this.#costUs = windowUs / Math.max(1, limit - burst + 1)
  }

  getWaitMs(amount: number, now: number): number {
    if (amount <= 0) return 0
    this.#dropStale(now)
    let sum = 0
    for (const permit of this.#permits) {
      sum += permit.amount
      if (sum >= amount) {
        if (this.#permits.length === 1 && this.#parts.countWaiting() > 1) this.#ask(amount)
        return Math.max(0, permit.at - now)
      }
    }
    this.#ask(amount - sum)
    return Infinity
  }

  take(amount: number, now: number): RateEntry {
    let left = amount
    while (left > 0) {
      const [first] = this.#permits
      if (!first) break
      const taken = Math.min(left, first.amount)
      left -= taken
      first.amount -= taken
      if (first.amount <= 0) this.#permits.shift()
    }
    return { at: now, amount }
  }

  correct(entry: RateEntry, amount: number): void {
    this.#unused += entry.amount - amount
    entry.amount = amount
  }

  drain(until: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, until)
    for (const { amount } of this.#permits.splice(0)) this.#unused += amount
    void this.#pauseOthers(until)
  }

  #dropStale(now: number): void {
    while (this.#permits[0] && this.#permits[0].until < now)
      this.#unused += (this.#permits.shift() as Permit).amount
  }

  /** For at least so much; once at a time. */
  #ask(least: number): void {
    if (this.#isAsking) return
    this.#isAsking = true
    void (async () => {
      try {
        await this.#takePermits(least)
        this.#isAsking = false
        this.#parts.onPermits()
      } catch (error) {
        this.#isAsking = false
        this.#parts.onError(error)
      }
    })()
  }

  async #takePermits(least: number): Promise<void> {
    const { burst, countWaiting, limit } = this.#parts
    // Tokens of those that wait behind are not known here, nor is it needed: each of them takes a while.
    const count =
      least === 1 ? Math.max(1, Math.min(countWaiting(), Math.floor((aheadMs * 1000) / this.#costUs))) : 1
    const amount = Math.min(least, limit)
    const unused = this.#unused
    this.#unused = 0
    let taken: Omit<Permit, 'until'>[] = []
    try {
      const late = (): Error =>
        new StoreError('store_unavailable', `The store of the limiter did not answer within ${answerMs} ms.`)
      const moving = this.#move((paidUs, nowUs) => {
        taken = []
        let nextUs = Math.max(paidUs - unused * this.#costUs, nowUs)
        for (let i = 0; i < count; i += 1) {
          // More than a burst waits until so much is paid for, and leaves nothing.
          const goesUs = Math.max(nowUs, nextUs + (amount - burst) * this.#costUs)
          taken.push({ at: (goesUs - this.#offsetUs) / 1000, amount })
          nextUs = Math.max(nextUs, amount > burst ? goesUs : 0) + amount * this.#costUs
        }
        return nextUs
      })
      await limitTime({ ms: answerMs, clock: this.#parts.clock, late }, moving)
    } catch (error) {
      this.#unused += unused
      throw error
    }
    const now = readElapsed(this.#parts.clock)
    for (const permit of taken) {
      const at = Math.max(permit.at, this.#pausedUntil)
      // One that has come late may go at once: a process whose store is slow would never get one in time.
      const until = Math.max(at, now) + permitMs
      this.#permits.push({ at, until, amount: amount < least ? least : permit.amount })
    }
  }

  async #pauseOthers(until: number): Promise<void> {
    try {
      await this.#move((paidUs) =>
        Math.max(paidUs, until * 1000 + this.#offsetUs + this.#parts.burst * this.#costUs),
      )
    } catch {
      // The others are refused by themselves.
    }
  }

  /** Moves the number of the store on in one step, whatever others do. */
  async #move(next: (paidUs: number, nowUs: number) => number): Promise<void> {
    const { timers, clock } = this.#parts
    const id = `limiter:${this.#parts.id}`
    /* oxlint-disable no-await-in-loop -- again, until no other process was faster */
    for (;;) {
      await this.#measureOffset()
      if (!this.#isThere) await this.#addNumber(id)
      const found = await timers.get(id)
      this.#isThere = found !== null
      if (found === null) continue
      const nowUs = readElapsed(clock) * 1000 + this.#offsetUs
      const paidUs = found.at <= nowUs + mostAheadUs ? found.at : nowUs
      const to = Math.ceil(next(paidUs, nowUs))
      if (to === found.at || (await timers.move({ id, from: found.at, to }))) return
      await wait(clock, getPlatform().random() * 5)
    }
    /* oxlint-enable no-await-in-loop */
  }

  /** If it is not there yet: a step of another timer, so that of two processes one adds it. */
  async #addNumber(id: string): Promise<void> {
    const { timers, clock } = this.#parts
    if ((await timers.get(id)) !== null) return
    const at = Math.floor(readElapsed(clock) * 1000 + this.#offsetUs)
    await timers.set([{ id: anchorId, at: never, data: '{}' }])
    await timers.move({ id: anchorId, from: never, to: never, add: [{ id, at, data: '{}' }] })
  }

  async #measureOffset(): Promise<void> {
    const { timers, clock } = this.#parts
    const before = readElapsed(clock)
    if (before - this.#measuredAt < trustedMs) return
    const { now } = await timers.listDue({ limit: 1 })
    if (!Number.isFinite(now))
      throw new StoreError(
        'store_unavailable',
        `The store of the limiter returned ${String(now)} as its time.`,
      )
    const after = readElapsed(clock)
    this.#offsetUs = now * 1000 - ((before + after) / 2) * 1000
    this.#measuredAt = after
  }
}
