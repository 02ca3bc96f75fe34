import { setTimeout as sleep } from 'node:timers/promises'
import { type AgentState, failedStates } from '../../machines/agent/run-result.js'
import { UsageError } from '../core/base/errors.js'
import { yieldToEventLoop } from '../core/base/platform.js'
import { getOrCreate } from '../core/base/values.js'
import type { LogFacts } from './kept-digests.js'
import type { CostSum } from './costs.js'
import { type SessionLibrary, type SessionRow, toReadKey } from './session-library.js'
import {
  facetKeys,
  type Findable,
  type ListRequest,
  normalizeText,
  type QueryKey,
  readQuery,
  type SessionQuery,
  type SessionSort,
  sessionSorts,
  sessionStatuses,
} from './session-query.js'

/** One object per value that sessions share, such as a tool, makes counting cheap. */
interface Facet {
  readonly key: QueryKey
  readonly term: string
  sessions: number
  found: number
  round: number
}

type Terms = Partial<Record<QueryKey, readonly string[]>>

const maxFacets = 50

class FacetCounts {
  readonly #facets = new Map<string, Facet>()
  #round = 0

  add(terms: Terms): Facet[] {
    return facetKeys.flatMap((key) =>
      (terms[key] ?? []).map((term) => {
        const create = (): Facet => ({ key, term, sessions: 0, found: 0, round: 0 })
        const facet = getOrCreate(this.#facets, `${key}:${term}`, create)
        facet.sessions += 1
        return facet
      }),
    )
  }

  remove(facets: readonly Facet[]): void {
    for (const facet of facets) {
      facet.sessions -= 1
      if (facet.sessions === 0) this.#facets.delete(`${facet.key}:${facet.term}`)
    }
  }

  count(found: readonly { facets: readonly Facet[] }[]) {
    const round = (this.#round += 1)
    const counted: Facet[] = []
    for (const { facets } of found) {
      for (const facet of facets) {
        if (facet.round !== round) {
          Object.assign(facet, { round, found: 0 })
          counted.push(facet)
        }
        facet.found += 1
      }
    }
    const counts: Partial<Record<QueryKey, [value: string, count: number][]>> = {}
    for (const { key, term, found: count } of counted.sort((a, b) => b.found - a.found)) {
      const ofKey = (counts[key] ??= [])
      if (ofKey.length < maxFacets) ofKey.push([term, count])
    }
    return counts
  }
}

const maxDays = 30

export interface DayView {
  /** `2026-11-26`, in UTC. */
  day: string
  sessions: number
  cost: CostSum
  /** Number of failed sessions by reason. */
  failures: Record<string, number>
}

/** Why a session failed: it ended without an answer, a guard halted it, or its log is damaged. */
function findFailure({ state, reason, wakeAt, status }: SessionRow): string | null {
  if (status === 'damaged') return 'damaged'
  const isHalted = state === 'PAUSED' && reason !== 'paused' && wakeAt === null
  return isHalted || failedStates.has(state) ? (reason ?? 'unknown') : null
}

/** Cost and failures per UTC day over the last 30 days with a session. */
function countDays(found: readonly { row: SessionRow }[]): DayView[] {
  const dayMs = 86_400_000
  const days = new Map<number, DayView>()
  let newest = -Infinity
  for (const { row } of found) newest = Math.max(newest, Math.floor(row.updatedAt / dayMs))
  if (newest === -Infinity) return []
  for (const { row } of found) {
    const number = Math.floor(row.updatedAt / dayMs)
    // The cost of a sub-agent is included in the cost of its session.
    if (number <= newest - maxDays || row.parent !== null) continue
    const day = getOrCreate(days, number, () => createDay(number * dayMs))
    day.sessions += 1
    // If some usage of a session has no price, the row does not contain the cost of the rest.
    if (row.cost !== null) day.cost.usd += row.cost
    else if (row.tokens > 0) day.cost.isWhole = false
    const failure = findFailure(row)
    if (failure !== null) day.failures[failure] = (day.failures[failure] ?? 0) + 1
  }
  if (days.size === 0) return []
  const first = newest - maxDays + 1
  return Array.from({ length: maxDays }, (_, i) => days.get(first + i) ?? createDay((first + i) * dayMs))
}

const createDay = (at: number): DayView => ({
  day: new Date(at).toISOString().slice(0, 10),
  sessions: 0,
  cost: { usd: 0, isWhole: true },
  failures: {},
})

/** Number of sessions per status to list first. A store with fewer sessions counts as small. */
const firstListed = 200
/** States of sessions that have not ended. They are listed first. */
const openStates: readonly AgentState[][] = [
  ['WAITING_FOR_INPUT'],
  ['PAUSED'],
  ['RUNNING', 'WAITING_FOR_TOOL'],
]
/** The page size for all other sessions. Requests are served between two pages. */
const pageSize = 500
/** A full listing finds deleted and renamed sessions. It rests for this multiple of its time, at most these ms. */
const [sweepRest, longestRestMs] = [20, 60_000]
/** The maximum time in milliseconds by which a write may appear in the list after later writes. */
const overlapMs = 2_000
/** Maximum time that a request waits for a large store, in milliseconds. */
const patienceMs = 150
/** More simultaneous changes than this are reported as one. */
const maxReported = 200
/** Up to this many sessions, each log that was read is reported separately. */
const maxSingleReports = 3_000
/** Milliseconds of reading in the background before requests are served, and between two reports of progress. */
const [readingStretchMs, reportingMs] = [40, 1_000]
const maxRows = 500

interface Entry extends Findable {
  row: SessionRow
  facets: readonly Facet[]
  isUnread: boolean
}

export type FoundSessions = ReturnType<SessionCatalogue['find']>

/** Listed data is available at once, data from logs (messages, tools, models, guards) once they have been read. */
export class SessionCatalogue {
  readonly library: SessionLibrary
  onChange: (changed: readonly SessionRow[], gone: readonly string[]) => void = () => undefined
  /** There are too many changes to report individually, so the list must be requested again. */
  onMore: () => void = () => undefined
  readonly #entries = new Map<string, Entry>()
  readonly #childCounts = new Map<string, number>()
  readonly #facets = new FacetCounts()
  readonly #orders = new Map<SessionSort, { entries: Entry[]; isSorted: boolean }>()
  #newest = 0
  #sweepAt = -Infinity
  #isWhole = false
  /** Resolves to whether the store may have more sessions than the first page shows. */
  #beginning: Promise<boolean> | undefined
  #refreshing: Promise<void> | undefined

  constructor(library: SessionLibrary) {
    this.library = library
  }

  has(id: string): boolean {
    return this.#entries.has(id)
  }

  get known(): number {
    return this.#entries.size
  }

  /** Number of logs still to be read. At least 1 until the whole store has been listed. */
  get unread(): number {
    let count = this.#isWhole ? 0 : 1
    for (const { isUnread } of this.#entries.values()) if (isUnread) count += 1
    return count
  }

  /** Reads logs of changed sessions for at most `readingMs`, in list order. Concurrent calls share one refresh. */
  refresh(readingMs: number): Promise<void> {
    return (this.#refreshing ??= this.#refresh(readingMs).finally(() => (this.#refreshing = undefined)))
  }

  /** Like `refresh`, but does not wait long for a large store. */
  async refreshSoon(readingMs: number): Promise<void> {
    const refreshed = this.refresh(readingMs)
    if (this.#isWhole && this.#entries.size <= firstListed) return refreshed
    const patience = sleep(patienceMs, undefined, { ref: false })
    const enough = this.#isWhole
      ? patience
      : this.#beginning?.then((isMore) => (isMore ? undefined : patience))
    await Promise.race([refreshed, enough])
  }

  async #refresh(readingMs: number): Promise<void> {
    const isSweep = this.#entries.size <= firstListed || performance.now() > this.#sweepAt
    const changed = new Map<string, SessionRow>()
    const note = (row: SessionRow): void => {
      if (this.#put(row)) changed.set(row.id, row)
    }
    if (!this.#isWhole) {
      this.#beginning = this.#listBeginning(note)
      await this.#beginning
    }
    const gone = isSweep ? await this.#sweep(note) : await this.#listNews(note)
    for (const id of gone) this.#remove(id)
    const until = performance.now() + readingMs
    for (const { id } of [...changed.values()].sort(compareBy('status'))) {
      if (performance.now() >= until) break
      // One read of the store at a time.
      const row = await this.library.readRow(id)
      if (row === null) continue
      this.#put(row)
      changed.set(id, row)
    }
    this.#report([...changed.values()], gone)
  }

  #report(changed: readonly SessionRow[], gone: readonly string[]): void {
    const count = changed.length + gone.length
    if (count > maxReported) this.onMore()
    else if (count > 0) this.onChange(changed, gone)
  }

  async #listBeginning(note: (row: SessionRow) => void): Promise<boolean> {
    let isMore = false
    for (const state of [...openStates, undefined]) {
      // One read of the store at a time.
      const rows = await this.library.listPage({ state, children: false, limit: firstListed })
      for (const row of rows) note(row)
      isMore ||= rows.length === firstListed
    }
    return isMore
  }

  /** Returns the ids of deleted sessions. */
  async #sweep(note: (row: SessionRow) => void): Promise<string[]> {
    const began = performance.now()
    const before = new Set(this.#entries.keys())
    let reportedAt = began
    let after: { updatedAt: number; id: string } | undefined
    for (;;) {
      await yieldToEventLoop()
      const page = await this.library.listPage({ limit: pageSize, ...(after && { after }) })
      for (const row of page) {
        before.delete(row.id)
        note(row)
      }
      const last = page.at(-1)
      if (page.length < pageSize || last === undefined) break
      after = { updatedAt: last.updatedAt, id: last.id }
      if (this.#isWhole || performance.now() - reportedAt < reportingMs) continue
      reportedAt = performance.now()
      this.onMore()
    }
    const ended = performance.now()
    this.#sweepAt = ended + Math.min(longestRestMs, sweepRest * (ended - began))
    this.#isWhole = true
    // Sessions written during the listing may have moved to a page that was already read.
    const gone: string[] = []
    for (const id of before) {
      const row = await this.library.readRow(id)
      if (row) note(row)
      else gone.push(id)
    }
    return gone
  }

  /** Lists new writes, and checks active sessions because their lease owner may have disappeared. */
  async #listNews(note: (row: SessionRow) => void): Promise<string[]> {
    for (const row of await this.library.listPage({ since: this.#newest - overlapMs })) note(row)
    const gone: string[] = []
    for (const { row } of this.#entries.values()) {
      if (row.holder === null && !row.isAttached) continue
      const now = await this.library.findRow(row.id)
      if (now) note(now)
      else gone.push(row.id)
    }
    return gone
  }

  /** Returns whether the session is new or changed. `isRead` means that its log was read again. */
  #put(row: SessionRow, isRead = false): boolean {
    const before = this.#entries.get(row.id)
    this.#newest = Math.max(this.#newest, row.updatedAt)
    row.children = this.#childCounts.get(row.id) ?? 0
    const isSame = before !== undefined && JSON.stringify(before.row) === JSON.stringify(row)
    if (isSame && !isRead) return false
    if (before === undefined && row.parent !== null) this.#countChild(row.parent, 1)
    const now = createEntry(row, this.library.findFacts(row.id), this.#facets)
    if (before !== undefined) this.#facets.remove(before.facets)
    if (before === undefined) this.#entries.set(row.id, now)
    else Object.assign(before, now)
    for (const order of this.#orders.values()) {
      if (before === undefined) order.entries.push(now)
      order.isSorted = false
    }
    return !isSame
  }

  /** Sorting again is cheap when few sessions have changed. */
  #sort(by: SessionSort): readonly Entry[] {
    const order = this.#orders.get(by) ?? { entries: [...this.#entries.values()], isSorted: false }
    this.#orders.set(by, order)
    const compare = compareBy(by)
    if (!order.isSorted) order.entries.sort((a, b) => compare(a.row, b.row))
    order.isSorted = true
    return order.entries
  }

  #remove(id: string): void {
    const entry = this.#entries.get(id)
    if (!entry) return
    this.#entries.delete(id)
    this.#facets.remove(entry.facets)
    this.library.forget(id)
    if (entry.row.parent !== null) this.#countChild(entry.row.parent, -1)
    this.#orders.clear()
  }

  #countChild(parent: string, by: number): void {
    const count = (this.#childCounts.get(parent) ?? 0) + by
    this.#childCounts.set(parent, count)
    const entry = this.#entries.get(parent)
    if (entry) entry.row = { ...entry.row, children: count }
  }

  /** Reads unread logs, most recently written first, for as long as `rest` allows it. */
  async readLogs(rest: () => Promise<boolean>): Promise<void> {
    const due = [...this.#entries.values()]
      .filter(({ isUnread }) => isUnread)
      .sort((a, b) => b.row.updatedAt - a.row.updatedAt)
    const isSmall = this.#entries.size <= maxSingleReports
    // A long log also waits for requests, but is read to its end.
    const goOn = async (): Promise<boolean> => {
      if (!(await rest())) await yieldToEventLoop()
      return true
    }
    let until = 0
    let reportedAt = performance.now()
    for (const { row } of due) {
      if (performance.now() > until) {
        // Requests come first.
        if (!(await rest())) break
        until = performance.now() + readingStretchMs
      }
      // One after the other, in the background.
      const now = await this.library.readFacts(row.id, goOn)
      if (now === null || !this.#entries.has(row.id)) continue
      const hasChanged = this.#put(now, true)
      if (hasChanged && isSmall) this.#report([now], [])
      if (performance.now() - reportedAt < reportingMs) continue
      reportedAt = performance.now()
      this.onMore()
    }
    if (due.length === 0) return
    await this.library.flushKept()
    this.onMore()
  }

  /** @throws {UsageError} `invalid_option` for an invalid query or order */
  find({ q, sort, offset, limit }: ListRequest) {
    const query = readQuery(q)
    const order = sessionSorts.find((one) => one === sort.replace(/^-/, ''))
    if (order === undefined) {
      const what = `Unknown order '${sort.slice(0, 50)}'. Use one of ${sessionSorts.join(', ')}.`
      throw new UsageError('invalid_option', what, 'sort')
    }
    const counts: Partial<Record<SessionRow['status'], number>> = {}
    const found: Entry[] = []
    const sorted = this.#sort(order)
    for (const entry of sort.startsWith('-') ? reverseKnown(sorted, order) : sorted) {
      if (!this.#isShown(entry, query) || !query.matches(entry)) continue
      const { status } = entry.row
      counts[status] = (counts[status] ?? 0) + 1
      if (query.hasStatus(entry)) found.push(entry)
    }
    return {
      /** One page of the matching sessions. Sub-agents are listed below their session. */
      sessions: found.slice(offset, offset + Math.min(limit, maxRows)).map(({ row }) => row),
      /** The number of matching sessions, in total and by status. */
      total: found.length,
      counts,
      /** Listed sessions, and those that have not been listed or read for a search yet. */
      known: this.known,
      unread: this.unread,
      /** Whether the whole store has been listed. Until then, counts are partial. */
      isWhole: this.#isWhole,
      /** The most frequent values to filter by, with the number of matching sessions. */
      facets: this.#facets.count(found),
      days: countDays(found),
    }
  }

  /** Sub-agents are listed below their session, and separately only if that session was not found. */
  #isShown({ row }: Entry, query: SessionQuery): boolean {
    if (query.parent !== null || row.parent === null) return true
    const parent = this.#entries.get(row.parent)
    return parent === undefined || (!query.isEmpty && !query.matches(parent))
  }
}

function createEntry(
  row: SessionRow,
  facts: (LogFacts & { key: string }) | null,
  facets: FacetCounts,
): Entry {
  const lower = (values: readonly (string | null)[]): string[] =>
    values.flatMap((value) => (value === null ? [] : [value.toLowerCase()]))
  const tags = Object.entries(row.tags)
  const words = [row.id, row.name ?? '', row.title, ...tags.flat(), row.state ?? '', row.reason ?? '']
  const terms = {
    state: lower([row.state]),
    reason: lower([row.reason]),
    agent: lower([row.agent]),
    is: [row.status],
    parent: lower([row.parent]),
    tag: lower(tags.map(([name, value]) => `${name}=${value}`)),
    tool: lower(facts?.tools ?? []),
    failed: lower(facts?.failed ?? []),
    model: lower(facts?.models ?? []),
    guard: lower(facts?.guards ?? []),
  }
  return {
    row,
    facets: facets.add(terms),
    // If a process is writing to a session, its log is read once the session settles, unless the log was never read.
    isUnread: !facts || (row.holder === null && facts.key !== toReadKey(row.records, row.createdAt)),
    texts: [normalizeText(words.join('\n')), ...(facts ? [facts.text] : [])],
    terms,
  }
}

const comparators: Record<SessionSort, (a: SessionRow, b: SessionRow) => number> = {
  status: (a, b) => sessionStatuses.indexOf(a.status) - sessionStatuses.indexOf(b.status),
  updated: () => 0,
  created: (a, b) => b.createdAt - a.createdAt,
  cost: (a, b) => (b.cost ?? -1) - (a.cost ?? -1),
  tokens: (a, b) => b.tokens - a.tokens,
  steps: (a, b) => (b.steps ?? -1) - (a.steps ?? -1),
  duration: (a, b) => b.duration - a.duration,
  state: (a, b) => compareTexts(a.state, b.state),
  agent: (a, b) => compareTexts(a.agent, b.agent),
  model: (a, b) => compareTexts(a.models.join(), b.models.join()),
}

/** Equal rows are in the order of their last writes. */
const compareBy = (by: SessionSort) => (a: SessionRow, b: SessionRow) =>
  comparators[by](a, b) || b.updatedAt - a.updatedAt

/** Reverses the order, but keeps entries without the value at the end. */
function reverseKnown(sorted: readonly Entry[], by: SessionSort): readonly Entry[] {
  const isUnknown = (entry: Entry): boolean => (by === 'cost' || by === 'steps') && entry.row[by] === null
  return [...sorted.toReversed().filter((entry) => !isUnknown(entry)), ...sorted.filter(isUnknown)]
}

/** Missing values come last. */
function compareTexts(a: string | null, b: string | null): number {
  if ((a || null) === (b || null)) return 0
  if (!a || !b) return a ? -1 : 1
  return a < b ? -1 : 1
}
