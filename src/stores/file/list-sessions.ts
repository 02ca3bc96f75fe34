import { type Listing, compareListed, toIdRange } from '../../core/sessions/store/list-options.js'
import { parseSummary } from '../../core/sessions/store/session-title.js'
import type { SessionRow } from '../../core/sessions/store/table-store.js'
import { type Prepare, decodeText, selectBytes, selectInteger } from './database.js'

/** Time of the last write to a held session, whose row is not updated with each record. */
const heldWrittenAtSql = `max(sessions.listed_at, coalesce(
  (SELECT written_at FROM records WHERE session_id = id ORDER BY seq DESC LIMIT 1), 0))`

/** Below this count, sorting one owner's sessions beats scanning the ordered index. */
const fewSessions = 1000

type Condition = readonly [sql: string, ...values: unknown[]]

/** A source of sessions. It is an index that is in list order or has few entries. */
interface Source {
  from: string
  time: string
  id: string
  conditions: readonly Condition[]
}

/**
 * Lists sessions, most recently written first. For each state, an index contains the idle sessions in this order. The
 * few held sessions are checked one by one.
 */
export function listSessions(one: Prepare, listing: Listing): SessionRow[] {
  const { states, limit } = listing
  const sources = [createRestingSource(one, listing), createHeldSource(listing)]
  const found: SessionRow[] = []
  for (const state of states === null ? [null] : new Set(states)) {
    for (const { from, time, id, conditions } of sources) {
      const all = [...conditions, ...createConditions(listing, { time, id, state })]
      const where = all.map(([condition]) => condition).join(' AND ')
      const sql = `SELECT ${sessionColumns} FROM ${from} WHERE ${where} ORDER BY ${time} DESC, ${id} LIMIT ?`
      const values = all.flatMap(([, ...values]) => values)
      const rows = one(sql).all([...values, limit])
      found.push(...rows.map(readSessionRow))
    }
  }
  return found.sort(compareListed).slice(0, limit)
}

function createHeldSource({ prefix, tags }: Listing): Source {
  const id = 'id'
  const conditions: Condition[] = [
    ['token IS NOT NULL AND EXISTS (SELECT 1 FROM records WHERE session_id = id)'],
    ...tags.map((tag) => toTagCondition(tag)),
    ...(prefix === null ? [] : [toPrefixCondition(prefix, id)]),
  ]
  return { from: 'sessions INDEXED BY held', time: heldWrittenAtSql, id, conditions }
}

function createRestingSource(one: Prepare, { prefix, tags, parent }: Listing): Source {
  const resting: Condition = ['token IS NULL']
  const [tag, ...otherTags] = sortByCount(one, tags)
  if (tag) {
    const id = 't.session_id'
    const conditions: Condition[] = [
      ['t.name = ? AND t.value = ?', ...tag],
      resting,
      ...otherTags.map((other) => toTagCondition(other)),
      ...(prefix === null ? [] : [toPrefixCondition(prefix, id)]),
    ]
    return { from: 'tags t CROSS JOIN sessions ON id = t.session_id', time: 't.listed_at', id, conditions }
  }
  const [time, id] = ['sessions.listed_at', 'id']
  if (prefix === null || parent !== null) {
    // The plus sign prevents the use of the index.
    const conditions = prefix === null ? [resting] : [resting, toPrefixCondition(prefix, '+id')]
    return { from: parent === null ? 'sessions' : 'sessions INDEXED BY children_of', time, id, conditions }
  }
  const isFew = countUpTo(one, 'sessions WHERE id >= ? AND id < ?', toIdRange(prefix)) < fewSessions
  const from = isFew ? 'sessions INDEXED BY sqlite_autoindex_sessions_1' : 'sessions'
  return { from, time, id, conditions: [resting, toPrefixCondition(prefix, isFew ? 'id' : '+id')] }
}

function createConditions(
  { agent, parent, children, since, before, after }: Listing,
  { time, id, state }: { time: string; id: string; state: string | null },
): Condition[] {
  const conditions: Condition[] = []
  if (agent !== null) conditions.push(['agent = ?', agent])
  if (state !== null) conditions.push(['state = ?', state])
  if (parent !== null) conditions.push(['parent = ?', parent])
  else if (!children) conditions.push(['parent IS NULL'])
  if (since !== null) conditions.push([`${time} >= ?`, since])
  if (before !== null) conditions.push([`${time} < ?`, before])
  if (after !== null) {
    conditions.push([`${time} <= ?`, after.updatedAt])
    conditions.push([`(${time} < ? OR ${id} > ?)`, after.updatedAt, after.id])
  }
  return conditions
}

const toTagCondition = (tag: Listing['tags'][number]): Condition => [
  'EXISTS (SELECT 1 FROM tags o WHERE o.session_id = id AND o.name = ? AND o.value = ?)',
  ...tag,
]

const toPrefixCondition = (prefix: string, id: string): Condition => [
  `${id} >= ? AND ${id} < ?`,
  ...toIdRange(prefix),
]

/** Puts the rarest tag first, because its sessions are scanned. */
function sortByCount(one: Prepare, tags: Listing['tags']): Listing['tags'] {
  if (tags.length <= 1) return tags
  return tags
    .map((tag) => ({ tag, count: countUpTo(one, 'tags WHERE name = ? AND value = ?', tag) }))
    .sort((a, b) => a.count - b.count)
    .map(({ tag }) => tag)
}

function countUpTo(one: Prepare, which: string, values: readonly unknown[]): number {
  const [row] = one(`SELECT count(*) FROM (SELECT 1 FROM ${which} LIMIT ${fewSessions})`).all(values)
  return (row as [number])[0]
}

/** Read from the records, because updating the session's row with each record would double the writes. */
const createWrittenAtSql = (seq: string) =>
  `coalesce((SELECT written_at FROM records WHERE session_id = id AND seq = ${seq}), 0)`
export const headSql = 'coalesce((SELECT max(seq) FROM records WHERE session_id = id), 0)'
export const createdAtSql = createWrittenAtSql('1')
const updatedAtSql = `max(sessions.listed_at, ${createWrittenAtSql(headSql)})`

export const sessionColumns = [
  ...[headSql, createdAtSql, updatedAtSql, 'last_message', 'expires_at'].map(selectInteger),
  ...['id', 'summary', 'title', 'marks', 'token', 'holder', 'process'].map(selectBytes),
].join(', ')

export function readSessionRow(row: unknown): SessionRow {
  const [head, createdAt, updatedAt, lastMessage, expiresAt, ...texts] = row as [
    ...[number, number, number, number, number],
    ...(Uint8Array | null)[],
  ]
  const [id, summary, title, marks, token, holder, process] = texts.map((text) => text && decodeText(text))
  return {
    id: id ?? '',
    head,
    createdAt,
    updatedAt,
    lastMessage,
    summary: parseSummary(summary),
    title: title ?? null,
    marks: marks ?? null,
    lease: token ? { token, holder: holder ?? '', expiresAt, instance: process ?? '' } : null,
  }
}
