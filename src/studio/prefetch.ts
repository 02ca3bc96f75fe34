import type { SessionCatalogue } from './session-catalogue.js'
import type { SessionRow } from './protocol.js'

const maxSessions = 8

/** Idle time of the server before prefetching, and the maximum wait for it, in milliseconds. */
const quietMs = 150
const maxWaitMs = 10_000

/** Prefetches the first sessions of the list, so that they open fast. Pauses for every request. */
export class Prefetcher {
  readonly #catalogue: SessionCatalogue
  readonly #maxRecords: number
  #busyUntil = 0
  #isReading = false
  #isClosed = false

  /** All logs are read afterwards. If a log has more than `maxRecords`, only its end is prefetched. */
  constructor(catalogue: SessionCatalogue, { maxRecords = 5_000 } = {}) {
    this.#catalogue = catalogue
    this.#maxRecords = maxRecords
  }

  noteRequest(): void {
    this.#busyUntil = performance.now() + quietMs
  }

  async prefetch(rows: readonly SessionRow[]): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    try {
      const likely = rows.filter(({ problem }) => problem === null)
      for (const row of likely.slice(0, maxSessions)) {
        // One session at a time, to stay in the background.
        if (!(await this.#waitForQuiet()) || !(await this.#readAhead(row))) return
      }
      await this.#catalogue.readLogs(() => this.#waitForQuiet())
    } catch {
      // The store is unavailable. The next request reports it.
    } finally {
      this.#isReading = false
    }
  }

  /** Returns false if a request arrived in the meantime. */
  async #readAhead({ id, records }: SessionRow): Promise<boolean> {
    const { library } = this.#catalogue
    if (records <= this.#maxRecords) return library.prefetch(id, () => this.#waitForQuiet())
    await library.prefetchEnd(id)
    return true
  }

  close(): void {
    this.#isClosed = true
  }

  /** Returns false if the server stays busy or is closed. */
  async #waitForQuiet(): Promise<boolean> {
    const until = performance.now() + maxWaitMs
    do {
      const ms = Math.max(4, this.#busyUntil - performance.now())
      await new Promise((resolve) => setTimeout(resolve, ms).unref())
    } while (this.#busyUntil > performance.now() && performance.now() < until && !this.#isClosed)
    return !this.#isClosed && this.#busyUntil <= performance.now()
  }
}
