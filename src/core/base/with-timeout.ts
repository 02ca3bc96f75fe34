import type { Clock } from './clock.js'
import type { CallAbort } from './call-abort.js'

interface Limit<Result> {
  /** Milliseconds; more than 0. */
  timeoutMs: number
  clock: Clock
  /** Aborted at the timeout. When it is aborted earlier, the timer is cleared and the work alone decides. */
  abort: CallAbort
  timedOut: () => Result
}

/**
 * Gives work that never rejects a limited time. At the timeout the result is `timedOut()`, whether the work heeds its
 * signal or not; what it brings later is dropped.
 */
export function withTimeout<Result>(limit: Limit<Result>, work: () => Promise<Result>): Promise<Result> {
  const { timeoutMs, clock, abort, timedOut } = limit
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => {
      // Before the abort: work that heeds it must not get its say first.
      resolve(timedOut())
      abort.abort(new DOMException(`The call took longer than ${timeoutMs} ms.`, 'TimeoutError'))
    }, timeoutMs)
    abort.onAbort = () => {
      clock.clearTimeout(timer)
    }
    void work()
      .then(resolve)
      .finally(() => {
        clock.clearTimeout(timer)
      })
  })
}
