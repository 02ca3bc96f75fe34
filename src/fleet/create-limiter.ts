import { findCallAbort } from '../core/base/abort.js'
import { type Clock, readElapsed, systemClock } from '../core/base/clock.js'
import { ConfigError } from '../core/base/errors.js'
import { expectArgument, objectRule } from '../core/base/values.js'
import { expectKnownOptions } from '../core/config/other-names.js'
import { readTotalTokens } from '../core/models/normalize-response.js'
import type { ModelProvider, ModelRequest, RequestLimiter } from '../core/models/provider.js'
import { replaceRequest } from '../core/models/fallbacks.js'
import { toModelFailure } from '../core/models/to-model-failure.js'
import { estimateRequestTokens } from '../core/prices/estimate-tokens.js'
import { RateWindow, SlotQueue } from './slot-queue.js'

/** How fast requests may go. It needs `concurrency`, `requestsPerMinute` or `tokensPerMinute`. */
export interface CreateLimiterOptions {
  /** For people, and for events. */
  id: string
  /** How many requests may be under way at once, from 1. */
  concurrency?: number
  /** Requests a minute, as the provider allows them: at least 1. */
  requestsPerMinute?: number
  /**
   * Tokens a minute, input and output together: at least 1. A request counts its estimated input and `sampling.maxTokens`, and what it
   * has used when it has ended.
   */
  tokensPerMinute?: number
  /**
   * Which share of a minute's allowance may go at once: more than 0, at most 1. Default: 0.1; with a `store`, 0.02 for requests, and
   * the others go one after the other.
   */
  burst?: number
  /** Time for tests. Default: the system's. */
  clock?: Clock
}

/** How a limiter stands. */
export interface LimiterStatus {
  /** Requests that wait. */
  waiting: number
  /** Requests under way. */
  active: number
  /** For how long nothing goes because the provider has asked for it, in milliseconds. */
  pausedMs: number
}

/** A limiter. Give it to every model that counts against the same limit of a provider. */
export interface Limiter extends RequestLimiter {
  /** How it stands now. */
  status(): LimiterStatus
}

const optionNames = [
  'id',
  'concurrency',
  'requestsPerMinute',
  'tokensPerMinute',
  'burst',
  'clock',
] as const satisfies (keyof CreateLimiterOptions)[]

/** The first wait after a 429 that says no time, in milliseconds; it doubles with each that follows. */
const firstPauseMs = 1000
/** The longest pause, whatever the provider asks for: the runs' own retries decide about longer waits. */
const maxPauseMs = 600_000

/**
 * Lets the requests of all runs go as fast as a provider allows, in a process, or with a `store` in all of them: first come, first served,
 * by run of a process. A request that has
 * to wait is told as `waiting_for_slot`; its wait ends with the run's cancel or deadline, and is no attempt. After a 429
 * everything behind the limiter waits for as long as the provider asks.
 *
 * @example
 * const limiter = createLimiter({ id: 'openai', requestsPerMinute: 600, tokensPerMinute: 200_000 })
 * const limited = openaiChat({ model: 'gpt-5-mini', apiKey: 'sk-…', limiter })
 * const other = limiter.limit(model) // any ModelProvider
 * @throws {ConfigError | UsageError} for an option that makes no sense, naming it
 */
export function createLimiter(options: CreateLimiterOptions): Limiter {
  const {
    id,
    clock = systemClock,
    concurrency,
    requestsPerMinute,
    tokensPerMinute,
    burst = 0.1,
  } = checkOptions(options)
  const openWindow = (limit: number | undefined): RateWindow | null =>
    limit === undefined ? null : new RateWindow(limit, Math.max(1, limit * burst), readElapsed(clock))
  const queue = new SlotQueue(
    {
      concurrency: concurrency ?? null,
      requests: openWindow(requestsPerMinute),
      tokens: openWindow(tokensPerMinute),
    },
    clock,
  )
  /** A request counts for a minute's allowance at most, so that a wrong count blocks the others for a minute at most. */
  const limitTokens = (tokens: number): number => Math.min(tokens, tokensPerMinute ?? 0)
  const countTokens = (request: ModelRequest): number =>
    tokensPerMinute === undefined
      ? 0
      : limitTokens(estimateRequestTokens(request) + (request.sampling.maxTokens ?? 0))
  /** Refusals since the last answer. */
  let refusals = 0
  const hearRefusal = (retryAfterMs: number | null): void => {
    // Those that were under way together are refused together.
    if (queue.pausedMs === 0) refusals += 1
    const ownMs = firstPauseMs * 2 ** Math.min(refusals - 1, 10)
    queue.pause(Math.min(retryAfterMs ?? ownMs, maxPauseMs))
  }

  const request =
    (model: ModelProvider): ModelProvider['request'] =>
    async (request, options) => {
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
    }

  return {
    id,
    limit: (model) => {
      expectArgument(
        'limiter.limit(model)',
        model,
        objectRule(['request'], 'a model, such as openaiChat({ … })'),
      )
      return replaceRequest(model, request(model))
    },
    status: () => ({ waiting: queue.waiting, active: queue.active, pausedMs: queue.pausedMs }),
  }
}

function checkOptions(options: unknown): CreateLimiterOptions {
  expectArgument(
    'createLimiter(options)',
    options,
    objectRule([], "an object: { id: 'openai', requestsPerMinute: 600 }"),
  )
  const given = options as CreateLimiterOptions
  expectKnownOptions('createLimiter', given, optionNames)
  const { id, concurrency, requestsPerMinute, tokensPerMinute, burst } = given
  if (typeof id !== 'string' || id.trim() === '')
    throw limiterError('id', 'must be a text, which events name')
  if (concurrency !== undefined && !(Number.isSafeInteger(concurrency) && concurrency >= 1))
    throw limiterError('concurrency', `must be a whole number of at least 1 (is ${String(concurrency)})`)
  for (const [key, value] of Object.entries({ requestsPerMinute, tokensPerMinute })) {
    if (value !== undefined && !(Number.isFinite(value) && value >= 1))
      throw limiterError(key, `must be a number of at least 1 (is ${String(value)})`)
  }
  if (burst !== undefined && !(Number.isFinite(burst) && burst > 0 && burst <= 1))
    throw limiterError(
      'burst',
      `must be a share of a minute's allowance, above 0 and at most 1 (is ${String(burst)})`,
    )
  if (concurrency === undefined && requestsPerMinute === undefined && tokensPerMinute === undefined)
    throw limiterError(
      'requestsPerMinute',
      'is missing, and so are tokensPerMinute and concurrency: give one of them',
    )
  return given
}

function limiterError(key: string, what: string): ConfigError {
  return new ConfigError('invalid_option', `createLimiter: ${key} ${what}.`, key)
}
