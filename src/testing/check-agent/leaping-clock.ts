import { type Clock, readElapsed, systemClock } from '../../core/base/clock.js'

/** How far the time of a scene is ahead of the platform's: the same for all its processes. */
export interface SceneTime {
  aheadMs: number
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
    return systemClock.now() + this.#time.aheadMs
  }

  elapsed(): number {
    return readElapsed(systemClock) + this.#time.aheadMs
  }

  setTimeout(fire: () => void, ms: number): number {
    const id = ++this.#lastId
    if (this.#isStopped) return id
    const timer: Timer = { due: this.elapsed() + ms, fire, handle: undefined }
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
    if (Number.isFinite(due)) this.pass(due - this.elapsed())
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
    const left = Math.max(0, timer.due - this.elapsed())
    timer.handle = systemClock.setTimeout(() => {
      this.#timers.delete(id)
      timer.fire()
    }, left)
  }
}
