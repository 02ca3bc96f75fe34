import type { AgentState } from '../../machines/agent/run-result.js'
import { maskMessages } from '../../machines/agent/uncleared-input.js'
import { createTitle } from '../core/sessions/session-summary.js'
import { describeError } from '../core/base/describe-error.js'
import { readSessionAt } from '../core/sessions/replay-session.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import type { ListedSession, LogRecord } from '../core/sessions/store/store.js'
import { unknownSessionError } from '../core/sessions/store/store-refusals.js'
import { openRecord } from '../core/sessions/log/log-record.js'
import type { FoldedSession } from '../core/sessions/fold-session.js'
import type { ReadableStore } from './embedded-actors.js'
import { type Origin, SessionFold } from './session-fold.js'
import type { SessionRow } from './protocol.js'
import { toShownText } from './shown-values.js'

/** How many folded logs are kept, the last used. */
const maxFolds = 24

/** The part of a row that comes from the log. */
type LogSummary = Pick<
  SessionRow,
  'state' | 'reason' | 'wakeAt' | 'title' | 'steps' | 'tokens' | 'cost' | 'problem' | 'forkedFrom'
>

/** The sessions of a store for display. Never writes. */
export class SessionLibrary {
  readonly #store: ReadableStore
  readonly #isAttached: (id: string) => boolean
  readonly #folds = new Map<string, SessionFold>()
  /** Logs that are being read, by session. */
  readonly #pendingFolds = new Map<string, Promise<void>>()
  /** Log summaries, with the head that they are for. */
  readonly #summaries = new Map<string, { key: string; told: LogSummary }>()

  constructor(store: ReadableStore, isAttached: (id: string) => boolean) {
    this.#store = store
    this.#isAttached = isAttached
  }

  /**
   * All sessions of the store, waiting ones first. Logs of changed sessions are read in this order for at most `readingMs`; the
   * other rows show what was known before.
   */
  async listRows(readingMs = 0): Promise<SessionRow[]> {
    const listed = await this.#store.list({ children: true })
    const ids = new Set(listed.map(({ id }) => id))
    for (const id of this.#summaries.keys()) if (!ids.has(id)) this.#summaries.delete(id)
    const rows = (): SessionRow[] => listed.map((entry) => this.#toRow(entry)).sort(compareStanding)
    const known = rows()
    let isRead = false
    const until = performance.now() + readingMs
    for (const { id, records: head, createdAt } of known) {
      if (performance.now() >= until) break
      // oxlint-disable-next-line no-await-in-loop -- the store is read by one at a time
      if (await this.#refreshRow({ id, head, createdAt })) isRead = true
    }
    return isRead ? rows() : known
  }

  /** The known forks of a session. */
  listForks(id: string): { sessionId: string; seq: number }[] {
    return [...this.#summaries].flatMap(([sessionId, { told }]) =>
      told.forkedFrom?.sessionId === id ? [{ sessionId, seq: told.forkedFrom.seq }] : [],
    )
  }

  /** One row, with the summary of its log or of this fold; null when the session is deleted. */
  async readRow(id: string, fold?: SessionFold): Promise<SessionRow | null> {
    const entry = isSessionId(id) ? await this.#store.get(id) : null
    if (entry === null) return null
    if (fold?.head === entry.head)
      this.#summaries.set(id, { key: toKey(entry.head, entry.createdAt), told: summarizeFold(fold) })
    await this.#refreshRow(entry)
    return this.#toRow(entry)
  }

  /** Reads the summary of a log, unless it is known. */
  async #refreshRow({
    id,
    head,
    createdAt,
  }: Pick<ListedSession, 'id' | 'head' | 'createdAt'>): Promise<boolean> {
    const key = toKey(head, createdAt)
    if (this.#summaries.get(id)?.key === key) return false
    this.#summaries.set(id, { key, told: await this.#readFromLog(id) })
    return true
  }

  async #readFromLog(id: string): Promise<LogSummary> {
    try {
      if (this.#folds.has(id)) return summarizeFold(await this.readFold(id))
      const standing = await readSessionAt(this.#store, id)
      const [first] = await this.#store.read(id, { to: 1 })
      return summarizeLog(standing, first && readOrigin(first, id))
    } catch (error) {
      if (!(error instanceof StoreError) || error.code === 'store_unavailable') throw error
      return { ...unreadSummary, problem: error.message }
    }
  }

  /**
   * A session's folded log, up to its current end.
   * @throws {StoreError} `unknown_session`, `store_unavailable`
   */
  readFold(id: string): Promise<SessionFold> {
    // One after the other: a later request reads only what was written since.
    const fold = (this.#pendingFolds.get(id) ?? Promise.resolve()).then(() => this.#refreshFold(id))
    const done = fold.then(ignore, ignore).finally(() => {
      if (this.#pendingFolds.get(id) === done) this.#pendingFolds.delete(id)
    })
    this.#pendingFolds.set(id, done)
    return fold
  }

  /**
   * The end of a session's log from its last snapshot, which is fast for logs of any length. The whole log when it is known, or
   * has no snapshot.
   * @throws {StoreError} `unknown_session`, `store_unavailable`
   */
  async readEnd(id: string): Promise<SessionFold> {
    if (!isSessionId(id)) throw unknownSessionError(id)
    if (this.#folds.has(id)) return this.readFold(id)
    const records = await this.#store.read(id, { from: 'snapshot' })
    if (records[0]?.type !== 'snapshot' || records[0].seq === 1) return this.readFold(id)
    const [first] = await this.#store.read(id, { to: 1 })
    const fold = new SessionFold(id, records, first && readOrigin(first, id))
    await fold.addRecords(records)
    return fold.problem ? this.readFold(id) : fold
  }

  /** A session's folded log for counting visits; null when it cannot be read. It is not kept. */
  async readForCounting(id: string): Promise<SessionFold | null> {
    try {
      if (this.#folds.has(id)) return await this.readFold(id)
      const fold = new SessionFold(id)
      await fold.addRecords(await this.#store.read(id))
      return fold
    } catch (error) {
      if (error instanceof StoreError && error.code !== 'store_unavailable') return null
      throw error
    }
  }

  /** Prefetches a log, as `rest` allows; false when it was stopped. */
  async prefetch(id: string, rest: () => Promise<boolean>): Promise<boolean> {
    const isAsked = (): boolean => this.#folds.has(id) || this.#pendingFolds.has(id)
    if (isAsked()) return true
    const fold = new SessionFold(id)
    const isWhole = await fold.addRecords(await this.#store.read(id), async () => !isAsked() && rest())
    if (isAsked()) return true
    if (isWhole && fold.head > 0) this.#keepFold(id, fold)
    return isWhole
  }

  async #refreshFold(id: string): Promise<SessionFold> {
    if (!isSessionId(id)) throw unknownSessionError(id)
    const known = this.#folds.get(id)
    const { head, check, problem } = known ?? { head: 0, check: '', problem: null }
    // Read from the last known record, whose check shows whether the log was replaced. A log with a problem is read whole.
    const isWhole = head === 0 || problem !== null
    const records = await this.#store.read(id, { from: isWhole ? 1 : head })
    if (known && !isWhole && records[0]?.check === check) {
      await known.addRecords(records.slice(1))
      return this.#keepFold(id, known)
    }
    if (known?.hasRead(records)) return this.#keepFold(id, known)
    this.#folds.delete(id)
    const whole = isWhole ? records : await this.#store.read(id)
    if (whole.length === 0) throw unknownSessionError(id)
    const fold = new SessionFold(id)
    await fold.addRecords(whole)
    return this.#keepFold(id, fold)
  }

  /** Keeps a fold as the most recently used one. */
  #keepFold(id: string, fold: SessionFold): SessionFold {
    this.#folds.delete(id)
    this.#folds.set(id, fold)
    const [oldest = id] = this.#folds.keys()
    if (this.#folds.size > maxFolds) this.#folds.delete(oldest)
    return fold
  }

  #toRow({ id, createdAt, updatedAt, head, summary, holder }: ListedSession): SessionRow {
    const known = this.#summaries.get(id)
    const isNow = known?.key === toKey(head, createdAt)
    const told = isNow
      ? known.told
      : summary
        ? { ...(known?.told ?? unreadSummary), ...pickSummary(summary) }
        : unreadSummary
    const isAttached = this.#isAttached(id)
    return {
      id,
      name: summary?.name === undefined ? null : toShownText(summary.name, 200),
      standing: toStanding(told, holder !== null || isAttached),
      ...told,
      // What a rename gives is in no log.
      title: summary ? toShownText(summary.title, 200) : told.title,
      createdAt,
      updatedAt,
      records: head,
      holder: holder === null ? null : toShownText(holder, 200),
      isAttached,
    }
  }
}

/** A deleted and recreated session has another key. */
const toKey = (head: number, createdAt: number): string => `${head} ${createdAt}`

const unreadSummary: LogSummary = {
  state: null,
  reason: null,
  wakeAt: null,
  title: '',
  steps: null,
  tokens: 0,
  cost: null,
  problem: null,
  forkedFrom: null,
}

function pickSummary({
  state,
  reason,
  wakeAt,
  title,
  totalTokens,
  cost,
}: NonNullable<ListedSession['summary']>) {
  return { state, reason, wakeAt: wakeAt ?? null, title: toShownText(title, 200), tokens: totalTokens, cost }
}

function readOrigin(first: LogRecord, id: string): Origin {
  const opened = openRecord(first, 0, id)
  return opened.type === 'opened' ? opened.forkedFrom : undefined
}

function summarizeFold({ now, origin, problem }: SessionFold): LogSummary {
  return { ...summarizeLog(now.standing, origin), problem: problem?.message ?? null }
}

const ignore = (): void => undefined

/** Summarizes a log. */
function summarizeLog(standing: Readonly<FoldedSession>, origin: Origin): LogSummary {
  const context = standing.run?.context ?? null
  const messages = context ? maskMessages(context) : standing.state.messages
  const usage = context?.usage.session ?? standing.state.usage
  return {
    state: context === null ? null : (context.state ?? 'RUNNING'),
    reason: context?.reason ?? null,
    wakeAt: context?.reason === 'sleeping' ? context.wakeAt : null,
    title: toShownText(standing.name ?? createTitle(messages), 200),
    steps: context?.steps ?? 0,
    tokens: usage.totalTokens,
    cost: usage.cost,
    problem: null,
    forkedFrom: origin ? { sessionId: origin.sessionId, seq: origin.seq } : null,
  }
}

function toStanding(
  { state, reason, problem }: Pick<LogSummary, 'state' | 'reason' | 'problem'>,
  isHeld: boolean,
): SessionRow['standing'] {
  if (problem !== null) return 'damaged'
  if (state === 'PAUSED' && reason === 'sleeping') return 'sleeping'
  switch (state as AgentState | null) {
    case 'WAITING_FOR_INPUT':
    case 'PAUSED':
      return 'waiting'
    case 'RUNNING':
    case 'WAITING_FOR_TOOL':
      return isHeld ? 'running' : 'interrupted'
    default:
      return isHeld && state === null ? 'running' : 'ended'
  }
}

const standingOrder: readonly SessionRow['standing'][] = [
  'waiting',
  'running',
  'interrupted',
  'sleeping',
  'ended',
  'damaged',
]

/** Waiting sessions first, then the last written. */
function compareStanding(a: SessionRow, b: SessionRow): number {
  return standingOrder.indexOf(a.standing) - standingOrder.indexOf(b.standing) || b.updatedAt - a.updatedAt
}

/** The problem of a store as a sentence. */
export function describeProblem(error: unknown): string {
  return toShownText(describeError(error), 600)
}
