import { getOrCreate } from '../core/base/values.js'
import type { DayView, SessionRow, SessionsView } from './protocol.js'
import type { QueryKey } from './session-query.js'

/** One object per value that sessions share, such as a tool, makes counting cheap. */
export interface Facet {
  readonly key: QueryKey
  readonly term: string
  sessions: number
  found: number
  round: number
}

type Terms = Partial<Record<QueryKey, readonly string[]>>

const facetKeys: readonly QueryKey[] = ['state', 'reason', 'tool', 'failed', 'guard', 'model', 'agent', 'tag']
const maxFacets = 50

export class FacetCounts {
  readonly #facets = new Map<string, Facet>()
  #round = 0

  add(terms: Terms): Facet[] {
    return facetKeys.flatMap((key) => (terms[key] ?? []).map((term) => this.#addOne(key, term)))
  }

  remove(facets: readonly Facet[]): void {
    for (const facet of facets) {
      facet.sessions -= 1
      if (facet.sessions === 0) this.#facets.delete(toName(facet.key, facet.term))
    }
  }

  count(found: readonly { facets: readonly Facet[] }[]): SessionsView['facets'] {
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
    const counts: SessionsView['facets'] = {}
    for (const { key, term, found: count } of counted.sort((a, b) => b.found - a.found)) {
      const ofKey = (counts[key] ??= [])
      if (ofKey.length < maxFacets) ofKey.push([term, count])
    }
    return counts
  }

  #addOne(key: QueryKey, term: string): Facet {
    const create = (): Facet => ({ key, term, sessions: 0, found: 0, round: 0 })
    const facet = getOrCreate(this.#facets, toName(key, term), create)
    facet.sessions += 1
    return facet
  }
}

const toName = (key: QueryKey, term: string): string => `${key}:${term}`

const maxDays = 30

const failedStates = new Set(['ERROR', 'BLOCKED', 'TIMED_OUT', 'MAX_STEPS', 'BUDGET_EXCEEDED'])

/** Why a session failed: it ended without an answer, a guard halted it, or its log is damaged. */
function findFailure({ state, reason, wakeAt, status }: SessionRow): string | null {
  if (status === 'damaged') return 'damaged'
  const isHalted = state === 'PAUSED' && reason !== 'paused' && wakeAt === null
  return isHalted || failedStates.has(state ?? '') ? (reason ?? 'unknown') : null
}

/** Cost and failures per UTC day over the last 30 days with a session. */
export function countDays(found: readonly { row: SessionRow }[]): DayView[] {
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
