/** How often to retry a failed request, and the delays. */
export interface RetryConfig {
  /** Attempts per step on recoverable errors, including the first. */
  maxAttempts: number
  /** Attempts per step on rate limits, counted separately. */
  rateLimitAttempts: number
  /** Milliseconds before the second attempt. Doubles for each further one, times a jitter of 0.5 to 1.5. */
  baseDelayMs: number
  /** Maximum delay in milliseconds, unless the provider sends a Retry-After. */
  maxDelayMs: number
  /** Longest Retry-After to wait for, in milliseconds. A longer one ends the run. */
  maxRetryAfterMs: number
}

/** A failed attempt. */
export interface FailedAttempt {
  /** `rate_limit`, `transient` and `incomplete` are retried. */
  kind: string
  /** Number of the attempt in its step, from 1. */
  attempt: number
  /** Number of earlier attempts that hit a rate limit. */
  rateLimits: number
  /** Requested wait in milliseconds, or null. */
  retryAfterMs: number | null
}

/** Whether another attempt follows. Rate limits are counted separately, because they do not depend on the request. */
export function canRetry(failed: FailedAttempt, config: RetryConfig): boolean {
  if ((failed.retryAfterMs ?? 0) > config.maxRetryAfterMs) return false
  switch (failed.kind) {
    case 'rate_limit':
      return countEarlierAttempts(failed) + 1 < config.rateLimitAttempts
    case 'transient':
    case 'incomplete':
      return countEarlierAttempts(failed) + 1 < config.maxAttempts
    default:
      return false
  }
}

/**
 * The delay before the next attempt in milliseconds. It is an exponential back-off, or the provider's wait.
 * @param jitter from `toJitter`, because guards have no randomness
 */
export function getRetryDelayMs(failed: FailedAttempt, config: RetryConfig, jitter: number): number {
  const backOff = Math.min(
    config.maxDelayMs,
    config.baseDelayMs * 2 ** Math.min(countEarlierAttempts(failed), 30),
  )
  return Math.round(failed.retryAfterMs ?? backOff * jitter)
}

/** A factor of 0.5 to 1.5 from a random number of 0 to 1, so that retries spread out. */
export function toJitter(random: number): number {
  return 0.5 + random
}

/** Earlier attempts of the step that failed in the same way. */
function countEarlierAttempts({ kind, attempt, rateLimits }: FailedAttempt): number {
  return kind === 'rate_limit' ? rateLimits : attempt - 1 - rateLimits
}
