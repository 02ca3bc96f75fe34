import type { AgentState } from '../../machines/agent/outcome.js'
import { shownMessages } from '../../machines/agent/unscreened.js'
import { messageText } from '../core/format/message-text.js'
import { shorten } from '../core/format/words.js'
import { describeError } from '../core/base/describe-error.js'
import { standingAt } from '../core/sessions/replay.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { unknownSession } from '../core/sessions/refusals.js'
import { openRecord } from '../core/sessions/log/log-record.js'
import type { Standing } from '../core/sessions/standing.js'
import { SessionFold } from './fold.js'
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
    const until = performance.now() + readingMs
    const listed = await this.#store.list()
    const ids = new Set(listed.map(({ id }) => id))
    for (const id of this.#told.keys()) if (!ids.has(id)) this.#told.delete(id)
    const rows = (): SessionRow[] => listed.map((entry) => this.#rowOf(entry)).sort(byStanding)
    const known = rows()
    let isRead = false
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

  /** One row with what its log tells; null: it is gone. */
  async row(id: string): Promise<SessionRow | null> {
    const entry = isSessionId(id) ? await this.#store.get(id) : null
    if (entry === null) return null
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
      if (this.#folds.has(id)) {
        const { now, problem, origin } = await this.fold(id)
        return { ...fromLog(now.standing, origin), problem: problem?.message ?? null }
      }
      const standing = await standingAt(this.#store, id)
      const [first] = await this.#store.read(id, { to: 1 })
      const opened = first && openRecord(first, 0, id)
      return fromLog(standing, opened?.type === 'opened' ? opened.forkedFrom : undefined)
    } catch (error) {
      if (!(error instanceof StoreError) || error.code === 'store_unavailable') throw error
      return { ...unread, problem: error.message }
    }
  }

  /**
   * A session's log, read as far as it goes.
   * @throws {StoreError} `unknown_session`, `store_unavailable`
   */
  async fold(id: string): Promise<SessionFold> {
    if (!isSessionId(id)) throw unknownSession(id)
    const known = this.#folds.get(id)
    const { head, check, problem } = known ?? { head: 0, check: '', problem: null }
    // The last record once more: it tells whether this is still the same log. One that ended in a fault is looked at whole.
    const isWhole = head === 0 || problem !== null
    const records = await this.#store.read(id, { from: isWhole ? 1 : head })
    if (known && !isWhole && records[0]?.check === check) {
      // Somebody else may have asked at the same time.
      known.add(records.filter(({ seq }) => seq > known.head))
      return this.#keep(id, known)
    }
    if (known?.isOf(records)) return this.#keep(id, known)
    this.#folds.delete(id)
    const whole = isWhole ? records : await this.#store.read(id)
    if (whole.length === 0) throw unknownSession(id)
    const fold = new SessionFold(id)
    fold.add(whole)
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

/** A row as its log tells it. */
function fromLog(standing: Readonly<Standing>, origin: SessionFold['origin']): FromLog {
  const context = standing.run?.context ?? null
  const messages = context ? shownMessages(context) : standing.state.messages
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
