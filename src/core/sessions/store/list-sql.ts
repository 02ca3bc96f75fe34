import { type Listing, toIdRange } from './list-options.js'

/** Values are bound to the question marks in order. */
export type Condition = readonly [sql: string, ...values: unknown[]]

/** A source of sessions. It is an index that is in list order or has few entries. */
export interface ListSource {
  from: string
  time: string
  id: string
  conditions: readonly Condition[]
}

/** The end of a query for each state and source, because an index is in list order for one state. */
export function createListQueries(listing: Listing, sources: readonly ListSource[]): Condition[] {
  const { states, agent, parent, children, since, before, after, limit } = listing
  return (states === null ? [null] : [...new Set(states)]).flatMap((state) =>
    sources.map(({ from, time, id, conditions }): Condition => {
      const all = [...conditions]
      if (agent !== null) all.push(['agent = ?', agent])
      if (state !== null) all.push(['state = ?', state])
      if (parent !== null) all.push(['parent = ?', parent])
      else if (!children) all.push(['parent IS NULL'])
      if (since !== null) all.push([`${time} >= ?`, since])
      if (before !== null) all.push([`${time} < ?`, before])
      if (after !== null) {
        const { updatedAt } = after
        all.push([`${time} <= ? AND (${time} < ? OR ${id} > ?)`, updatedAt, updatedAt, after.id])
      }
      const where = all.map(([condition]) => condition).join(' AND ')
      const values = all.flatMap(([, ...own]) => own)
      return [`FROM ${from} WHERE ${where} ORDER BY ${time} DESC, ${id} LIMIT ?`, ...values, limit]
    }),
  )
}

/** `table` contains the tags of the sessions. */
export const toTagCondition = (tag: Listing['tags'][number], table: string): Condition => [
  `EXISTS (SELECT 1 FROM ${table} o WHERE o.session_id = id AND o.name = ? AND o.value = ?)`,
  ...tag,
]

export const toPrefixConditions = (prefix: string | null, id: string): Condition[] =>
  prefix === null ? [] : [[`${id} >= ? AND ${id} < ?`, ...toIdRange(prefix)]]
