import type { Library } from './library.js'
import type { SessionRow } from './protocol.js'

/** Sessions that are read before somebody opens them: as many as are seen at once, and none that takes seconds. */
const mostAhead = 8
const longestAhead = 5_000

/** Milliseconds without a request after which there is time for this, and how long it waits for that at most. */
const quietMs = 150
const patienceMs = 10_000

/**
 * Reads the sessions at the top of a list while nobody asks for anything: whoever opens one finds it read. It steps
 * back for every request, and gives up where there is no quiet.
 */
export class Ahead {
  readonly #library: Library
  #busyUntil = 0
  #isAtIt = false
  #isClosed = false

  constructor(library: Library) {
    this.#library = library
  }

  /** Somebody asks for something. */
  note(): void {
    this.#busyUntil = performance.now() + quietMs
  }

  /** What is listed first may be opened next. */
  async read(rows: readonly SessionRow[]): Promise<void> {
    if (this.#isAtIt) return
    this.#isAtIt = true
    try {
      const likely = rows.filter(({ records, problem }) => records <= longestAhead && problem === null)
      for (const { id } of likely.slice(0, mostAhead)) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other, or it would not be in the background
        if (!(await this.#quiet()) || !(await this.#library.ahead(id, () => this.#quiet()))) return
      }
    } catch {
      // The store has gone away: whoever asks is told.
    } finally {
      this.#isAtIt = false
    }
  }

  close(): void {
    this.#isClosed = true
  }

  /** Resolves when there is time; false where there is none, or no more. */
  async #quiet(): Promise<boolean> {
    const until = performance.now() + patienceMs
    do {
      const ms = Math.max(4, this.#busyUntil - performance.now())
      // oxlint-disable-next-line no-await-in-loop -- it waits until it is quiet
      await new Promise((resolve) => setTimeout(resolve, ms).unref())
    } while (this.#busyUntil > performance.now() && performance.now() < until && !this.#isClosed)
    return !this.#isClosed && this.#busyUntil <= performance.now()
  }
}
