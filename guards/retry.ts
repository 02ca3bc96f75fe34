export interface RetryConfig {
  /** Maximum attempts per step for recoverable errors, including the first. */
  maxAttempts: number
  /** Maximum attempts per step for rate limits, which are counted separately. */
  rateLimitAttempts: number
  /** Milliseconds before the second attempt. Doubles with each attempt, times a jitter of 0.5 to 1.5. */
  baseDelayMs: number
  /** Maximum delay in milliseconds, unless the provider sends Retry-After. */
  maxDelayMs: number
  /** The longest Retry-After to wait for, in milliseconds. If the provider requests more, the run ends. */
  maxRetryAfterMs: number
}

export interface FailedAttempt {
  /** The kind of the failure. Only `rate_limit`, `transient` and `incomplete` are retried. */
  kind: string
  attempt: number
  rateLimits: number
  /** The wait requested by the provider in milliseconds, or null. */
  retryAfterMs: number | null
}

/** Whether to try again. Rate limits are counted separately because they do not depend on the request. */
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

/** In milliseconds. `jitter` comes from `toJitter`, because guards have no randomness. */
export function getRetryDelayMs(failed: FailedAttempt, config: RetryConfig, jitter: number): number {
  const backOff = Math.min(
    config.maxDelayMs,
    config.baseDelayMs * 2 ** Math.min(countEarlierAttempts(failed), 30),
  )
  return Math.round(failed.retryAfterMs ?? backOff * jitter)
}

/** Converts a random number from 0 to 1 into a factor from 0.5 to 1.5, which spreads retries. */
export function toJitter(random: number): number {
  return 0.5 + random
}

function countEarlierAttempts({ kind, attempt, rateLimits }: FailedAttempt): number {
  return kind === 'rate_limit' ? rateLimits : attempt - 1 - rateLimits
}
