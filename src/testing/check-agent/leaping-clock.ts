import { type Clock, readElapsed, systemClock } from '../../core/base/clock.js'

/**
 * The time of a scene: the same for all its processes and their store. It passes steadily and in whole milliseconds, so that no run
 * begins before the end of the one before it.
 */
export class SceneTime {
  /** How far it is ahead of the platform's. */
  aheadMs = 0
  readonly #origin = systemClock.now() - readElapsed(systemClock)

  now(): number {
    return Math.floor(this.#origin + readElapsed(systemClock)) + this.aheadMs
  }
}

interface Timer {
  due: number
  fire: () => void
  handle: unknown
}

/** The time of one process. It passes as the platform's does, and leaps to the next timer where nothing else can happen. */
export class LeapingClock implements Clock {
  readonly #time: SceneTime
  readonly #timers = new Map<number, Timer>()
  #lastId = 0
  #isStopped = false

  constructor(time: SceneTime) {
    this.#time = time
  }

  now(): number {
    return this.#time.now()
  }

  setTimeout(fire: () => void, ms: number): number {
    const id = ++this.#lastId
    if (this.#isStopped) return id
    const timer: Timer = { due: this.now() + ms, fire, handle: undefined }
    this.#timers.set(id, timer)
    this.#arm(id, timer)
    return id
  }

  clearTimeout(id: unknown): void {
    const timer = this.#timers.get(id as number)
    if (!timer) return
    systemClock.clearTimeout(timer.handle)
    this.#timers.delete(id as number)
  }

  /** Moves time on to the next timer, which then fires. */
  leap(): void {
    const due = Math.min(...[...this.#timers.values()].map((timer) => timer.due))
    if (Number.isFinite(due)) this.pass(due - this.now())
  }

  pass(ms: number): void {
    // Dates are whole milliseconds.
    this.#time.aheadMs += Math.max(0, Math.ceil(ms))
    for (const [id, timer] of this.#timers) {
      systemClock.clearTimeout(timer.handle)
      this.#arm(id, timer)
    }
  }

  /** The process is dead: nothing fires any more. */
  stop(): void {
    this.#isStopped = true
    for (const id of this.#timers.keys()) this.clearTimeout(id)
  }

  #arm(id: number, timer: Timer): void {
    const left = Math.max(0, timer.due - this.now())
    timer.handle = systemClock.setTimeout(() => {
      // Timers of a busy platform fire early: they count from the beginning of the task that has set them.
      if (this.now() < timer.due) return this.#arm(id, timer)
      this.#timers.delete(id)
      timer.fire()
    }, left)
  }
}
