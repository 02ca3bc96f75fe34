import type { AgentState } from '../../machines/agent/run-result.js'
import { UsageError } from '../core/base/errors.js'
import { yieldToEventLoop } from '../core/base/platform.js'
import { type Facet, FacetCounts } from './session-counts.js'
import type { LogFacts } from './kept-digests.js'
import type { SessionRow, SessionsView } from './protocol.js'
import type { ListRequest } from './routes.js'
import { countDays } from './session-counts.js'
import { type SessionLibrary, toReadKey } from './session-library.js'
import {
  type Findable,
  normalizeText,
  readQuery,
  type SessionQuery,
  type SessionSort,
  sessionSorts,
  sessionStandings,
} from './session-query.js'

/** How many sessions of each kind are listed before all others: more than a page shows. A store that has no more is small. */
const firstListed = 200
/** Those that stand before the others: they have an end to come. */
const openStates: readonly AgentState[][] = [
  ['WAITING_FOR_INPUT'],
  ['PAUSED'],
  ['RUNNING', 'WAITING_FOR_TOOL'],
]
/** How many are listed at once afterwards; requests come in between. */
const pageSize = 500
/**
 * To find what is gone or has another title, a store is listed whole. A small one each time; another when so many times as long has
 * passed as that takes, and at the latest after so many milliseconds.
 */
const [sweepRest, longestRestMs] = [20, 60_000]
/** How long a write may need until it is listed, while later ones are. */
const overlapMs = 2_000
/** How long a request waits for a store that is not small. */
const patienceMs = 150
/** More changes at once are told as one. */
const maxTold = 200
/** Of up to so many sessions, what was read in a log is told by itself. */
const maxToldSingly = 3_000
/** How long logs are read in the background before requests may come in between, and how often that is told. */
const [readingStretchMs, tellingMs] = [40, 1_000]
/** The most sessions in one response. */
const maxRows = 500

interface Entry extends Findable {
  row: SessionRow
  facets: readonly Facet[]
  /** Whether its log is to be read for searching. */
  isUnread: boolean
}

/** What has changed in a list. `isMore`: so much that the list is to be asked for anew. */
export interface CatalogueChange {
  changed: readonly SessionRow[]
  gone: readonly string[]
  isMore: boolean
}

type Found = Omit<SessionsView, 'store' | 'readOnly' | 'budgets'>

/**
 * The sessions of a store, to be searched, filtered and counted without asking the store for all of them each time. What the
 * store lists is known at once; what only a log tells (words of messages, tools, models, guards) as soon as it has been read.
 */
export class SessionCatalogue {
  readonly library: SessionLibrary
  /** Is told what has changed, and after how much more was listed or read. */
  onChange: (change: CatalogueChange) => void = () => undefined
  readonly #entries = new Map<string, Entry>()
  readonly #childCounts = new Map<string, number>()
  readonly #facets = new FacetCounts()
  readonly #orders = new Map<SessionSort, { entries: Entry[]; isSorted: boolean }>()
  #newest = 0
  /** When the store is to be listed whole again. */
  #sweepAt = -Infinity
  #isWhole = false
  /** Lists what a page shows first; whether there may be more. */
  #beginning: Promise<boolean> | undefined
  #refreshing: Promise<void> | undefined

  constructor(library: SessionLibrary) {
    this.library = library
  }

  has(id: string): boolean {
    return this.#entries.has(id)
  }

  /** How many have been listed. */
  get known(): number {
    return this.#entries.size
  }

  /** How many are still to be read; while the store has not been listed whole, at least one. */
  get unread(): number {
    let count = this.#isWhole ? 0 : 1
    for (const { isUnread } of this.#entries.values()) if (isUnread) count += 1
    return count
  }

  /**
   * Lists what has changed in the store. Logs of changed sessions are read for at most `readingMs`, those first that stand first
   * in the list. A refresh that is under way is waited for.
   */
  refresh(readingMs: number): Promise<void> {
    this.#refreshing ??= this.#refresh(readingMs).finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  /** The same, but of a large store what it has not told in a moment follows later. */
  async refreshSoon(readingMs: number): Promise<void> {
    const refreshed = this.refresh(readingMs)
    if (this.#isWhole && this.#entries.size <= firstListed) return refreshed
    let timer: ReturnType<typeof setTimeout> | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, patienceMs)
    })
    const enough = this.#isWhole
      ? patience
      : this.#beginning?.then((isMore) => (isMore ? undefined : patience))
    await Promise.race([refreshed, enough]).finally(() => clearTimeout(timer))
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
    for (const { id } of [...changed.values()].sort(compareStanding)) {
      if (performance.now() >= until) break
      // oxlint-disable-next-line no-await-in-loop -- the store is read by one at a time
      const row = await this.library.readRow(id)
      if (row === null) continue
      this.#put(row)
      changed.set(id, row)
    }
    this.#tell([...changed.values()], gone)
  }

  /** What changes at once in great number is not told one by one. */
  #tell(changed: readonly SessionRow[], gone: readonly string[]): void {
    if (changed.length + gone.length === 0) return
    const isMuch = changed.length + gone.length > maxTold
    this.onChange(isMuch ? { changed: [], gone: [], isMore: true } : { changed, gone, isMore: false })
  }

  /** Lists those that stand first, and those that were written last. */
  async #listBeginning(note: (row: SessionRow) => void): Promise<boolean> {
    let isMore = false
    for (const state of [...openStates, undefined]) {
      // oxlint-disable-next-line no-await-in-loop -- the store is read by one at a time
      const rows = await this.library.listPage({ state, children: false, limit: firstListed })
      for (const row of rows) note(row)
      isMore ||= rows.length === firstListed
    }
    return isMore
  }

  /** Lists the whole store, page by page; returns those that are gone. */
  async #sweep(note: (row: SessionRow) => void): Promise<string[]> {
    const began = performance.now()
    const before = new Set(this.#entries.keys())
    let toldAt = began
    let after: { updatedAt: number; id: string } | undefined
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- yields to requests
      await yieldToEventLoop()
      // oxlint-disable-next-line no-await-in-loop -- one page after the other
      const page = await this.library.listPage({ limit: pageSize, ...(after && { after }) })
      for (const row of page) {
        before.delete(row.id)
        note(row)
      }
      const last = page.at(-1)
      if (page.length < pageSize || last === undefined) break
      after = { updatedAt: last.updatedAt, id: last.id }
      if (this.#isWhole || performance.now() - toldAt < tellingMs) continue
      toldAt = performance.now()
      this.onChange({ changed: [], gone: [], isMore: true })
    }
    const ended = performance.now()
    this.#sweepAt = ended + Math.min(longestRestMs, sweepRest * (ended - began))
    this.#isWhole = true
    // What was written during the sweep may have moved to a page that was read already.
    const gone: string[] = []
    for (const id of before) {
      // oxlint-disable-next-line no-await-in-loop -- there are few
      const row = await this.library.readRow(id)
      if (row) note(row)
      else gone.push(id)
    }
    return gone
  }

  /** Lists what was written since, and looks at those at work, whose holder may be gone without a word. */
  async #listNews(note: (row: SessionRow) => void): Promise<string[]> {
    for (const row of await this.library.listPage({ since: this.#newest - overlapMs })) note(row)
    const gone: string[] = []
    for (const { row } of this.#entries.values()) {
      if (row.holder === null && !row.isAttached) continue
      // oxlint-disable-next-line no-await-in-loop -- as many as there are runs at work
      const now = await this.library.findRow(row.id)
      if (now) note(now)
      else gone.push(row.id)
    }
    return gone
  }

  /** Whether it is new or differs. `isRead`: what its log tells was read again. */
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

  /** All sessions in an order. Where few have changed since they were sorted, to sort them again costs little. */
  #sort(by: SessionSort): readonly Entry[] {
    const order = this.#orders.get(by) ?? { entries: [...this.#entries.values()], isSorted: false }
    this.#orders.set(by, order)
    if (!order.isSorted) order.entries.sort(comparators[by])
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

  /** Reads the logs of sessions that were not read yet, the last written first, for as long as `rest` allows. */
  async readLogs(rest: () => Promise<boolean>): Promise<void> {
    const due = [...this.#entries.values()]
      .filter(({ isUnread }) => isUnread)
      .sort((a, b) => b.updatedAt - a.updatedAt)
    const isSmall = this.#entries.size <= maxToldSingly
    // A long log waits for requests, too, and is read to its end.
    const goOn = async (): Promise<boolean> => {
      if (!(await rest())) await yieldToEventLoop()
      return true
    }
    let until = 0
    let toldAt = performance.now()
    for (const { row } of due) {
      if (performance.now() > until) {
        // oxlint-disable-next-line no-await-in-loop -- requests come first
        if (!(await rest())) break
        until = performance.now() + readingStretchMs
      }
      // oxlint-disable-next-line no-await-in-loop -- one after the other, in the background
      const now = await this.library.readFacts(row.id, goOn)
      if (now === null || !this.#entries.has(row.id)) continue
      const hasChanged = this.#put(now, true)
      if (hasChanged && isSmall) this.#tell([now], [])
      if (performance.now() - toldAt < tellingMs) continue
      toldAt = performance.now()
      this.onChange({ changed: [], gone: [], isMore: true })
    }
    if (due.length === 0) return
    await this.library.flushKept()
    this.onChange({ changed: [], gone: [], isMore: true })
  }

  /** @throws {UsageError} `invalid_option` for a query or an order that there is not */
  find({ q, sort, offset, limit }: ListRequest): Found {
    const query = readQuery(q)
    const order = sessionSorts.find((one) => one === sort)
    if (order === undefined) {
      const what = `The order must be one of ${sessionSorts.join(', ')}; '${sort.slice(0, 50)}' is none.`
      throw new UsageError('invalid_option', what, 'sort')
    }
    const counts: Found['counts'] = {}
    const found: Entry[] = []
    for (const entry of this.#sort(order)) {
      if (!this.#isShown(entry, query) || !query.matches(entry)) continue
      const { standing } = entry.row
      counts[standing] = (counts[standing] ?? 0) + 1
      if (query.hasStanding(entry)) found.push(entry)
    }
    return {
      sessions: found.slice(offset, offset + Math.min(limit, maxRows)).map(({ row }) => row),
      total: found.length,
      counts,
      known: this.known,
      unread: this.unread,
      isWhole: this.#isWhole,
      facets: this.#facets.count(found),
      days: countDays(found),
    }
  }

  /** Sub-agents stand below their session: they are found by themselves only where that session is not. */
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
    is: [row.standing],
    parent: lower([row.parent]),
    tag: lower(tags.map(([name, value]) => `${name}=${value}`)),
    tool: lower(facts?.tools ?? []),
    model: lower(facts?.models ?? []),
    guard: lower(facts?.guards ?? []),
  }
  return {
    row,
    facets: facets.add(terms),
    // One that a process writes to is read when it rests, or when it has never been.
    isUnread: !facts || (row.holder === null && facts.key !== toReadKey(row.records, row.createdAt)),
    texts: [normalizeText(words.join('\n')), ...(facts ? [facts.text] : [])],
    terms,
    cost: row.cost,
    tokens: row.tokens,
    steps: row.steps,
    duration: Math.max(0, row.updatedAt - row.createdAt),
    updatedAt: row.updatedAt,
  }
}

const comparators: Record<SessionSort, (a: Entry, b: Entry) => number> = {
  standing: (a, b) => compareStanding(a.row, b.row),
  updated: (a, b) => b.updatedAt - a.updatedAt,
  created: (a, b) => b.row.createdAt - a.row.createdAt,
  cost: (a, b) => (b.cost ?? -1) - (a.cost ?? -1) || b.updatedAt - a.updatedAt,
  tokens: (a, b) => b.tokens - a.tokens || b.updatedAt - a.updatedAt,
  steps: (a, b) => (b.steps ?? -1) - (a.steps ?? -1) || b.updatedAt - a.updatedAt,
  duration: (a, b) => b.duration - a.duration || b.updatedAt - a.updatedAt,
}

/** Waiting sessions first, then the last written. */
function compareStanding(a: SessionRow, b: SessionRow): number {
  return (
    sessionStandings.indexOf(a.standing) - sessionStandings.indexOf(b.standing) || b.updatedAt - a.updatedAt
  )
}
