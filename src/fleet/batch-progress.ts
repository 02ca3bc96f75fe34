import { type AgentState, isRestState } from '../../machines/agent/run-result.js'

/** How a batch stands. */
export interface BatchProgress {
  /** Items of the batch; null while it is not known. */
  total: number | null
  /** Items that are COMPLETED. */
  done: number
  /** Items at work. */
  running: number
  /** Items that wait for an answer, for a shared budget, or for another process that has their session. */
  waiting: number
  /** Items that ended in any other state. */
  failed: number
  /** Of all items that were settled so far, in USD; null as soon as one is not known. */
  cost: number | null
  /** An estimate from the items of this call, in milliseconds; null while there is none. */
  timeLeftMs: number | null
}

/** Counts the items of a batch, and tells a listener each time that a number changes. */
export class BatchCounter {
  #running = 0
  #held = 0
  #resting = 0
  #done = 0
  #failed = 0
  #cost: number | null = 0
  readonly #total: number | null
  readonly #now: () => number
  readonly #startedAt: number
  readonly #listener: ((progress: BatchProgress) => void) | undefined

  /** `now`: milliseconds that pass steadily. */
  constructor(
    total: number | null,
    now: () => number,
    listener: ((progress: BatchProgress) => void) | undefined,
  ) {
    this.#total = total
    this.#now = now
    this.#startedAt = now()
    this.#listener = listener
  }

  /** An item goes to work, or leaves it. */
  addRunning(change: 1 | -1): void {
    this.#running += change
    this.#tell()
  }

  /** An item begins to wait for another process, or ends to. */
  addHeld(change: 1 | -1): void {
    this.#held += change
    this.#tell()
  }

  settle(state: AgentState | null, cost: number | null, isParked = false): void {
    if (state === 'COMPLETED') this.#done += 1
    else if (isRestState(state) || isParked) this.#resting += 1
    else this.#failed += 1
    this.#cost = this.#cost === null || cost === null ? null : this.#cost + cost
    this.#tell()
  }

  get progress(): BatchProgress {
    return {
      total: this.#total,
      done: this.#done,
      running: this.#running,
      waiting: this.#held + this.#resting,
      failed: this.#failed,
      cost: this.#cost,
      timeLeftMs: this.#estimateTimeLeft(),
    }
  }

  #estimateTimeLeft(): number | null {
    const settled = this.#done + this.#failed + this.#resting
    if (this.#total === null || settled === 0) return null
    return Math.round(((this.#now() - this.#startedAt) / settled) * Math.max(0, this.#total - settled))
  }

  #tell(): void {
    this.#listener?.(this.progress)
  }
}
