import * as fc from 'fast-check'
import { type FailedAttempt, toJitter, canRetry, getRetryDelayMs } from '../../guards/retry.js'
import { defaultConfig } from '../../src/core/config/resolve-config.js'

const { retry } = defaultConfig

/** The first attempt of a step, with a transient failure. */
const first: FailedAttempt = { kind: 'transient', attempt: 1, rateLimits: 0, retryAfterMs: null }
const rateLimit = { ...first, kind: 'rate_limit' }

const anyFailure = fc
  .record({
    kind: fc.constantFrom('transient', 'incomplete', 'rate_limit', 'fatal', 'context_overflow', 'other'),
    others: fc.nat(40),
    rateLimits: fc.nat(40),
    retryAfterMs: fc.option(fc.nat(2_000_000)),
  })
  .map(({ others, ...failed }): FailedAttempt => ({ ...failed, attempt: 1 + others + failed.rateLimits }))
const anyConfig = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 20 }),
  rateLimitAttempts: fc.integer({ min: 1, max: 20 }),
  baseDelayMs: fc.nat(10_000),
  maxDelayMs: fc.nat(100_000),
  maxRetryAfterMs: fc.nat(1_000_000),
})

describe('a failed request is repeated', () => {
  test.each(['transient', 'incomplete'])('%s: three attempts by default', (kind) => {
    const tries = [1, 2, 3, 4].map((attempt) => canRetry({ ...first, kind, attempt }, retry))
    expect(tries).toEqual([true, true, false, false])
  })

  test('up to six times for rate limits, which are counted separately', () => {
    const tries = [0, 4, 5].map((rateLimits) =>
      canRetry({ ...rateLimit, attempt: rateLimits + 1, rateLimits }, retry),
    )
    expect(tries).toEqual([true, true, false])
    expect(canRetry({ ...first, attempt: 7, rateLimits: 5 }, retry)).toBe(true)
    expect(canRetry({ ...rateLimit, attempt: 3, rateLimits: 0 }, retry)).toBe(true)
  })

  test.each(['fatal', 'context_overflow', 'something new'])('%s: never', (kind) => {
    expect(canRetry({ ...first, kind }, retry)).toBe(false)
  })

  test('unless the requested wait is longer than `maxRetryAfterMs`', () => {
    expect(canRetry({ ...rateLimit, retryAfterMs: 600_000 }, retry)).toBe(true)
    expect(canRetry({ ...rateLimit, retryAfterMs: 600_001 }, retry)).toBe(false)
  })

  test('a bounded number of times for any configuration: no more than both kinds together', () => {
    fc.assert(
      fc.property(anyFailure, anyConfig, (failed, config) => {
        if (failed.attempt >= config.maxAttempts + config.rateLimitAttempts - 1) {
          const both = ['transient', 'rate_limit'].every((kind) => canRetry({ ...failed, kind }, config))
          expect(both).toBe(false)
        }
      }),
    )
  })
})

describe('the delay before a retry is', () => {
  test('one second, two, four … up to a minute', () => {
    const delays = [1, 2, 3, 7, 1_000].map((attempt) => getRetryDelayMs({ ...first, attempt }, retry, 1))
    expect(delays).toEqual([1_000, 2_000, 4_000, 60_000, 60_000])
  })

  test('counted separately for rate limits', () => {
    expect(getRetryDelayMs({ ...rateLimit, attempt: 5, rateLimits: 1 }, retry, 1)).toBe(2_000)
    expect(getRetryDelayMs({ ...first, attempt: 5, rateLimits: 3 }, retry, 1)).toBe(2_000)
  })

  test('replaced by the delay that the provider requests, to the millisecond', () => {
    expect(getRetryDelayMs({ ...first, retryAfterMs: 1_234 }, retry, 1.5)).toBe(1_234)
    expect(getRetryDelayMs({ ...first, retryAfterMs: 0 }, retry, 1.5)).toBe(0)
  })

  test('multiplied by a random factor of 0.5 to 1.5', () => {
    expect([0, 0.5, 0.999].map((random) => getRetryDelayMs(first, retry, toJitter(random)))).toEqual([
      500, 1_000, 1_499,
    ])
  })

  test('a whole and bounded number of milliseconds for any failure', () => {
    fc.assert(
      fc.property(
        anyFailure,
        anyConfig,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (failed, config, random) => {
          const delay = getRetryDelayMs(failed, config, toJitter(random))
          expect(Number.isSafeInteger(delay)).toBe(true)
          expect(delay).toBeGreaterThanOrEqual(0)
          expect(delay).toBeLessThanOrEqual(failed.retryAfterMs ?? Math.ceil(config.maxDelayMs * 1.5))
        },
      ),
    )
  })
})
