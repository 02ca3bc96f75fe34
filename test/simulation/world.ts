import { createHash } from './chance.js'
import { chance } from '../chaos/world.js'

/**
 * One life of a process, in which events happen. A dead life has no effects. A suspended life's effects are
 * held.
 */
export interface Life {
  readonly name: string
  isAlive: boolean
  isPaused: boolean
  /** Timers that fell due while it slept. */
  readonly held: Due[]
  /** The sessions that it works on. */
  readonly working: Map<string, object>
}

interface Due {
  at: number
  /** A random tie-break for simultaneous events. */
  order: number
  /** Null means the world itself. */
  life: Life | null
  work: (() => void) | null
}

/** An event: time, process, description. */
export type Line = readonly [at: number, who: string, what: string]

/** The start time, in milliseconds since the epoch. */
export const beginning = 1_790_000_000_000

/** A real event loop turn, which runs after all pending promises have advanced. */
const nextTurn = setImmediate

/** True time, which jumps to the next due event, seeded randomness, and the story so far. */
export class World {
  readonly seed: number
  readonly trace: Line[] = []
  readonly broken: string[] = []
  /** The life of the current event. */
  current: Life | null = null
  /** All faults have ended. */
  isCalm = false
  /** The time of the last fault, in milliseconds since the start. */
  troubledAt = -Infinity
  /** Milliseconds since the start. */
  time = 0
  /** The number of events. */
  steps = 0
  readonly #streams = new Map<string, () => number>()
  readonly #heap: Due[] = []
  #ids = 0

  constructor(seed: number) {
    this.seed = seed
  }

  /** Milliseconds since the epoch. */
  get now(): number {
    return beginning + this.time
  }

  /** A number in [0, 1) from a separate stream, so that draws do not affect each other. */
  draw(stream: string): number {
    let next = this.#streams.get(stream)
    if (!next) {
      next = chance(createHash(this.seed, stream))
      this.#streams.set(stream, next)
    }
    return next()
  }

  /** An integer from `least` to `most`. */
  between(stream: string, least: number, most: number): number {
    return least + Math.floor(this.draw(stream) * (most - least + 1))
  }

  pick<Item>(stream: string, items: readonly Item[]): Item {
    return items[Math.floor(this.draw(stream) * items.length)] as Item
  }

  /** An id that is unique within this story. */
  createId(): string {
    this.#ids += 1
    return `${this.#ids.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`
  }

  tell(who: string, what: string): void {
    this.trace.push([this.time, who, what])
  }

  /** A promise was broken. The story ends. */
  break(what: string): void {
    if (this.broken.length === 0) this.tell('BROKEN', what)
    this.broken.push(what)
  }

  /** Schedules work after this many milliseconds. Pass the returned value to `forget` to cancel it. */
  after(ms: number, life: Life | null, work: () => void): Due {
    const due = { at: this.time + Math.max(0, ms), order: this.draw('order'), life, work }
    this.#push(due)
    return due
  }

  forget(due: unknown): void {
    if (due) (due as Due).work = null
  }

  /** A fault is active. */
  trouble(who: string, what: string): void {
    this.troubledAt = this.time
    this.tell(who, what)
  }

  /** Suspends a life and holds its due events. */
  pause(life: Life): void {
    life.isPaused = true
  }

  /** Resumes a life and runs its held events in order. */
  wake(life: Life): void {
    life.isPaused = false
    for (const due of life.held.splice(0))
      this.#push({ ...due, at: this.time, order: due.order / 1e6, work: () => due.work?.() })
  }

  /** Runs until no event is due, the story is over, or a promise is broken. */
  async play(isOver: () => boolean, mostSteps: number): Promise<void> {
    while (this.broken.length === 0 && !isOver()) {
      const due = this.#pop()
      if (!due) return
      const { life, work } = due
      if (!work || life?.isAlive === false) continue
      if (life?.isPaused) {
        life.held.push(due)
        continue
      }
      this.time = Math.max(this.time, due.at)
      this.steps += 1
      if (this.steps > mostSteps) {
        this.break(`It goes on for more than ${mostSteps} steps.`)
        return
      }
      this.current = life
      work()
      await new Promise<void>((resolve) => void nextTurn(resolve))
      this.current = null
    }
  }

  #push(due: Due): void {
    const heap = this.#heap
    let at = heap.push(due) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!isBefore(due, heap[above] as Due)) break
      heap[at] = heap[above] as Due
      at = above
    }
    heap[at] = due
  }

  #pop(): Due | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && isBefore(heap[below + 1] as Due, heap[below] as Due)) below += 1
      if (!isBefore(heap[below] as Due, last)) break
      heap[at] = heap[below] as Due
      at = below
    }
    heap[at] = last
    return first
  }
}

const isBefore = (a: Due, b: Due): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)
