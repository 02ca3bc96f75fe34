import { chain, type MaybePromise } from './maybe-promise.js'

/**
 * The runtime's clock. All waits of a run use it, so tests can control time, for example with XState's
 * `SimulatedClock`.
 * @example
 * const clock: Clock = new SimulatedClock() // of xstate; `clock.increment(1_000)` lets a second pass
 * const tested = createAgent({ model, clock: { ...systemClock, now: () => 0 } })
 */
export interface Clock {
  /** Milliseconds since the epoch. Fractions are dropped. */
  now(): number
  /** Milliseconds from any origin, unaffected by changes to the system clock. Defaults to `now()`. */
  elapsed?(): number
  /** Calls back once after `ms` milliseconds. Returns a handle for `clearTimeout`. */
  setTimeout(fn: () => void, ms: number): unknown
  clearTimeout(id: unknown): void
}

/** The longest delay that a platform timer supports. A timer with a longer delay would fire immediately. */
export const maxTimerMs = 2_147_483_647

/**
 * The platform's clock. Delays are capped at 24.8 days.
 * @example
 * const startedAt = systemClock.now() // milliseconds since the epoch
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  setTimeout: (fn, ms) => setTimeout(fn, Math.min(ms, maxTimerMs)),
  clearTimeout: (id) => {
    clearTimeout(id as Parameters<typeof clearTimeout>[0])
  },
}

const wholeClocks = new WeakMap<Clock, Clock>()

/** Rounds a user's clock to whole milliseconds, like records and dates. Returns the same object for the same clock. */
export function toWholeClock(clock: Clock): Clock {
  if (clock === systemClock || Object(clock) !== clock) return clock
  const whole: Clock = wholeClocks.get(clock) ?? {
    now: toWholeTime(() => clock.now()),
    elapsed: () => readElapsed(clock),
    setTimeout: (fn, ms) => clock.setTimeout(fn, ms),
    clearTimeout: (id) => clock.clearTimeout(id),
  }
  wholeClocks.set(clock, whole)
  wholeClocks.set(whole, whole)
  return whole
}

export const toWholeTime = (now: () => number) => (): number => Math.floor(now())

/** Milliseconds elapsed on a clock. Compare only values of one process. */
export function readElapsed(clock: Clock): number {
  return clock.elapsed ? clock.elapsed() : clock.now()
}

export function wait(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimeout(resolve, ms))
}

/** Lets the process exit while the timer is pending. Timers of custom clocks may not support this. */
export function unrefTimer(timer: unknown): void {
  ;(timer as { unref?: () => void } | null | undefined)?.unref?.()
}

/**
 * Calls `work` again and again while there is something to do. The next wait starts when the work is done. `start` and
 * `stop` are called when that may have changed. Does not keep the process alive.
 */
export function createTicker(
  clock: Clock,
  parts: { getMs: () => number; isNeeded: () => boolean; work: () => MaybePromise<void> },
): { start: () => void; stop: () => void } {
  let timer: unknown
  const start = (): void => {
    if (timer !== undefined || !parts.isNeeded()) return
    const own = clock.setTimeout(() => void chain(parts.work(), () => restart(own)), parts.getMs())
    timer = own
    unrefTimer(timer)
  }
  /** It may have been stopped and started again in the meantime. */
  const restart = (own: unknown): void => {
    if (timer !== own) return
    timer = undefined
    start()
  }
  const stop = (): void => {
    if (parts.isNeeded()) return
    clock.clearTimeout(timer)
    timer = undefined
  }
  return { start, stop }
}

/** A run's time in one process. It advances steadily, so that changes to the system clock do not affect waits. */
export class RunClock {
  readonly #clock: Clock
  #base: number
  #from: number

  constructor(clock: Clock, base = clock.now()) {
    this.#clock = clock
    this.#base = base
    this.#from = readElapsed(clock)
  }

  now(): number {
    return this.#base + Math.round(readElapsed(this.#clock) - this.#from)
  }

  advanceTo(at: number): void {
    this.#base += Math.max(0, at - this.now())
  }

  /** Synchronizes with the clock, but never moves backwards. Only while the run has no timers. */
  resetToClock(): void {
    this.#base = Math.max(this.now(), this.#clock.now())
    this.#from = readElapsed(this.#clock)
  }
}

/** Converts a Date or milliseconds since the epoch to milliseconds. Null for anything else, including invalid dates. */
export function readTime(value: unknown): number | null {
  const at = value instanceof Date ? value.getTime() : value
  return typeof at === 'number' && Math.abs(at) <= 8.64e15 ? at : null
}

/** Formats a time as `2026-05-01 12:00:03 UTC`. */
export function formatWakeTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}
