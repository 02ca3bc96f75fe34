import { type CallAbort, onAbort } from './abort.js'
import { type Clock, systemClock } from './clock.js'

interface TimeoutOptions<Result> {
  /** What is limited, in the words of the abort's reason. Default: `The call`. */
  what?: string
  /** Milliseconds; more than 0. */
  timeoutMs: number
  clock: Clock
  /** Aborted at the timeout. When it is aborted earlier, the timer is cleared. */
  abort: CallAbort
  timedOut: () => Result
  /** The result of work that is aborted earlier. Default: the work alone decides. */
  stopped?: () => Result
}

/**
 * Gives work that never rejects a limited time. At the timeout the result is `timedOut()`, whether the work heeds its
 * signal or not; what it brings later is dropped.
 */
export function runWithTimeout<Result>(
  limit: TimeoutOptions<Result>,
  work: () => Promise<Result>,
): Promise<Result> {
  const { what = 'The call', timeoutMs, clock, abort, timedOut, stopped } = limit
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => {
      // Before the abort: work that heeds it must not get its say first.
      resolve(timedOut())
      abort.abort(timeoutError(what, timeoutMs))
    }, timeoutMs)
    abort.onAbort = () => {
      clock.clearTimeout(timer)
      if (stopped) resolve(stopped())
    }
    void work().then((result) => {
      clock.clearTimeout(timer)
      return resolve(result)
    })
  })
}

/** How long work is waited for, and what it is worth afterwards. */
export interface Deadline<Result> {
  /** Milliseconds. */
  ms: number
  /** Default: the platform's. */
  clock?: Clock
  /** What is thrown when it takes longer. Default: a DOMException `TimeoutError`. */
  late?: () => Error
  /** Given what comes too late. */
  onLate?: ((result: Result) => void) | undefined
}

/** The work's outcome, or a rejection when it takes too long. The work itself is not stopped. */
export function limitTime<Result>(
  { ms, clock = systemClock, late = () => timeoutError('It', ms), onLate }: Deadline<Result>,
  work: Promise<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let isLate = false
    const timer = clock.setTimeout(() => {
      isLate = true
      reject(late())
    }, ms)
    work.then(
      (result) => {
        clock.clearTimeout(timer)
        return isLate ? onLate?.(result) : resolve(result)
      },
      (error: unknown) => {
        clock.clearTimeout(timer)
        reject(error as Error)
      },
    )
  })
}

/** Waits so long, or until the signal aborts. */
export function waitOn(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clock.clearTimeout(timer)
      stop()
      resolve()
    }
    const timer = clock.setTimeout(end, ms)
    const stop = onAbort(signal, end)
    if (signal.aborted) end()
  })
}

/** The reason of an abort. */
export function timeoutError(what: string, ms: number): DOMException {
  return new DOMException(`${what} took longer than ${ms} ms.`, 'TimeoutError')
}
