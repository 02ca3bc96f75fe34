import type { ServerResponse } from 'node:http'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { AttachedRuns } from './attached-runs.js'
import type { SessionCatalogue } from './session-catalogue.js'
import { describeProblem } from './session-library.js'
import type { LiveMessage, SessionRow } from './protocol.js'
import { createVerdict } from './verdict.js'

const pollMs = 500

/** For reading logs per poll, in milliseconds. A long list is sent over several polls. */
const readingMs = 100

/** Maximum time between a page's list request and its subscription, in milliseconds. */
const overlapMs = 5_000

interface Viewer {
  response: ServerResponse
  session: string | null
  /** The last record that the page has, and its checksum. Null if unknown. */
  lastSeq: number
  check: string | null
  /** Whether the connection is congested. A sleeping page must not fill the memory. */
  isFull: boolean
}

export class LiveFeed {
  readonly #catalogue: SessionCatalogue
  readonly #runs: AttachedRuns
  readonly #viewers = new Set<Viewer>()
  readonly #recent = new Map<string, { row: SessionRow; at: number }>()
  /** Whether changes were emitted that `#recent` does not contain. */
  #hasMore = false
  #problem: string | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #isPolling = false
  #isDue = false
  #restMs = 0
  #nextAt = Infinity
  #isClosed = false

  constructor(catalogue: SessionCatalogue, runs: AttachedRuns) {
    this.#catalogue = catalogue
    this.#runs = runs
    catalogue.onChange = (changed, gone) => this.#emitChanges(changed, gone)
    catalogue.onMore = () => {
      this.#hasMore = true
      this.emit(this.#createListMessage())
    }
    runs.onText = (text) => this.emit(text)
    runs.onChange = () => this.pollSoon()
  }

  addViewer(response: ServerResponse, session: string | null, after: number): void {
    const viewer: Viewer = { response, session, lastSeq: after, check: null, isFull: false }
    response.on('drain', () => (viewer.isFull = false))
    response.on('close', () => this.#viewers.delete(viewer))
    this.#viewers.add(viewer)
    // Sends the changes since the page's list request. A page that reconnects may have missed others, too.
    this.#forgetOld()
    if (this.#hasMore) writeMessage(viewer, this.#createListMessage())
    for (const { row } of this.#recent.values()) writeMessage(viewer, { type: 'session', row })
    if (this.#problem !== null) writeMessage(viewer, { type: 'store', problem: this.#problem })
    const text = session === null ? null : this.#runs.findText(session)
    if (text) writeMessage(viewer, text)
    this.pollSoon()
  }

  emit(message: LiveMessage): void {
    for (const viewer of this.#viewers) if (isMessageFor(viewer, message)) writeMessage(viewer, message)
  }

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
    // Repeated changes do not delay the poll.
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
      await this.#catalogue.refresh(readingMs)
      await this.#emitRecords()
      this.#emitProblem(null)
    } catch (error) {
      this.#emitProblem(describeProblem(error))
    }
    this.#isPolling = false
    const took = performance.now() - began
    this.#restMs = Math.max(20, took)
    this.#schedule(this.#isDue ? this.#restMs : Math.max(pollMs, 4 * took))
  }

  #emitChanges(changed: readonly SessionRow[], gone: readonly string[]): void {
    this.#forgetOld()
    this.#hasMore ||= gone.length > 0
    for (const row of changed) {
      this.#recent.set(row.id, { row, at: performance.now() })
      this.emit({ type: 'session', row })
    }
    for (const sessionId of gone) {
      this.#recent.delete(sessionId)
      this.emit({ type: 'gone', sessionId })
    }
  }

  #forgetOld(): void {
    for (const [id, { at }] of this.#recent) {
      if (at >= performance.now() - overlapMs) continue
      this.#recent.delete(id)
      this.#hasMore = true
    }
  }

  #createListMessage(): LiveMessage {
    return { type: 'list', known: this.#catalogue.known, unread: this.#catalogue.unread }
  }

  async #emitRecords(): Promise<void> {
    for (const viewer of this.#viewers) {
      const { session: sessionId } = viewer
      if (sessionId === null || !this.#catalogue.has(sessionId)) continue
      // One read of the store at a time.
      const fold = await this.#catalogue.library.readFold(sessionId).catch(ignoreUnknownSession)
      if (fold === null) continue
      // The fold may have been rebuilt from the same log.
      const reset = viewer.check !== null && fold.getCheck(viewer.lastSeq) !== viewer.check
      const lastSent = reset ? 0 : viewer.lastSeq
      viewer.lastSeq = fold.head
      viewer.check = fold.getCheck()
      const rows = fold.rows.slice(lastSent)
      if (rows.length === 0 && !reset) continue
      const bars = fold.timeline.bars.filter(
        ({ fromSeq, toSeq }) => fromSeq > lastSent || (toSeq ?? 0) > lastSent,
      )
      const news = { type: 'rows', sessionId, rows, bars, verdict: createVerdict(fold) } as const
      writeMessage(viewer, reset ? { ...news, reset } : news)
    }
  }

  #emitProblem(problem: string | null): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.emit({ type: 'store', problem })
  }
}

/** The session may be deleted after it was listed. */
function ignoreUnknownSession(error: unknown): null {
  if (error instanceof StoreError && error.code === 'unknown_session') return null
  throw error
}

function isMessageFor({ session }: Viewer, message: LiveMessage): boolean {
  return (message.type !== 'rows' && message.type !== 'text') || message.sessionId === session
}

function writeMessage(viewer: Viewer, message: LiveMessage): void {
  // Skipped text arrives later with its message. A page that was disconnected reconnects.
  if (viewer.isFull && message.type === 'text') return
  if (viewer.isFull && viewer.response.writableLength > maxWaitingBytes) {
    viewer.response.destroy()
    return
  }
  viewer.isFull = !viewer.response.write(`data: ${JSON.stringify(message)}\n\n`)
}

const maxWaitingBytes = 16_000_000
