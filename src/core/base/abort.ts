import { type Clock, systemClock } from './clock.js'

/**
 * What ends one call, one batch or one request early. Its AbortSignal is made when a reader first asks for it: most never
 * do, and one costs 5 µs, with a listener 9 µs (four a step would be 6 to 15 % of it). Each has its own, so that many calls
 * at once do not pile their listeners on one signal (Node warns of more than ten).
 */
export class CallAbort {
  #controller: AbortController | undefined
  #aborted: { reason: unknown } | undefined
  #followers: Set<() => void> | undefined
  /** Called before the followers. */
  onAbort: (() => void) | undefined

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
    this.onAbort?.()
    // A callback may end the following of a later one.
    for (const follower of this.#followers ?? []) follower()
    this.#controller?.abort(reason)
  }

  /** Calls back when it aborts, without a signal. Returns what ends that. */
  follow(callback: () => void): () => void {
    // A new function, so that one callback can follow twice.
    const follower = (): void => callback()
    const followers = (this.#followers ??= new Set())
    followers.add(follower)
    return () => void followers.delete(follower)
  }
}

/** The reason when another process resumes the run: work that the call started elsewhere is still needed. */
export const createLeftReason = (): DOMException =>
  new DOMException('Another process goes on with the run.', 'LeftError')

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
 * Gives `target` an own `signal` property that is created at its first use, so `{ ...target }` copies it. All
 * targets share one getter: V8 creates a hidden class per getter in a literal and keeps what it references
 * until the old generation is collected.
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

/** The `CallAbort` behind a `signal` from `attachSignal`; undefined for any other signal. */
export function findCallAbort(target: { readonly signal: AbortSignal }): CallAbort | undefined {
  const isOurs = Object.getOwnPropertyDescriptor(target, 'signal')?.get === lazySignalProperty.get
  return isOurs ? (target as { signal: AbortSignal } & AbortHolder)[abortKey] : undefined
}

interface AbortWaiters {
  callbacks: Set<() => void>
  stop: () => void
}

/**
 * Who waits for each signal. A signal has one listener of ours, however many wait: Node takes more than ten on one for a
 * leak and warns of it, and an app may well give one signal to all its runs.
 */
const waitersBySignal = new WeakMap<AbortSignal, AbortWaiters>()

/** Calls back when it aborts, in the order of asking. Returns what ends the waiting. */
export function onAbort(signal: AbortSignal | CallAbort, callback: () => void): () => void {
  if (signal instanceof CallAbort) return signal.follow(callback)
  const { callbacks, stop } = waitersBySignal.get(signal) ?? listenForAbort(signal)
  const waiter = (): void => callback()
  callbacks.add(waiter)
  return () => {
    if (callbacks.delete(waiter) && callbacks.size === 0) stop()
  }
}

/**
 * Like `onAbort`, but also calls back at once if the signal has already aborted. Passes the message of the
 * reason.
 */
export function whenAborted(signal: AbortSignal, callback: (why: string | undefined) => void): () => void {
  const tell = (): void => callback(signal.reason instanceof Error ? signal.reason.message : undefined)
  if (!signal.aborted) return onAbort(signal, tell)
  tell()
  return () => undefined
}

function listenForAbort(signal: AbortSignal): AbortWaiters {
  const callbacks = new Set<() => void>()
  const listener = (): void => {
    stop()
    // A callback may end the waiting of a later one.
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
  /** Subject of the abort message. Default: `The call`. */
  what?: string
  /** Milliseconds; more than 0. */
  timeoutMs: number
  clock: Clock
  /** Aborted at the timeout. When it is aborted earlier, the timer is cleared. */
  abort: CallAbort
  timedOut: () => Result
  /** The result when the work is aborted earlier. Default: wait for the work. */
  stopped?: () => Result
}

/**
 * Limits the time of work that never rejects. At the timeout the result is `timedOut()`, even if the work
 * ignores its signal; a later result is dropped.
 */
export function runWithTimeout<Result>(
  limit: TimeoutOptions<Result>,
  work: () => Promise<Result>,
): Promise<Result> {
  const { what = 'The call', timeoutMs, clock, abort, timedOut, stopped } = limit
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => {
      // Before the abort, so that work that reacts to it cannot resolve first.
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

export interface Deadline<Result> {
  /** Milliseconds. */
  ms: number
  clock?: Clock
  /** The error of a timeout. Default: a DOMException `TimeoutError`. */
  late?: () => Error
  /** Receives a result that arrives too late. */
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
