import { type CallAbort, onAbort } from '../core/base/abort.js'
import { type Clock, readElapsed } from '../core/base/clock.js'

interface Slot {
  /** Ends the request. `tokens` is its usage, or null to keep the estimate. */
  release(tokens: number | null): void
}

interface SlotRequest {
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

interface Limits {
  concurrency: number | null
  requests: RateWindow | null
  tokens: RateWindow | null
}

/** Maximum number of runs to remember. A forgotten run counts as new. */
const maxRuns = 10_000

/** Grants requests as fast as the limits allow, ordered by run, then by arrival. */
export function createSlotQueue({ concurrency, requests, tokens }: Limits, clock: Clock) {
  const waiters: Waiter[] = []
  const orders = new Map<string, number>()
  let nextOrder = 0
  let active = 0
  let pausedUntil = -Infinity
  let timer: unknown

  const findOrder = (runId: string | undefined): number => {
    const known = runId === undefined ? undefined : orders.get(runId)
    if (known !== undefined) return known
    const order = nextOrder
    nextOrder += 1
    if (runId === undefined) return order
    orders.set(runId, order)
    const [oldest] = orders.keys()
    if (orders.size > maxRuns && oldest !== undefined) orders.delete(oldest)
    return order
  }

  const getWaitMs = (amount: number): number => {
    const now = readElapsed(clock)
    if (concurrency !== null && active >= concurrency) return Infinity
    const waits = [pausedUntil - now, requests?.getWaitMs(1, now) ?? 0, tokens?.getWaitMs(amount, now) ?? 0]
    return Math.max(0, ...waits)
  }

  const take = (amount: number): Slot => {
    const now = readElapsed(clock)
    active += 1
    requests?.take(1, now)
    const entry = tokens?.take(amount, now)
    let isOver = false
    return {
      release: (used) => {
        if (isOver) return
        isOver = true
        active -= 1
        if (entry && used !== null) tokens?.correct(entry, used, readElapsed(clock))
        letGo()
      },
    }
  }

  const letGo = (): void => {
    clock.clearTimeout(timer)
    timer = undefined
    for (let next = waiters[0]; next !== undefined; next = waiters[0]) {
      const waitMs = getWaitMs(next.tokens)
      if (waitMs > 0) {
        // At the concurrency limit, the next release calls this again.
        if (waitMs < Infinity) timer = clock.setTimeout(letGo, Math.ceil(waitMs))
        return
      }
      waiters.shift()
      next.grant(take(next.tokens))
    }
  }

  return {
    /** Resolves when the request may start. Rejects with its abort reason. */
    acquire: ({ runId, tokens: amount, abort, onWait }: SlotRequest): Promise<Slot> =>
      new Promise((resolve, reject) => {
        if (abort.aborted) return reject(abort.reason as Error)
        let isGranted = false
        let unfollow = (): void => undefined
        const waiter: Waiter = {
          order: findOrder(runId),
          tokens: amount,
          grant: (slot) => {
            isGranted = true
            unfollow()
            resolve(slot)
          },
        }
        const place = waiters.findLastIndex(({ order }) => order <= waiter.order) + 1
        waiters.splice(place, 0, waiter)
        letGo()
        if (isGranted) return
        unfollow = onAbort(abort, () => {
          waiters.splice(waiters.indexOf(waiter), 1)
          reject(abort.reason as Error)
          letGo()
        })
        onWait(place)
      }),

    /** Holds all requests for a time, without a burst afterwards. */
    pause(ms: number): void {
      const until = readElapsed(clock) + ms
      if (until <= pausedUntil) return
      pausedUntil = until
      requests?.drain(until)
      tokens?.drain(until)
      letGo()
    },

    status: () => ({
      waiting: waiters.length,
      active,
      pausedMs: Math.max(0, pausedUntil - readElapsed(clock)),
    }),
  }
}

interface RateEntry {
  readonly at: number
  amount: number
}

const minuteMs = 60_000
/** Network delays vary, so the local window is one percent longer than the server's. */
const windowMs = minuteMs * 1.01
const tolerance = 1e-6

export type RateWindow = ReturnType<typeof createRateWindow>

/**
 * A rate limit per minute. A token bucket bounds bursts, and no sliding minute exceeds the limit, so it is safe for
 * servers with any windows or buckets. `burst` may start at once. Times are monotonic, in milliseconds.
 */
export function createRateWindow(limit: number, burst: number, start: number) {
  /** Available amount. Negative after an amount larger than a burst. */
  let level = burst
  let filledAt = start
  const entries: RateEntry[] = []
  let sum = 0

  const passTime = (now: number): void => {
    if (now > filledAt) {
      level = Math.min(burst, level + ((now - filledAt) * limit) / minuteMs)
      filledAt = now
    }
    const kept = entries.findIndex(({ at }) => at + windowMs > now + tolerance)
    const past = entries.splice(0, kept < 0 ? entries.length : kept)
    for (const { amount } of past) sum -= amount
    if (entries.length === 0) sum = 0
  }

  const getWindowWaitMs = (amount: number, now: number): number => {
    let over = sum + amount - limit
    for (const { at, amount: gone } of entries) {
      if (over <= tolerance) return 0
      over -= gone
      if (over <= tolerance) return Math.max(0, at + windowMs - now)
    }
    return 0
  }

  return {
    /** Time until the amount is available, or 0. An amount above the limit waits until the window is empty. */
    getWaitMs(amount: number, now: number): number {
      passTime(now)
      const missing = Math.min(amount, burst) - level
      const bucketMs = missing > tolerance ? (missing * minuteMs) / limit : 0
      return Math.max(bucketMs, getWindowWaitMs(Math.min(amount, limit), now))
    },

    take(amount: number, now: number): RateEntry {
      passTime(now)
      const entry = { at: now, amount }
      entries.push(entry)
      sum += amount
      level -= amount
      return entry
    },

    correct(entry: RateEntry, amount: number, now: number): void {
      passTime(now)
      const less = entry.amount - amount
      level = Math.min(burst, level + less)
      if (entry.at + windowMs > now + tolerance) sum -= less
      entry.amount = amount
    },

    drain(until: number): void {
      level = Math.min(level, 0)
      filledAt = Math.max(filledAt, until)
    },
  }
}
