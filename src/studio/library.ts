import type { AgentState } from '../../machines/agent/run-result.js'
import { maskMessages } from '../../machines/agent/uncleared-input.js'
import { messageText } from '../core/format/message-text.js'
import { shorten } from '../core/format/words.js'
import { describeError } from '../core/base/describe-error.js'
import { standingAt } from '../core/sessions/replay.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import type { ListedSession, LogRecord, SessionStore } from '../core/sessions/store/store.js'
import { unknownSession } from '../core/sessions/store/refusals.js'
import { openRecord } from '../core/sessions/log/log-record.js'
import type { Standing } from '../core/sessions/standing.js'
import { type Origin, SessionFold } from './fold.js'
import type { SessionRow } from './protocol.js'
import { shownText } from './shown.js'

/** Logs that are kept folded: those looked at last. */
const mostFolds = 24

/** What of a row only the log tells. */
type FromLog = Pick<
  SessionRow,
  'state' | 'reason' | 'title' | 'steps' | 'tokens' | 'cost' | 'problem' | 'forkedFrom'
>

/** The sessions of a store, as they are shown. Reads, and never writes. */
export class Library {
  readonly #store: SessionStore
  readonly #isAttached: (id: string) => boolean
  readonly #folds = new Map<string, SessionFold>()
  /** Logs that are being read. */
  readonly #folding = new Map<string, Promise<void>>()
  /** What logs told when they ended with this record. */
  readonly #told = new Map<string, { key: string; told: FromLog }>()

  constructor(store: SessionStore, isAttached: (id: string) => boolean) {
    this.#store = store
    this.#isAttached = isAttached
  }

  /**
   * All that the store lists, waiting ones first. What only logs tell is read for those that were written since, in that
   * order, as long as there is time (in milliseconds); of the others it is as it was known.
   */
  async rows(readingMs = 0): Promise<SessionRow[]> {
    const listed = await this.#store.list()
    const ids = new Set(listed.map(({ id }) => id))
    for (const id of this.#told.keys()) if (!ids.has(id)) this.#told.delete(id)
    const rows = (): SessionRow[] => listed.map((entry) => this.#rowOf(entry)).sort(byStanding)
    const known = rows()
    let isRead = false
    const until = performance.now() + readingMs
    for (const { id, records: head, createdAt } of known) {
      if (performance.now() >= until) break
      // oxlint-disable-next-line no-await-in-loop -- the store is read by one at a time
      if (await this.#tell({ id, head, createdAt })) isRead = true
    }
    return isRead ? rows() : known
  }

  /** Sessions that are forks of this one, as far as their logs were read. */
  forksOf(id: string): { sessionId: string; seq: number }[] {
    return [...this.#told].flatMap(([sessionId, { told }]) =>
      told.forkedFrom?.sessionId === id ? [{ sessionId, seq: told.forkedFrom.seq }] : [],
    )
  }

  /** One row with what its log tells, or what this fold of it tells already; null: it is gone. */
  async row(id: string, fold?: SessionFold): Promise<SessionRow | null> {
    const entry = isSessionId(id) ? await this.#store.get(id) : null
    if (entry === null) return null
    if (fold?.head === entry.head)
      this.#told.set(id, { key: keyOf(entry.head, entry.createdAt), told: toldBy(fold) })
    await this.#tell(entry)
    return this.#rowOf(entry)
  }

  /** Reads what only the log tells, unless that is known. */
  async #tell({ id, head, createdAt }: Pick<ListedSession, 'id' | 'head' | 'createdAt'>): Promise<boolean> {
    const key = keyOf(head, createdAt)
    if (this.#told.get(id)?.key === key) return false
    this.#told.set(id, { key, told: await this.#read(id) })
    return true
  }

  async #read(id: string): Promise<FromLog> {
    try {
      if (this.#folds.has(id)) return toldBy(await this.fold(id))
      const standing = await standingAt(this.#store, id)
      const [first] = await this.#store.read(id, { to: 1 })
      return fromLog(standing, first && originIn(first, id))
    } catch (error) {
      if (!(error instanceof StoreError) || error.code === 'store_unavailable') throw error
      return { ...unread, problem: error.message }
    }
  }

  /**
   * A session's log, read as far as it goes.
   * @throws {StoreError} `unknown_session`, `store_unavailable`
   */
  fold(id: string): Promise<SessionFold> {
    // One after the other: who asks while it is read gets what comes of that, and what has been written since.
    const fold = (this.#folding.get(id) ?? Promise.resolve()).then(() => this.#folded(id))
    const done = fold.then(nothing, nothing).finally(() => {
      if (this.#folding.get(id) === done) this.#folding.delete(id)
    })
    this.#folding.set(id, done)
    return fold
  }

  /**
   * The end of a session's log, from its last snapshot on, which is there at once however long the log is; all of it
   * where that is known, or has no snapshot.
   * @throws {StoreError} `unknown_session`, `store_unavailable`
   */
  async end(id: string): Promise<SessionFold> {
    if (!isSessionId(id)) throw unknownSession(id)
    if (this.#folds.has(id)) return this.fold(id)
    const records = await this.#store.read(id, { from: 'snapshot' })
    if (records[0]?.type !== 'snapshot' || records[0].seq === 1) return this.fold(id)
    const [first] = await this.#store.read(id, { to: 1 })
    const fold = new SessionFold(id, records, first && originIn(first, id))
    await fold.add(records)
    return fold.problem ? this.fold(id) : fold
  }

  /** How often a session took or entered what the chart has; null: it cannot be read. It is not kept for this. */
  async passing(id: string): Promise<SessionFold | null> {
    try {
      if (this.#folds.has(id)) return await this.fold(id)
      const fold = new SessionFold(id)
      await fold.add(await this.#store.read(id))
      return fold
    } catch (error) {
      if (error instanceof StoreError && error.code !== 'store_unavailable') return null
      throw error
    }
  }

  /** Reads a log before anybody asks for it, as `rest` lets it; false: it was told to stop. */
  async ahead(id: string, rest: () => Promise<boolean>): Promise<boolean> {
    const isAsked = (): boolean => this.#folds.has(id) || this.#folding.has(id)
    if (isAsked()) return true
    const fold = new SessionFold(id)
    const isWhole = await fold.add(await this.#store.read(id), async () => !isAsked() && rest())
    if (isAsked()) return true
    if (isWhole && fold.head > 0) this.#keep(id, fold)
    return isWhole
  }

  async #folded(id: string): Promise<SessionFold> {
    if (!isSessionId(id)) throw unknownSession(id)
    const known = this.#folds.get(id)
    const { head, check, problem } = known ?? { head: 0, check: '', problem: null }
    // The last record once more: it tells whether this is still the same log. One that ended in a fault is looked at whole.
    const isWhole = head === 0 || problem !== null
    const records = await this.#store.read(id, { from: isWhole ? 1 : head })
    if (known && !isWhole && records[0]?.check === check) {
      await known.add(records.slice(1))
      return this.#keep(id, known)
    }
    if (known?.isOf(records)) return this.#keep(id, known)
    this.#folds.delete(id)
    const whole = isWhole ? records : await this.#store.read(id)
    if (whole.length === 0) throw unknownSession(id)
    const fold = new SessionFold(id)
    await fold.add(whole)
    return this.#keep(id, fold)
  }

  /** A log that is followed record by record is not read again for this. */
  #keep(id: string, fold: SessionFold): SessionFold {
    this.#folds.delete(id)
    this.#folds.set(id, fold)
    const [oldest = id] = this.#folds.keys()
    if (this.#folds.size > mostFolds) this.#folds.delete(oldest)
    return fold
  }

  #rowOf({ id, createdAt, updatedAt, head, summary, holder }: ListedSession): SessionRow {
    const known = this.#told.get(id)
    const isNow = known?.key === keyOf(head, createdAt)
    const told = isNow
      ? known.told
      : summary
        ? { ...(known?.told ?? unread), ...fromSummary(summary) }
        : unread
    const isAttached = this.#isAttached(id)
    return {
      id,
      name: summary?.name === undefined ? null : shownText(summary.name, 200),
      standing: standingOf(told, holder !== null || isAttached),
      ...told,
      createdAt,
      updatedAt,
      records: head,
      holder: holder === null ? null : shownText(holder, 200),
      isAttached,
    }
  }
}

/** A store that counts its records anew has another session. */
const keyOf = (head: number, createdAt: number): string => `${head} ${createdAt}`

const unread: FromLog = {
  state: null,
  reason: null,
  title: '',
  steps: null,
  tokens: 0,
  cost: null,
  problem: null,
  forkedFrom: null,
}

function fromSummary({ state, reason, title, totalTokens, cost }: NonNullable<ListedSession['summary']>) {
  return { state, reason, title: shownText(title, 200), tokens: totalTokens, cost }
}

function originIn(first: LogRecord, id: string): Origin {
  const opened = openRecord(first, 0, id)
  return opened.type === 'opened' ? opened.forkedFrom : undefined
}

function toldBy({ now, origin, problem }: SessionFold): FromLog {
  return { ...fromLog(now.standing, origin), problem: problem?.message ?? null }
}

const nothing = (): void => undefined

/** A row as its log tells it. */
function fromLog(standing: Readonly<Standing>, origin: Origin): FromLog {
  const context = standing.run?.context ?? null
  const messages = context ? maskMessages(context) : standing.state.messages
  const said = messages.findLast((message) => message.role === 'user' && !message.internal)
  const usage = context?.usage.session ?? standing.state.usage
  return {
    state: context === null ? null : (context.state ?? 'RUNNING'),
    reason: context?.reason ?? null,
    title: said ? shownText(shorten(messageText(said), 120)) : '',
    steps: context?.steps ?? 0,
    tokens: usage.totalTokens,
    cost: usage.cost,
    problem: null,
    forkedFrom: origin ? { sessionId: origin.sessionId, seq: origin.seq } : null,
  }
}

function standingOf(
  { state, problem }: Pick<FromLog, 'state' | 'problem'>,
  isHeld: boolean,
): SessionRow['standing'] {
  if (problem !== null) return 'damaged'
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

const order: readonly SessionRow['standing'][] = ['waiting', 'running', 'interrupted', 'ended', 'damaged']

/** Those that wait for somebody first, and among equals the one written last. */
function byStanding(a: SessionRow, b: SessionRow): number {
  return order.indexOf(a.standing) - order.indexOf(b.standing) || b.updatedAt - a.updatedAt
}

/** What is wrong with a store, in a sentence. */
export function problemOf(error: unknown): string {
  return shownText(describeError(error), 600)
}
