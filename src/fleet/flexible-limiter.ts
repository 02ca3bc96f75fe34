import { type CallAbort, findCallAbort, runAbortable } from '../core/base/abort.js'
import { systemClock, wait } from '../core/base/clock.js'
import { describeError } from '../core/base/errors.js'
import { ModelError, type RequestLimiter } from '../core/models/provider.js'
import { replaceRequest } from '../core/models/leave-out.js'
import { toModelFailure } from '../core/models/to-model-failure.js'
import { maxPauseMs } from './create-limiter.js'

/** Poll interval while the time of the next point is unknown, in milliseconds. */
const pollMs = 250

/**
 * Shares a rate limit across processes through a limiter from `rate-limiter-flexible`. Each request consumes one point
 * of the key `id`. A 429 with a `Retry-After` blocks the key in all processes, for up to ten minutes.
 *
 * @example
 * const store = { consume: async () => undefined, block: async () => undefined } // new RateLimiterPostgres({ … })
 * const limited = flexibleLimiter('openai', store).limit(model)
 */
export function flexibleLimiter(
  id: string,
  store: { consume(key: string): Promise<unknown>; block(key: string, seconds: number): Promise<unknown> },
): RequestLimiter {
  const consume = async (abort: AbortSignal | CallAbort, onWait: () => void): Promise<void> => {
    try {
      await store.consume(id)
    } catch (error) {
      const { msBeforeNext } = error as { msBeforeNext?: unknown }
      const message = `The store for limiter '${id}' is not responding: ${describeError(error)}`
      if (typeof msBeforeNext !== 'number')
        throw new ModelError({ kind: 'transient', code: 'limiter_unavailable', message }, { cause: error })
      await runAbortable(abort, () => {
        onWait()
        // A permanently blocked key reports no time.
        return wait(systemClock, msBeforeNext > 0 ? msBeforeNext : pollMs)
      })
      await consume(abort, onWait)
    }
  }
  return {
    id,
    limit: (model) =>
      replaceRequest(model, async (request, options) => {
        let waits = 0
        const abort = findCallAbort(options) ?? options.signal
        await consume(abort, () => {
          if (waits === 0) options.onWaitForSlot?.({ limiter: id, ahead: 0 })
          waits += 1
        })
        // The store may have been slower than the run.
        abort.throwIfAborted()
        if (waits > 0) options.onWaitForSlot?.(null)
        return model.request(request, options).catch((error: unknown) => {
          const { kind, retryAfterMs } = toModelFailure(error, systemClock.now())
          // If the store fails or hangs, the 429 still decides about the retry.
          if (kind === 'rate_limit' && retryAfterMs)
            (async () => store.block(id, Math.ceil(Math.min(retryAfterMs, maxPauseMs) / 1000)))().catch(
              () => undefined,
            )
          throw error
        })
      }),
  }
}
