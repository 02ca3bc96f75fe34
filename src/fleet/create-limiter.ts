import { findCallAbort } from '../core/base/abort.js'
import { type Clock, readElapsed, systemClock } from '../core/base/clock.js'
import { optionError } from '../core/base/errors.js'
import { type ArgumentRule, expectArgument, objectRule } from '../core/base/values.js'
import { checkOptions, countRule, type OptionRules } from '../core/config/check-options.js'
import { readTotalTokens } from '../core/models/normalize-response.js'
import type { ModelRequest, RequestLimiter } from '../core/models/provider.js'
import { replaceRequest } from '../core/models/foreign-reasoning.js'
import { toModelFailure } from '../core/models/to-model-failure.js'
import { estimateRequestTokens } from '../core/prices/estimate-tokens.js'
import { createRateWindow, createSlotQueue, type RateWindow } from './slot-queue.js'

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
const maxPauseMs = 600_000

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
        const slot = await queue.acquire({
          runId: options.runId,
          tokens: countTokens(request),
          abort: findCallAbort(options) ?? options.signal,
          onWait: (ahead) => {
            hasWaited = true
            options.onWaitForSlot?.({ limiter: id, ahead })
          },
        })
        if (hasWaited) options.onWaitForSlot?.(null)
        let used: number | null = null
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
          slot.release(used)
        }
      })
    },
    status: queue.status,
  }
}
