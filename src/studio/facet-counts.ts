import type { SessionsView } from './protocol.js'
import type { QueryKey } from './session-query.js'

/** A value that sessions have, such as a tool: one for all of them, so that they are counted without being compared. */
export interface Facet {
  readonly key: QueryKey
  readonly term: string
  /** How many sessions have it. */
  sessions: number
  /** How many of those that are counted now. */
  found: number
  /** The count that `found` is of. */
  round: number
}

type Terms = Partial<Record<QueryKey, readonly string[]>>

const facetKeys: readonly QueryKey[] = ['state', 'reason', 'tool', 'guard', 'model', 'agent', 'tag']
const maxFacets = 50

/** Counts what else found sessions could be asked for. */
export class FacetCounts {
  readonly #facets = new Map<string, Facet>()
  #round = 0

  /** The facets of one more session. */
  add(terms: Terms): Facet[] {
    return facetKeys.flatMap((key) => (terms[key] ?? []).map((term) => this.#addOne(key, term)))
  }

  /** A session is gone, or has others now. */
  remove(facets: readonly Facet[]): void {
    for (const facet of facets) {
      facet.sessions -= 1
      if (facet.sessions === 0) this.#facets.delete(toName(facet.key, facet.term))
    }
  }

  /** How many of these sessions have each value, the most frequent first. */
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
    const name = toName(key, term)
    const facet = this.#facets.get(name) ?? { key, term, sessions: 0, found: 0, round: 0 }
    this.#facets.set(name, facet)
    facet.sessions += 1
    return facet
  }
}

const toName = (key: QueryKey, term: string): string => `${key}:${term}`
