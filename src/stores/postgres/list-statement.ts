import { type Listing, toIdRange } from '../../core/sessions/store/list-options.js'

/** Tables of the store, by their names in SQL. */
interface Tables {
  sessions: string
  tags: string
}

/**
 * The sessions of a list, the one written last first. Those that no process writes to stand in an index in this order, one for
 * each state or for the first tag that is asked for; the others are as many as there are runs at work. `$1` is no session, `$2`
 * the time.
 */
export function createListStatement(
  { sessions, tags: tagTable }: Tables,
  entry: string,
  { prefix, tags, states, agent, parent, children, since, before, limit, after }: Listing,
): { text: string; values: unknown[] } {
  const values: unknown[] = []
  const given = (value: unknown, type: string): string => `$${values.push(value) + 2}::${type}`
  const isTag = (table: string, [name, value]: Listing['tags'][number]): string =>
    `${table}.name = ${given(name, 'text')} AND ${table}.value = ${given(value, 'text')}`
  const hasTag = (tag: Listing['tags'][number]): string =>
    `EXISTS (SELECT FROM ${tagTable} o WHERE o.session_id = s.id AND ${isTag('o', tag)})`

  const asked: string[] = []
  if (agent !== null) asked.push(`s.agent = ${given(agent, 'text')}`)
  if (parent !== null) asked.push(`s.parent = ${given(parent, 'text')}`)
  else if (!children) asked.push('s.parent IS NULL')
  const [from, to] = prefix === null ? [] : toIdRange(prefix)
  if (from !== undefined) asked.push(`s.id >= ${given(from, 'text')} AND s.id < ${given(to, 'text')}`)
  const [first, ...others] = tags
  asked.push(...others.map(hasTag))
  const last = given(limit, 'bigint')
  const [sinceTime, beforeTime] = [since, before].map((time) => time !== null && given(time, 'bigint'))
  const position = after && { at: given(Math.floor(after.updatedAt), 'bigint'), id: given(after.id, 'text') }

  const resting = first
    ? {
        source: `${tagTable} t JOIN ${sessions} s ON s.id = t.session_id`,
        time: 't.listed_at',
        id: 't.session_id',
        which: [isTag('t', first), 's.token IS NULL'],
      }
    : { source: `${sessions} s`, time: 's.listed_at', id: 's.id', which: ['s.token IS NULL'] }
  const held = {
    source: `${sessions} s`,
    time: 's.updated_at',
    id: 's.id',
    which: ['s.token IS NOT NULL AND s.head > 0', ...(first ? [hasTag(first)] : [])],
  }
  const ways = (states === null ? [null] : [...new Set(states)]).flatMap((state) => {
    const stateValue = state === null ? null : given(state, 'text')
    return [resting, held].map(({ source, time, id, which }) => {
      const conditions = [...which, ...asked]
      if (stateValue !== null) conditions.push(`s.state = ${stateValue}`)
      if (sinceTime) conditions.push(`${time} >= ${sinceTime}`)
      if (beforeTime) conditions.push(`${time} < ${beforeTime}`)
      if (position)
        conditions.push(
          `${time} <= ${position.at}`,
          `(${time} < ${position.at} OR ${id} > ${position.id} COLLATE "C")`,
        )
      return `(SELECT ${entry} FROM ${source} WHERE ${conditions.join(' AND ')} ORDER BY ${time} DESC, ${id} LIMIT ${last})`
    })
  })
  const text = `SELECT * FROM (${ways.join(' UNION ALL ')}) l WHERE $1::text IS NULL ORDER BY updated_at DESC, id LIMIT ${last}`
  return { text, values }
}
