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
  /** Of its one owner; told before the others. */
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

  /** The first reason stays. Default: an `AbortError`, as of an AbortController. */
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
    // Of its own, so that one function can follow twice.
    const follower = (): void => callback()
    const followers = (this.#followers ??= new Set())
    followers.add(follower)
    return () => void followers.delete(follower)
  }
}

/** Why a call stops that another process goes on with: what it has begun elsewhere is still needed. */
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
 * Gives `target` a `signal` of its own that is created at its first use. Own, so that a copy by `{ ...target }`
 * has it, too. One getter for all: V8 makes a kind of object for each getter that stands in a literal, and keeps what it
 * can see until the old generation is collected.
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

/** What the `signal` stands for that `attachSignal` has given it; undefined for any other signal. */
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
  // Of its own, so that one function can wait twice.
  const waiter = (): void => callback()
  callbacks.add(waiter)
  return () => {
    if (callbacks.delete(waiter) && callbacks.size === 0) stop()
  }
}

/** As `onAbort`, also for a signal that has aborted already: calls back at once then. Tells the message of its reason. */
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
 * Does `work` with an abort of its own and gives up at once when `outer` aborts, whatever the work is waiting for. The
 * own one aborts when `outer` does and when the work fails, which frees its connections; no listener stays on `outer`,
 * which may live for many requests.
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
