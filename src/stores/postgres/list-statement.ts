import type { Listing } from '../../core/sessions/store/list-options.js'

/**
 * The sessions of a list, the one written last first. Those that no process writes to stand in an index in this order, one for
 * each state that is asked for; the others are as many as there are runs at work. `$1` is no session, `$2` the time.
 */
export function createListStatement(
  sessions: string,
  entry: string,
  { states, agent, limit, cursor }: Listing,
): { text: string; values: unknown[] } {
  const values: unknown[] = []
  const given = (value: unknown, type: string): string => `$${values.push(value) + 2}::${type}`
  const [of, last] = [agent === null ? null : given(agent, 'text'), given(limit, 'bigint')]
  const from = cursor && { at: given(Math.floor(cursor.updatedAt), 'bigint'), id: given(cursor.id, 'text') }
  const ways = (states === null ? [null] : [...new Set(states)]).flatMap((state) => {
    const word = state === null ? null : given(state, 'text')
    return [
      ['token IS NULL', 'listed_at'],
      ['token IS NOT NULL AND head > 0', 'updated_at'],
    ].map(([which = '', time = '']) => {
      const conditions = [which]
      if (of !== null) conditions.push(`agent = ${of}`)
      if (word !== null) conditions.push(`state = ${word}`)
      if (from) {
        conditions.push(`${time} <= ${from.at}`, `(${time} < ${from.at} OR id > ${from.id} COLLATE "C")`)
      }
      return `(SELECT ${entry} FROM ${sessions} s WHERE ${conditions.join(' AND ')} ORDER BY ${time} DESC, id LIMIT ${last})`
    })
  })
  const text = `SELECT * FROM (${ways.join(' UNION ALL ')}) l WHERE $1::text IS NULL ORDER BY updated_at DESC, id LIMIT ${last}`
  return { text, values }
}
