import type { SessionCatalogue } from './session-catalogue.js'
import type { SessionLibrary } from './session-library.js'
import type { SessionRow } from './protocol.js'

/** How many sessions are prefetched, and up to which length: about one screen, and none that takes seconds. */
const maxSessions = 8
const maxRecords = 5_000

/** How long there must be no request before prefetching, and how long to wait for that, in milliseconds. */
const quietMs = 150
const maxWaitMs = 10_000

/**
 * Prefetches the sessions at the top of the list while there are no requests, so that they open fast. It pauses for every
 * request, and gives up when requests do not stop.
 */
export class Prefetcher {
  readonly #library: SessionLibrary
  readonly #catalogue: SessionCatalogue | undefined
  #busyUntil = 0
  #isReading = false
  #isClosed = false

  /** `catalogue`: what is then to be read for searches. */
  constructor(library: SessionLibrary, catalogue?: SessionCatalogue) {
    this.#library = library
    this.#catalogue = catalogue
  }

  /** Notes a request: prefetching pauses. */
  noteRequest(): void {
    this.#busyUntil = performance.now() + quietMs
  }

  /** Reads the first sessions of a list. */
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
      await this.#catalogue?.readLogs(() => this.#waitForQuiet())
    } catch {
      // The store is unavailable: the next request reports it.
    } finally {
      this.#isReading = false
    }
  }

  close(): void {
    this.#isClosed = true
  }

  /** Waits for a time without requests; false when there is none, or the server is closed. */
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
