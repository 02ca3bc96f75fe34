import { type Clock, maxTimerMs, systemClock } from './clock.js'

/**
 * Aborts one call, batch or request. The AbortSignal is created on first access, because most signals are never read
 * and creating one costs 5 µs (9 µs with a listener). Each call has its own signal, because Node warns about more than
 * ten listeners on one signal.
 */
export class CallAbort {
  #controller: AbortController | undefined
  #aborted: { reason: unknown } | undefined
  #followers: Set<() => void> | undefined
  /** A callback that is called before the other listeners. */
  firstListener: (() => void) | undefined

  get aborted(): boolean {
    return this.#aborted !== undefined
  }

  get reason(): unknown {
    return this.#aborted?.reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#aborted.reason
  }

  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.#aborted) return
    this.#aborted = { reason }
    this.firstListener?.()
    // A callback may remove a later callback.
    for (const follower of this.#followers ?? []) follower()
    this.#controller?.abort(reason)
  }

  follow(callback: () => void): () => void {
    // A new function, so that the same callback can be registered twice.
    const follower = (): void => callback()
    const followers = (this.#followers ??= new Set())
    followers.add(follower)
    return () => void followers.delete(follower)
  }
}

/** The abort reason if another process resumes the run. Work that the call started elsewhere must continue. */
export const createLeftReason = (): DOMException =>
  new DOMException('Another process continues the run.', 'LeftError')

const abortKey = Symbol('abort')

interface AbortHolder {
  [abortKey]: CallAbort
}

const lazySignalProperty: PropertyDescriptor & ThisType<AbortHolder> = {
  enumerable: true,
  configurable: true,
  get() {
    return this[abortKey].signal
  },
}

/**
 * Defines a lazy own `signal` property on `target`, so that `{ ...target }` copies it. All targets share one getter,
 * because V8 creates a hidden class per getter in a literal and keeps everything that it references until the old
 * generation is collected.
 */
export function attachSignal<Target extends object>(
  target: Target,
  abort: CallAbort,
): Target & { readonly signal: AbortSignal } {
  Object.defineProperty(target, abortKey, { value: abort })
  return Object.defineProperty(target, 'signal', lazySignalProperty) as Target & {
    readonly signal: AbortSignal
  }
}

export function findCallAbort(target: { readonly signal: AbortSignal }): CallAbort | undefined {
  const isOurs = Object.getOwnPropertyDescriptor(target, 'signal')?.get === lazySignalProperty.get
  return isOurs ? (target as { signal: AbortSignal } & AbortHolder)[abortKey] : undefined
}

interface AbortWaiters {
  callbacks: Set<() => void>
  stop: () => void
}

/** One listener per signal, because Node warns after ten and an app may pass one signal to all its runs. */
const waitersBySignal = new WeakMap<AbortSignal, AbortWaiters>()

export function onAbort(signal: AbortSignal | CallAbort, callback: () => void): () => void {
  if (signal instanceof CallAbort) return signal.follow(callback)
  const { callbacks, stop } = waitersBySignal.get(signal) ?? listenForAbort(signal)
  const waiter = (): void => callback()
  callbacks.add(waiter)
  return () => {
    if (callbacks.delete(waiter) && callbacks.size === 0) stop()
  }
}

/** Like `onAbort`, but calls back at once if already aborted. Passes the message of the abort reason. */
export function whenAborted(signal: AbortSignal, callback: (why: string | undefined) => void): () => void {
  const notify = (): void => callback(signal.reason instanceof Error ? signal.reason.message : undefined)
  if (!signal.aborted) return onAbort(signal, notify)
  notify()
  return () => undefined
}

function listenForAbort(signal: AbortSignal): AbortWaiters {
  const callbacks = new Set<() => void>()
  const listener = (): void => {
    stop()
    for (const callback of callbacks) callback()
  }
  const stop = (): void => {
    signal.removeEventListener('abort', listener)
    waitersBySignal.delete(signal)
  }
  signal.addEventListener('abort', listener)
  const waiters = { callbacks, stop }
  waitersBySignal.set(signal, waiters)
  return waiters
}

/**
 * Runs `work` with a new abort and rejects as soon as `outer` aborts. The new abort follows `outer` and also
 * aborts when the work fails, which frees its connections. No listener stays on `outer`, which may outlive
 * many requests.
 */
export async function runAbortable<Result>(
  outer: AbortSignal | CallAbort,
  work: (abort: CallAbort) => Promise<Result>,
): Promise<Result> {
  outer.throwIfAborted()
  const own = new CallAbort()
  return await new Promise<Result>((resolve, reject) => {
    const stop = onAbort(outer, () => {
      own.abort(outer.reason)
      reject(outer.reason as Error)
    })
    work(own)
      .finally(stop)
      .then(resolve, (error: unknown) => {
        own.abort(error)
        reject(error as Error)
      })
  })
}

interface TimeoutOptions<Result> {
  what?: string
  timeoutMs: number
  clock: Clock
  /** Its abort stops the work and the timer. */
  outer?: AbortSignal | CallAbort
  timedOut: () => Result
  /** Returns the result if the work is stopped early. By default, waits for the work. */
  stopped?: () => Result
}

/**
 * Limits the time of work that never rejects. After the timeout, the result is `timedOut()`, even if the work ignores
 * its abort, which follows `outer`. A later result is dropped.
 */
export function runWithTimeout<Result>(
  limit: TimeoutOptions<Result>,
  work: (abort: CallAbort) => Promise<Result>,
): Promise<Result> {
  const { what = 'The call', timeoutMs, clock, outer, timedOut, stopped } = limit
  const abort = new CallAbort()
  const unfollow = outer && onAbort(outer, () => abort.abort(outer.reason))
  // Work that started before, such as an earlier guard, may have stopped the run.
  if (outer?.aborted) abort.abort(outer.reason)
  return new Promise((resolve) => {
    const settle = (result: Result): void => {
      unfollow?.()
      resolve(result)
    }
    const timer = clock.setTimeout(() => {
      // Resolves before aborting, so that work that reacts to the abort cannot resolve first.
      settle(timedOut())
      abort.abort(timeoutError(what, timeoutMs))
    }, timeoutMs)
    abort.firstListener = () => {
      clock.clearTimeout(timer)
      if (stopped) settle(stopped())
    }
    void work(abort).then((result) => {
      clock.clearTimeout(timer)
      return settle(result)
    })
  })
}

export interface Deadline<Result> {
  ms: number
  clock?: Pick<Clock, 'setTimeout' | 'clearTimeout'>
  late?: () => Error
  onLate?: ((result: Result) => void) | undefined
}

/** Settles with the work, or rejects when the time is up. Does not stop the work. */
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

/** One wait at a time, which `wake` and an abort end early. */
export function createNap(clock: Clock) {
  let wake = (): void => undefined
  return {
    wake: (): void => wake(),
    /** Resolves with whether the time is up. Without a time (Infinity) there is no timer. */
    sleep: (ms: number, signal?: AbortSignal | CallAbort): Promise<boolean> =>
      new Promise((resolve) => {
        const end = (isOver: boolean): void => {
          wake = () => undefined
          if (timer !== undefined) clock.clearTimeout(timer)
          stop?.()
          resolve(isOver)
        }
        wake = () => end(false)
        const timer =
          ms === Infinity ? undefined : clock.setTimeout(() => end(true), Math.min(ms, maxTimerMs))
        const stop = signal && onAbort(signal, wake)
        if (signal?.aborted) wake()
      }),
  }
}

export function timeoutError(what: string, ms: number): DOMException {
  return new DOMException(`${what} took longer than ${ms} ms.`, 'TimeoutError')
}
