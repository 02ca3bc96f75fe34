import { findCallAbort, type CallAbort, onAbort } from '../core/base/abort.js'
import { type Clock, readElapsed, systemClock } from '../core/base/clock.js'
import { optionError } from '../core/base/errors.js'
import { type ArgumentRule, expectArgument, objectRule } from '../core/base/values.js'
import { checkOptions, countRule, type OptionRules } from '../core/config/check-options.js'
import { readTotalTokens } from '../core/models/normalize-response.js'
import type { ModelRequest, RequestLimiter } from '../core/models/provider.js'
import { replaceRequest } from '../core/models/leave-out.js'
import { toModelFailure } from '../core/models/to-model-failure.js'
import { estimateRequestTokens } from '../core/prices/estimate-tokens.js'

/** Options for `createLimiter`. One of `concurrency`, `requestsPerMinute` and `tokensPerMinute` is required. */
export interface CreateLimiterOptions {
  /** The id shown in events. */
  id: string
  /** Maximum number of concurrent requests, at least 1. */
  concurrency?: number
  /** The provider's requests per minute, at least 1. */
  requestsPerMinute?: number
  /** Tokens per minute, at least 1. Counts estimated input plus `sampling.maxTokens`, then the usage. */
  tokensPerMinute?: number
  /** The share of a minute's allowance that may start at once, above 0 and at most 1. Defaults to 0.1. */
  burst?: number
  /** The clock to use in tests. Defaults to the system clock. */
  clock?: Clock
}

/** Status of a limiter. */
export interface LimiterStatus {
  /** Waiting requests. */
  waiting: number
  /** Requests in progress. */
  active: number
  /** Remaining pause requested by the provider, in milliseconds. */
  pausedMs: number
}

/** A limiter. Share it between all models that count against the same provider limit. */
export interface Limiter extends RequestLimiter {
  /** Returns the current status. */
  status(): LimiterStatus
}

const rateRule: ArgumentRule = {
  is: (value) => Number.isFinite(value) && Number(value) >= 1,
  phrase: 'a number of at least 1',
}

const optionRules: OptionRules<CreateLimiterOptions> = {
  id: {
    is: (value) => typeof value === 'string' && value.trim() !== '',
    phrase: 'a string that appears in events',
    isRequired: true,
  },
  concurrency: countRule,
  requestsPerMinute: rateRule,
  tokensPerMinute: rateRule,
  burst: {
    is: (value) => typeof value === 'number' && value > 0 && value <= 1,
    phrase: "a fraction of a minute's allowance, above 0 and at most 1",
  },
  clock: null,
}

/** First pause after a 429 without a `Retry-After`, in milliseconds. The pause doubles with each further 429. */
const firstPauseMs = 1000
/** Maximum pause. The runs' retries handle longer waits. */
export const maxPauseMs = 600_000

/**
 * Sends the requests of all runs in this process as fast as a provider allows, first come, first served by run. A
 * waiting request emits `waiting_for_slot`. The wait ends when the run is cancelled or reaches its deadline, and does
 * not count as an attempt. After a 429, all requests wait for the time that the provider requests.
 *
 * @example
 * const limiter = createLimiter({ id: 'openai', requestsPerMinute: 600, tokensPerMinute: 200_000 })
 * const limited = openaiChat({ model: 'gpt-5-mini', apiKey: 'sk-…', limiter })
 * const other = limiter.limit(model) // any ModelProvider
 * @throws {UsageError} `invalid_option`, naming the option
 */
export function createLimiter(options: CreateLimiterOptions): Limiter {
  const checked = checkOptions('createLimiter(options)', options, optionRules)
  const { id, clock = systemClock, concurrency, requestsPerMinute, tokensPerMinute, burst = 0.1 } = checked
  if (concurrency === undefined && requestsPerMinute === undefined && tokensPerMinute === undefined)
    throw optionError(
      'createLimiter needs a limit: requestsPerMinute, tokensPerMinute or concurrency.',
      'requestsPerMinute',
    )
  const openWindow = (limit: number | undefined): RateWindow | null =>
    limit === undefined ? null : createRateWindow(limit, Math.max(1, limit * burst), readElapsed(clock))
  const queue = createSlotQueue(
    {
      concurrency: concurrency ?? null,
      requests: openWindow(requestsPerMinute),
      tokens: openWindow(tokensPerMinute),
    },
    clock,
  )
  /** Limits an estimate, so that a wrong one blocks other requests for at most a minute. */
  const limitTokens = (tokens: number): number => Math.min(tokens, tokensPerMinute ?? 0)
  const countTokens = (request: ModelRequest): number =>
    tokensPerMinute === undefined
      ? 0
      : limitTokens(estimateRequestTokens(request) + (request.sampling.maxTokens ?? 0))
  let refusals = 0
  const hearRefusal = (retryAfterMs: number | null): void => {
    // Requests that are in flight together are refused together, so they count once.
    if (queue.status().pausedMs === 0) refusals += 1
    const ownMs = firstPauseMs * 2 ** Math.min(refusals - 1, 10)
    queue.pause(Math.min(retryAfterMs ?? ownMs, maxPauseMs))
  }

  return {
    id,
    limit: (model) => {
      expectArgument(
        'limiter.limit(model)',
        model,
        objectRule(['request'], 'a model, such as openaiChat({ … })'),
      )
      return replaceRequest(model, async (request, options) => {
        let hasWaited = false
        const abort = findCallAbort(options) ?? options.signal
        const release = await queue.acquire({
          runId: options.runId,
          tokens: countTokens(request),
          abort,
          onWait: (ahead) => {
            hasWaited = true
            options.onWaitForSlot?.({ limiter: id, ahead })
          },
        })
        // The run may have been stopped since its turn came.
        if (abort.aborted) {
          release(0)
          throw abort.reason
        }
        if (hasWaited) options.onWaitForSlot?.(null)
        let used: number | null = null
        // A provider that ignores its signal must not keep its place.
        const unfollow = onAbort(abort, () => release(null))
        try {
          const response = await model.request(request, options)
          refusals = 0
          const reported = readTotalTokens(response?.usage)
          used = reported === null ? null : limitTokens(reported)
          return response
        } catch (error) {
          const { kind, retryAfterMs } = toModelFailure(error, clock.now())
          if (kind === 'rate_limit') hearRefusal(retryAfterMs)
          throw error
        } finally {
          unfollow()
          release(used)
        }
      })
    },
    status: queue.status,
  }
}

/** Ends a request. `tokens` is its usage, or null to keep the estimate. */
type Release = (tokens: number | null) => void

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
  grant: (release: Release) => void
}

interface Limits {
  concurrency: number | null
  requests: RateWindow | null
  tokens: RateWindow | null
}

/** Maximum number of runs to remember. A forgotten run counts as new. */
const maxRuns = 10_000

/** Grants requests as fast as the limits allow, ordered by run, then by arrival. */
function createSlotQueue({ concurrency, requests, tokens }: Limits, clock: Clock) {
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

  const take = (amount: number): Release => {
    const now = readElapsed(clock)
    active += 1
    requests?.take(1, now)
    const entry = tokens?.take(amount, now)
    let isOver = false
    return (used) => {
      if (isOver) return
      isOver = true
      active -= 1
      if (entry && used !== null) tokens?.correct(entry, used, readElapsed(clock))
      letGo()
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
    acquire: ({ runId, tokens: amount, abort, onWait }: SlotRequest): Promise<Release> =>
      new Promise((resolve, reject) => {
        if (abort.aborted) return reject(abort.reason as Error)
        let isGranted = false
        let unfollow = (): void => undefined
        const waiter: Waiter = {
          order: findOrder(runId),
          tokens: amount,
          grant: (release) => {
            isGranted = true
            unfollow()
            resolve(release)
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

type RateWindow = ReturnType<typeof createRateWindow>

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
