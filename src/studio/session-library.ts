import { findDueTime } from '../../machines/agent/due-times.js'
import type { AgentState } from '../../machines/agent/run-result.js'
import { getListedTitle } from '../core/sessions/session-summary.js'
import { describeError } from '../core/base/errors.js'
import { runInTurn } from '../core/base/maybe-promise.js'
import { yieldToEventLoop } from '../core/base/platform.js'
import type { FoldedSession } from '../core/sessions/fold-session.js'
import { readSessionAt } from '../core/sessions/replay-session.js'
import type { ListOptions } from '../core/sessions/store/list-options.js'
import type { SessionTags } from '../core/sessions/store/session-tags.js'
import { StoreError, unknownSessionError } from '../core/sessions/store/store-error.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import type { ListedSession, LogRecord } from '../core/sessions/store/store.js'
import { isMachineSession, readMachineRecord } from '../core/sessions/log/machine-record.js'
import type { ReadableStore } from './embedded-actors.js'
import { type Origin, readOpening, SessionFold } from './session-fold.js'
import { getOwnUsage, type Moment } from './session-step.js'
import {
  KeptDigests,
  listLogFacts,
  type LogFacts,
  type LogSummary,
  noFacts,
  type ReadLog,
} from './kept-digests.js'
import type { sessionStatuses } from './session-query.js'
import { toShownText } from './shown-values.js'

const maxFolds = 24

/** Only the latest records of a machine are shown. */
const maxMachineRecords = 500

/** Number of log ends to keep, and the number of new records after which an end is read again from a later snapshot. */
const maxEnds = 8
const mostSince = 100

/** Reads the sessions in a store for display. Writes nothing but log digests. */
export class SessionLibrary {
  readonly #store: ReadableStore
  readonly #isAttached: (id: string) => boolean
  readonly #folds = new Map<string, SessionFold>()
  readonly #ends = new Map<string, SessionFold>()
  readonly #pendingFolds = new Map<string, Promise<unknown>>()
  /** Log summaries, with the log version that they describe. */
  readonly #summaries = new Map<string, { key: string; logSummary: LogSummary }>()
  readonly #facts = new Map<string, LogFacts & { key: string }>()
  readonly #kept: KeptDigests
  /** Ends of logs that are being read. Whole logs are read only after these. */
  readonly #pendingEnds = new Set<Promise<boolean>>()

  constructor(store: ReadableStore, isAttached: (id: string) => boolean) {
    this.#store = store
    this.#isAttached = isAttached
    this.#kept = new KeptDigests(async () => (await store.openDigests?.()) ?? null)
  }

  /** One page of the store's list, including sub-agents, most recently written first. Does not read logs. */
  async listPage(options: ListOptions): Promise<SessionRow[]> {
    const listed = await this.#store.list({ children: true, ...options })
    // Embedded actors come from another store.
    const sorted = listed.toSorted((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1))
    const page = sorted.slice(0, options.limit)
    await this.#findKept(page)
    return page.map((entry) => this.#toRow(entry))
  }

  async #findKept(page: readonly ListedSession[]): Promise<void> {
    const places = page.filter(
      ({ id, head, createdAt, holder }) =>
        holder === null && this.#facts.get(id)?.key !== toReadKey(head, createdAt),
    )
    for (const { id, head, createdAt, log } of await this.#kept.find(places))
      this.#learn(id, toReadKey(head, createdAt), log)
  }

  #learn(id: string, key: string, { facts, logSummary }: ReadLog): void {
    this.#facts.set(id, { ...facts, key })
    this.#summaries.set(id, { key, logSummary })
  }

  listForks(id: string): { sessionId: string; seq: number }[] {
    return [...this.#summaries].flatMap(([sessionId, { logSummary }]) =>
      logSummary.forkedFrom?.sessionId === id ? [{ sessionId, seq: logSummary.forkedFrom.seq }] : [],
    )
  }

  /** One row, with a summary of its log or of this fold. Null if the session was deleted. */
  async readRow(id: string, fold?: SessionFold): Promise<SessionRow | null> {
    const entry = isSessionId(id) ? await this.#store.get(id) : null
    if (entry === null) return null
    const key = toReadKey(entry.head, entry.createdAt)
    const isKnown = this.#summaries.get(id)?.key === key
    // The end of a log does not contain the steps of earlier runs.
    if (fold?.head === entry.head && (fold.base === 0 || !isKnown))
      this.#summaries.set(id, { key, logSummary: summarizeFold(fold) })
    else if (!isKnown) {
      const isMachine = isMachineSession(entry)
      const logSummary = await (isMachine ? this.#checkMachine(id, 'snapshot') : this.#readFromLog(id))
      this.#summaries.set(id, { key, logSummary })
    }
    return this.#toRow(entry)
  }

  /** One row, without reading its log. Null if the session was deleted. */
  async findRow(id: string): Promise<SessionRow | null> {
    const entry = isSessionId(id) ? await this.#store.get(id) : null
    return entry && this.#toRow(entry)
  }

  /** Searchable facts as of the last read, with the version of the log. Null if the log has not been read. */
  findFacts(id: string): (LogFacts & { key: string }) | null {
    return this.#facts.get(id) ?? null
  }

  /** Null if the session was deleted. `rest` is awaited between batches of records. */
  async readFacts(id: string, rest?: () => Promise<boolean>): Promise<SessionRow | null> {
    const row = await this.findRow(id)
    if (row === null) return null
    const { records: head, createdAt, holder } = row
    const key = toReadKey(head, createdAt)
    if (row.value !== null) {
      this.#learn(id, key, { facts: noFacts, logSummary: await this.#checkMachine(id, 1) })
      return this.findRow(id)
    }
    const fold = await this.readForCounting(id, rest)
    const facts = fold ? listLogFacts(fold) : noFacts
    if (fold?.head !== head) {
      this.#facts.set(id, { ...facts, key })
      if (fold?.problem) this.#summaries.set(id, { key, logSummary: summarizeFold(fold) })
      return this.readRow(id)
    }
    const log = { facts, logSummary: summarizeFold(fold) }
    this.#learn(id, key, log)
    if (holder === null) await this.#kept.keep({ id, head, createdAt }, log)
    return this.findRow(id)
  }

  /**
   * The session after a record, from which a fork of it starts.
   * @throws {StoreError} `unknown_session`, `corrupt_log`
   * @throws {UsageError} `invalid_option` for a record that does not exist
   */
  async readAt(id: string, seq: number): Promise<FoldedSession> {
    if (!isSessionId(id)) throw unknownSessionError(id)
    return readSessionAt(this.#store, id, seq)
  }

  /** The latest records of a machine. @throws {StoreError} `corrupt_log`, `newer_log`, `unknown_session` */
  async readMachine(id: string, from: 'snapshot' | 1 = 1) {
    const latest = (await this.#store.read(id, { from })).slice(-maxMachineRecords)
    const records = latest.map((record) => ({
      ...readMachineRecord(record, id),
      seq: record.seq,
      at: record.at,
    }))
    const last = records.at(-1)
    if (last === undefined) throw unknownSessionError(id)
    return { last, records }
  }

  flushKept(): Promise<void> {
    return this.#kept.flush()
  }

  forget(id: string): void {
    this.#summaries.delete(id)
    this.#facts.delete(id)
  }

  async #readFromLog(id: string): Promise<LogSummary> {
    try {
      if (this.#folds.has(id)) return summarizeFold(await this.readFold(id))
      const session = await readSessionAt(this.#store, id)
      const opening = await this.#store.read(id, { to: 2 })
      const [last] = await this.#store.read(id, { from: session.head })
      const duration = Math.max(0, (last?.at ?? 0) - (opening[0]?.at ?? 0))
      return { ...summarizeLog({ session, ...readOpening(opening, id) }), duration }
    } catch (error) {
      if (!isLogFault(error)) throw error
      if (error.code !== 'unknown_session') return summarizeFold(await this.readFold(id))
      return { ...unreadSummary, problem: error.message }
    }
  }

  /** A machine's log has no steps to summarize, but it may be damaged. */
  async #checkMachine(id: string, from: 'snapshot' | 1): Promise<LogSummary> {
    try {
      await this.readMachine(id, from)
      return unreadSummary
    } catch (error) {
      if (!isLogFault(error)) throw error
      return { ...unreadSummary, problem: describeProblem(error) }
    }
  }

  /** @throws {StoreError} `unknown_session`, `store_unavailable` */
  readFold(id: string): Promise<SessionFold> {
    // Sequential, so that a later request reads only new records.
    return runInTurn(this.#pendingFolds, id, () => this.#refreshFold(id))
  }

  /**
   * From the last snapshot on, which is fast, or the whole log if it is known or has no snapshot.
   * @throws {StoreError} `unknown_session`, `store_unavailable`
   */
  async readEnd(id: string): Promise<SessionFold> {
    if (!isSessionId(id)) throw unknownSessionError(id)
    if (this.#folds.has(id)) return this.readFold(id)
    const fold = (await this.#takeEnd(id)) ?? (await this.#loadEnd(id))
    return fold === null || fold.problem ? this.readFold(id) : fold
  }

  async prefetchEnd(id: string): Promise<void> {
    if (this.#folds.has(id) || this.#ends.has(id)) return
    const fold = await this.#loadEnd(id)
    if (fold && !fold.problem) keepLast(this.#ends, { id, fold, most: maxEnds })
  }

  /** Null without a prefetched end, or if too many records followed it. Each end is returned once. */
  async #takeEnd(id: string): Promise<SessionFold | null> {
    const known = this.#ends.get(id)
    if (!known) return null
    this.#ends.delete(id)
    const [at, ...since] = await this.#store.read(id, { from: known.head })
    if (at?.check !== known.getCheck() || since.length > mostSince) return null
    return this.#addToEnd(known, since)
  }

  /** Null without a snapshot, or if the snapshot is the whole log. */
  async #loadEnd(id: string): Promise<SessionFold | null> {
    const records = await this.#store.read(id, { from: 'snapshot' })
    if (records[0]?.type !== 'snapshot' || records[0].seq === 1) return null
    const opening = await this.#store.read(id, { to: 2 })
    return this.#addToEnd(new SessionFold(id, records, opening), records)
  }

  async #addToEnd(fold: SessionFold, records: readonly LogRecord[]): Promise<SessionFold> {
    const reading = fold.addRecords(records)
    this.#pendingEnds.add(reading)
    await reading.finally(() => this.#pendingEnds.delete(reading))
    return fold
  }

  /** Not cached. Null if the log cannot be read. */
  async readForCounting(id: string, rest?: () => Promise<boolean>): Promise<SessionFold | null> {
    try {
      if (this.#folds.has(id)) return await this.readFold(id)
      const fold = new SessionFold(id)
      await fold.addRecords(await this.#store.read(id), rest)
      return fold
    } catch (error) {
      if (isLogFault(error)) return null
      throw error
    }
  }

  /** Returns false if `rest` stopped it. */
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
    const { head, problem } = known ?? { head: 0, problem: null }
    // The checksum of the last known record reveals whether the log was replaced. A damaged log is read whole.
    const isWhole = head === 0 || problem !== null
    const records = await this.#store.read(id, { from: isWhole ? 1 : head })
    if (known && !isWhole && records[0]?.check === known.getCheck()) {
      await known.addRecords(records.slice(1), this.#letEndsGoFirst)
      return this.#keepFold(id, known)
    }
    if (known?.hasRead(records)) return this.#keepFold(id, known)
    this.#folds.delete(id)
    const whole = isWhole ? records : await this.#store.read(id)
    if (whole.length === 0) throw unknownSessionError(id)
    const fold = new SessionFold(id)
    await fold.addRecords(whole, this.#letEndsGoFirst)
    return this.#keepFold(id, fold)
  }

  readonly #letEndsGoFirst = async (): Promise<boolean> => {
    await yieldToEventLoop()
    await Promise.all(this.#pendingEnds)
    return true
  }

  #keepFold(id: string, fold: SessionFold): SessionFold {
    this.#ends.delete(id)
    keepLast(this.#folds, { id, fold, most: maxFolds })
    return fold
  }

  #toRow(entry: ListedSession): SessionRow {
    const known = this.#summaries.get(entry.id)
    const models = [...(this.#facts.get(entry.id)?.models ?? [])]
    return toSessionRow(entry, { known, models, isAttached: this.#isAttached(entry.id) })
  }
}

export type SessionRow = ReturnType<typeof toSessionRow>

interface Known {
  known: { key: string; logSummary: LogSummary } | undefined
  models: string[]
  isAttached: boolean
}

function toSessionRow(
  { id, createdAt, updatedAt, head, summary, holder, marks = [] }: ListedSession,
  { known, models, isAttached }: Known,
) {
  const value = summary?.value ?? null
  const current = value === null && known?.key === toReadKey(head, createdAt) ? known.logSummary : null
  const earlier = known?.logSummary ?? unreadSummary
  const logSummary = current ?? (summary ? pickSummary(summary, earlier) : unreadSummary)
  return {
    id,
    name: summary?.name === undefined ? null : toShownText(summary.name, 200),
    /** `waiting` for a person, or `sleeping` until a date. */
    status: toSessionStatus({ ...logSummary, value }, holder !== null || isAttached),
    ...logSummary,
    /** The state of a `statewright/durable` machine. Null for agents. */
    value: value === null ? null : toShownText(value, 200),
    /** Milliseconds from the first record to the last. Approximate until the log has been read. */
    duration: current?.duration ?? Math.max(0, updatedAt - createdAt),
    // A rename is not in the log.
    title: toShownText(summary ? summary.title : logSummary.title, 200),
    tags: toShownTags(summary?.tags),
    /** The agent that started the latest run, as named in `defineAgents`. */
    agent: summary?.agent === undefined ? null : toShownText(summary.agent, 200),
    /** The models that answered. Empty until the log has been read. */
    models,
    /** The session that called this sub-agent. Null for other sessions. */
    parent: summary?.parent ?? findParentId(id),
    children: 0,
    marks: marks.map((mark) => ({ ...mark, note: toShownText(mark.note, 2_000) })),
    createdAt,
    updatedAt,
    records: head,
    holder: holder === null ? null : toShownText(holder, 200),
    isAttached,
  }
}

function keepLast(
  folds: Map<string, SessionFold>,
  { id, fold, most }: { id: string; fold: SessionFold; most: number },
): void {
  folds.delete(id)
  folds.set(id, fold)
  const [oldest = id] = folds.keys()
  if (folds.size > most) folds.delete(oldest)
}

/** Identifies the version of a log. A session that was deleted and created again has another key. */
export const toReadKey = (records: number, createdAt: number): string => `${records} ${createdAt}`

const unreadSummary: LogSummary = {
  state: null,
  reason: null,
  wakeAt: null,
  title: '',
  steps: null,
  duration: 0,
  failedCalls: 0,
  tokens: 0,
  cost: null,
  problem: null,
  forkedFrom: null,
  inherited: null,
}

/** An earlier summary of the log, with the current state and usage from the store. */
function pickSummary(
  { state, reason, wakeAt, totalTokens, cost }: NonNullable<ListedSession['summary']>,
  earlier: LogSummary,
): LogSummary {
  const inherited = earlier.inherited ?? { tokens: 0, cost: 0 }
  return {
    ...earlier,
    state,
    reason,
    wakeAt: wakeAt ?? null,
    tokens: totalTokens - inherited.tokens,
    cost: cost === null || inherited.cost === null ? null : cost - inherited.cost,
  }
}

function summarizeFold(fold: SessionFold): LogSummary {
  const { cost } = fold
  return {
    ...summarizeLog({ ...fold.now, origin: fold.origin }),
    duration: fold.duration,
    cost: cost.isWhole ? cost.usd : null,
    ...(fold.base === 0 && { steps: fold.steps, failedCalls: fold.failedCalls }),
    // The records after the damage are unknown.
    ...(fold.problem && { steps: null, cost: null, problem: fold.problem.message }),
  }
}

function summarizeLog({
  session,
  inherited,
  origin,
}: Omit<Moment, 'children'> & { origin: Origin }): LogSummary {
  const context = session.run?.context ?? null
  const usage = getOwnUsage({ session, inherited })
  return {
    ...unreadSummary,
    state: context === null ? null : (context.state ?? 'RUNNING'),
    reason: context?.reason ?? null,
    wakeAt: context && findDueTime(context),
    title: toShownText(getListedTitle(null, session), 200),
    // The context counts only the steps of the latest run.
    steps: session.runs > 1 ? null : (context?.steps ?? 0) - inherited.steps,
    tokens: usage.totalTokens,
    cost: usage.cost,
    forkedFrom: origin ? { sessionId: origin.sessionId, seq: origin.seq } : null,
    inherited: origin ? { tokens: inherited.session.totalTokens, cost: inherited.session.cost } : null,
  }
}

function toSessionStatus(
  row: Pick<LogSummary, 'state' | 'reason' | 'wakeAt' | 'problem'> & { value: string | null },
  isHeld: boolean,
): (typeof sessionStatuses)[number] {
  const { state, wakeAt } = row
  if (row.problem !== null) return 'damaged'
  if (row.value !== null && state === null)
    return isHeld ? 'running' : wakeAt === null ? 'waiting' : 'sleeping'
  if (state === 'PAUSED' && (wakeAt !== null || row.reason === 'sleeping')) return 'sleeping'
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

function toShownTags(tags: SessionTags = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(tags).map(([name, value]) => [toShownTag(name, 64), toShownTag(value, 200)]),
  )
}

/** Cached, because sessions share a few tags, and removing secrets from them would be half the cost of a list. */
function toShownTag(text: string, length: number): string {
  const known = shownTags.get(text)
  if (known !== undefined) return known
  const shown = toShownText(text, length)
  if (text.length > 64) return shown
  if (shownTags.size >= maxShownTags) shownTags.clear()
  shownTags.set(text, shown)
  return shown
}

const shownTags = new Map<string, string>()
const maxShownTags = 1_000

/** The id of a sub-agent starts with the id of its session. */
export function findParentId(id: string): string | null {
  return /^(.+):[\da-f]{12}\.\d+\.\d+$/.exec(id)?.[1] ?? null
}

/** The fault of one log, as opposed to the whole store. */
const isLogFault = (error: unknown): error is StoreError =>
  error instanceof StoreError && error.code !== 'store_unavailable'

export function describeProblem(error: unknown): string {
  return toShownText(describeError(error), 600)
}
