/** How often a failed request is made again, and how long is waited before. */
export interface RetryConfig {
  /** Attempts a step on recoverable errors, the first included. */
  maxAttempts: number
  /** Attempts a step on rate limits, counted apart. */
  rateLimitAttempts: number
  /** Milliseconds before the second attempt; twice as long before each further one, times a jitter of 0.5 to 1.5. */
  baseDelayMs: number
  /** Milliseconds that a delay never exceeds. A Retry-After of the provider counts instead where there is one. */
  maxDelayMs: number
  /** Milliseconds. The longest Retry-After that is waited out; a longer one ends the run at once. */
  maxRetryAfterMs: number
}

/** An attempt to make a request, which has failed. */
export interface FailedAttempt {
  /** `rate_limit`, `transient` and `incomplete` may pass with time; nothing else does. */
  kind: string
  /** Which attempt of its step it was, from 1. */
  attempt: number
  /** How many of those before it ended at a rate limit. */
  rateLimits: number
  /** What the provider asked us to wait, in milliseconds; null when it did not say. */
  retryAfterMs: number | null
}

/** Whether another attempt follows. Rate limits are counted apart: they say nothing about the request. */
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
 * How long is waited before it, in milliseconds: exponential back-off, unless the provider said how long to wait.
 * @param jitter of `toJitter`: guards know no chance
 */
export function getRetryDelayMs(failed: FailedAttempt, config: RetryConfig, jitter: number): number {
  const backOff = Math.min(
    config.maxDelayMs,
    config.baseDelayMs * 2 ** Math.min(countEarlierAttempts(failed), 30),
  )
  return Math.round(failed.retryAfterMs ?? backOff * jitter)
}

/**
 * What a delay is multiplied by, 0.5 to 1.5, from a random number of 0 to 1: many who failed at once come back apart.
 */
export function toJitter(random: number): number {
  return 0.5 + random
}

/** Attempts of the step that failed in the same way before. */
function countEarlierAttempts({ kind, attempt, rateLimits }: FailedAttempt): number {
  return kind === 'rate_limit' ? rateLimits : attempt - 1 - rateLimits
}
