import type { Clock } from '../../src/index.js'

/** A chaotic run's environment: manual time, seeded randomness, and counts of activity and hangs. */
export class World implements Clock {
  readonly #timers = new Map<number, { at: number; fire: () => void }>()
  readonly #chance: () => number
  readonly #hung = new Set<() => void>()
  #now = 1_700_000_000_000
  #id = 0
  /** Grows with each event. */
  moves = 0
  /** The number of operations that are configured to hang. */
  hanging = 0
  /** All misbehavior has ended. */
  calm = false
  /** Cancel the runs that started next to the driven one. */
  readonly cancelOthers: (() => void)[] = []

  constructor(seed: number) {
    this.#chance = chance(seed)
  }

  now(): number {
    return this.#now
  }

  setTimeout(fn: () => void, ms: number): unknown {
    this.#id += 1
    this.#timers.set(this.#id, { at: this.#now + Math.max(0, ms), fire: fn })
    return this.#id
  }

  clearTimeout(id: unknown): void {
    this.#timers.delete(id as number)
  }

  /** Jumps to the next timer and fires it. False when there is none. */
  pass(): boolean {
    let next: [id: number, timer: { at: number; fire: () => void }] | undefined
    for (const entry of this.#timers) if (!next || entry[1].at < next[1].at) next = entry
    if (next === undefined) return false
    this.#timers.delete(next[0])
    this.#now = Math.max(this.#now, next[1].at)
    next[1].fire()
    return true
  }

  /** A person pauses. The program continues. */
  async sleep(ms: number): Promise<void> {
    const until = this.#now + ms
    while ([...this.#timers.values()].some(({ at }) => at <= until)) {
      this.pass()
      await this.quiet(false)
    }
    this.#now = until
  }

  /** Resolves after a time. With a signal, rejects when it aborts first. */
  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.clearTimeout(timer)
        reject(signal?.reason as Error)
      }
      const timer = this.setTimeout(() => {
        this.moves += 1
        signal?.removeEventListener('abort', stop)
        resolve()
      }, ms)
      if (signal?.aborted) stop()
      else signal?.addEventListener('abort', stop, { once: true })
    })
  }

  /** Never settles before the world ends. With a signal, rejects when it aborts. */
  hang(signal?: AbortSignal): Promise<never> {
    this.hanging += 1
    return new Promise((_, reject) => {
      const stop = (): void => {
        if (!this.#hung.delete(stop)) return
        this.hanging -= 1
        signal?.removeEventListener('abort', stop)
        reject(signal?.reason as Error)
      }
      this.#hung.add(stop)
      if (signal?.aborted) stop()
      else signal?.addEventListener('abort', stop)
    })
  }

  /** Remaining hangs fail long after their callers have left, without effect. */
  end(): void {
    for (const stop of this.#hung) stop()
  }

  /** An integer from 0, below a limit. */
  below(limit: number): number {
    return Math.floor(this.#chance() * limit)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }

  /** Runs all ready work without time passing. */
  async quiet(real: boolean): Promise<void> {
    for (let still = 0; still < (real ? 4 : 6); ) {
      const { moves } = this
      await new Promise((resolve) => void (real ? setTimeout(resolve, 2) : setImmediate(resolve)))
      const isStill = moves === this.moves && !isReading()
      still = isStill ? still + 1 : 0
    }
  }
}

/**
 * Whether other threads read for this one, for example to load a module. On a busy machine this takes any
 * amount of time.
 */
function isReading(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(?:FSReq|GetAddrInfo)/.test(name))
}

/** The time of a host whose clock is this many milliseconds ahead, or behind if negative. */
export function skewClock(world: World, ms: number): Clock {
  return {
    now: () => world.now() + ms,
    setTimeout: (fn, delay) => world.setTimeout(fn, delay),
    clearTimeout: (id) => world.clearTimeout(id),
  }
}

/** Seeded random numbers from 0 to 1 (mulberry32). */
export function chance(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
