import type { SessionLibrary } from './session-library.js'
import type { SessionRow } from './protocol.js'

/** Sessions that are read before somebody opens them: as many as are seen at once, and none that takes seconds. */
const maxSessions = 8
const maxRecords = 5_000

/** Milliseconds without a request after which there is time for this, and how long it waits for that at most. */
const quietMs = 150
const maxWaitMs = 10_000

/**
 * Reads the sessions at the top of a list while nobody asks for anything: whoever opens one finds it read. It steps
 * back for every request, and gives up where there is no quiet.
 */
export class Prefetcher {
  readonly #library: SessionLibrary
  #busyUntil = 0
  #isReading = false
  #isClosed = false

  constructor(library: SessionLibrary) {
    this.#library = library
  }

  /** Somebody asks for something. */
  noteRequest(): void {
    this.#busyUntil = performance.now() + quietMs
  }

  /** What is listed first may be opened next. */
  async prefetch(rows: readonly SessionRow[]): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    try {
      const likely = rows.filter(({ records, problem }) => records <= maxRecords && problem === null)
      for (const { id } of likely.slice(0, maxSessions)) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other, or it would not be in the background
        if (!(await this.#waitForQuiet()) || !(await this.#library.prefetch(id, () => this.#waitForQuiet())))
          return
      }
    } catch {
      // The store has gone away: whoever asks is told.
    } finally {
      this.#isReading = false
    }
  }

  close(): void {
    this.#isClosed = true
  }

  /** Resolves when there is time; false where there is none, or no more. */
  async #waitForQuiet(): Promise<boolean> {
    const until = performance.now() + maxWaitMs
    do {
      const ms = Math.max(4, this.#busyUntil - performance.now())
      // oxlint-disable-next-line no-await-in-loop -- it waits until it is quiet
      await new Promise((resolve) => setTimeout(resolve, ms).unref())
    } while (this.#busyUntil > performance.now() && performance.now() < until && !this.#isClosed)
    return !this.#isClosed && this.#busyUntil <= performance.now()
  }
}
