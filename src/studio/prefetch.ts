import type { SessionCatalogue } from './session-catalogue.js'
import type { SessionLibrary } from './session-library.js'
import type { SessionRow } from './protocol.js'

/** How many sessions are prefetched: about one screen. */
const maxSessions = 8

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
  readonly #maxRecords: number
  #busyUntil = 0
  #isReading = false
  #isClosed = false

  /** `catalogue`: what is then to be read for searches. `maxRecords`: of longer logs the end alone is read, as all takes seconds. */
  constructor(library: SessionLibrary, catalogue?: SessionCatalogue, { maxRecords = 5_000 } = {}) {
    this.#library = library
    this.#catalogue = catalogue
    this.#maxRecords = maxRecords
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
      const likely = rows.filter(({ problem }) => problem === null)
      for (const row of likely.slice(0, maxSessions)) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other, or it would not be in the background
        if (!(await this.#waitForQuiet()) || !(await this.#readAhead(row))) return
      }
      await this.#catalogue?.readLogs(() => this.#waitForQuiet())
    } catch {
      // The store is unavailable: the next request reports it.
    } finally {
      this.#isReading = false
    }
  }

  /** False when a request came meanwhile. */
  async #readAhead({ id, records }: SessionRow): Promise<boolean> {
    if (records <= this.#maxRecords) return this.#library.prefetch(id, () => this.#waitForQuiet())
    await this.#library.prefetchEnd(id)
    return true
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
