import type { ServerResponse } from 'node:http'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { AttachedRuns } from './attached-runs.js'
import { type SessionLibrary, describeProblem } from './session-library.js'
import type { LiveMessage, SessionRow } from './protocol.js'

/** How often the store is looked at, in milliseconds, for what other processes write. */
const pollMs = 500

/** Milliseconds for reading logs at one look: a list of thousands is told as it is read. */
const readingMs = 100

/** Between the list of a page and its feed there is at most so much time, in milliseconds. */
const overlapMs = 5_000

interface Viewer {
  response: ServerResponse
  /** The session that it follows record by record. */
  session: string | null
  /** The last record that it has, and the check of it; null: it has come with that record, and nobody knows. */
  lastSeq: number
  check: string | null
  /** Bytes that wait to be taken: a page that sleeps is not fed for ever. */
  isFull: boolean
}

/** What happens in the store, told to every page that is open: rows of the list, records, text. */
export class LiveFeed {
  readonly #library: SessionLibrary
  readonly #runs: AttachedRuns
  readonly #viewers = new Set<Viewer>()
  /** As they were told last, and when. */
  readonly #rows = new Map<string, { text: string; at: number }>()
  #problem: string | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #isPolling = false
  /** Whether something has happened since the last look began. */
  #isDue = false
  #restMs = 0
  #nextAt = Infinity
  #isClosed = false

  constructor(library: SessionLibrary, runs: AttachedRuns) {
    this.#library = library
    this.#runs = runs
  }

  /** A page that stays connected. `after`: the last record that it has. */
  addViewer(response: ServerResponse, session: string | null, after: number): void {
    const viewer: Viewer = { response, session, lastSeq: after, check: null, isFull: false }
    response.on('drain', () => {
      viewer.isFull = false
    })
    response.on('close', () => this.#viewers.delete(viewer))
    this.#viewers.add(viewer)
    // What was told to others between its list and now.
    for (const [id, { at }] of this.#rows) if (at > performance.now() - overlapMs) this.#rows.delete(id)
    if (this.#problem !== null) writeMessage(viewer, { type: 'store', problem: this.#problem })
    const text = session === null ? null : this.#runs.findText(session)
    if (text) writeMessage(viewer, text)
    this.pollSoon()
  }

  emit(message: LiveMessage): void {
    for (const viewer of this.#viewers) if (isMessageFor(viewer, message)) writeMessage(viewer, message)
  }

  /** Something has happened in this process: the store is looked at as soon as it may be. */
  pollSoon(): void {
    this.#isDue = true
    if (!this.#isPolling) this.#schedule(this.#restMs)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const { response } of this.#viewers) response.end()
    this.#viewers.clear()
  }

  #schedule(ms: number): void {
    if (this.#isClosed || this.#viewers.size === 0) return
    const at = performance.now() + ms
    // What happens again and again does not put it off.
    if (at >= this.#nextAt) return
    clearTimeout(this.#timer)
    this.#nextAt = at
    this.#timer = setTimeout(() => void this.#poll(), ms)
    this.#timer.unref()
  }

  async #poll(): Promise<void> {
    this.#isPolling = true
    this.#isDue = false
    this.#nextAt = Infinity
    const began = performance.now()
    try {
      await this.#emitRows()
      await this.#emitRecords()
      this.#emitProblem(null)
    } catch (error) {
      this.#emitProblem(describeProblem(error))
    }
    this.#isPolling = false
    const took = performance.now() - began
    // A store that is slow to list is asked less often, and never all the time.
    this.#restMs = Math.max(20, took)
    this.#schedule(this.#isDue ? this.#restMs : Math.max(pollMs, 4 * took))
  }

  async #emitRows(): Promise<void> {
    const rows = await this.#library.listRows(readingMs)
    const ids = new Set(rows.map(({ id }) => id))
    for (const id of this.#rows.keys()) {
      if (ids.has(id)) continue
      this.#rows.delete(id)
      this.emit({ type: 'gone', sessionId: id })
    }
    for (const row of rows) this.#emitRow(row)
  }

  /** What a page has got as a list need not be told to it again. */
  noteListed(rows: readonly SessionRow[]): void {
    for (const row of rows) this.#emitRow(row, 0)
  }

  #emitRow(row: SessionRow, at = performance.now()): void {
    const text = JSON.stringify(row)
    if (this.#rows.get(row.id)?.text === text) return
    this.#rows.set(row.id, { text, at })
    this.emit({ type: 'session', row })
  }

  async #emitRecords(): Promise<void> {
    for (const viewer of this.#viewers) {
      const { session: sessionId } = viewer
      if (sessionId === null || !this.#rows.has(sessionId)) continue
      // oxlint-disable-next-line no-await-in-loop -- the store is read by one at a time
      const fold = await this.#library.readFold(sessionId).catch(ignoreUnknownSession)
      if (fold === null) continue
      // A log that was read anew may be the same one.
      const reset = viewer.check !== null && fold.getCheck(viewer.lastSeq) !== viewer.check
      const told = reset ? 0 : viewer.lastSeq
      viewer.lastSeq = fold.head
      viewer.check = fold.check
      const rows = fold.rows.slice(told)
      if (rows.length === 0 && !reset) continue
      const bars = fold.bars.filter(({ fromSeq, toSeq }) => fromSeq > told || (toSeq ?? 0) > told)
      writeMessage(viewer, { type: 'rows', sessionId, rows, bars, ...(reset && { reset: true as const }) })
    }
  }

  #emitProblem(problem: string | null): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.emit({ type: 'store', problem })
  }
}

/** It was deleted between the list and this. */
function ignoreUnknownSession(error: unknown): null {
  if (error instanceof StoreError && error.code === 'unknown_session') return null
  throw error
}

function isMessageFor({ session }: Viewer, message: LiveMessage): boolean {
  return (message.type !== 'rows' && message.type !== 'text') || message.sessionId === session
}

function writeMessage(viewer: Viewer, message: LiveMessage): void {
  // It asks anew when it is connected again; text that is left out comes with its message.
  if (viewer.isFull && message.type === 'text') return
  if (viewer.isFull && viewer.response.writableLength > maxWaitingBytes) {
    viewer.response.destroy()
    return
  }
  viewer.isFull = !viewer.response.write(`data: ${JSON.stringify(message)}\n\n`)
}

const maxWaitingBytes = 16_000_000
