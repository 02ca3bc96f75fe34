import { type Listing, compareListed, toIdRange } from '../../core/sessions/store/list-options.js'
import {
  createListQueries,
  type ListSource,
  toPrefixConditions,
  toTagCondition,
} from '../../core/sessions/store/list-sql.js'
import { parseSummary } from '../../core/sessions/store/session-title.js'
import type { SessionRow } from '../../core/sessions/store/table-store.js'
import { type Prepare, integer, text, textOrNull } from './database.js'

/** Time of the last write to a held session, whose row is not updated with each record. */
const heldWrittenAtSql = `max(sessions.listed_at, coalesce(
  (SELECT written_at FROM records WHERE session_id = id ORDER BY seq DESC LIMIT 1), 0))`

/** Below this count, sorting one owner's sessions beats scanning the ordered index. */
const fewSessions = 1000

/** Idle sessions are in an index in list order for each state. The few held ones are checked one by one. */
export function listSessions(prepare: Prepare, listing: Listing): SessionRow[] {
  const sources = [createRestingSource(prepare, listing), createHeldSource(listing)]
  return createListQueries(listing, sources)
    .flatMap(([from, ...values]) => selectSessions(prepare, from)(...values))
    .sort(compareListed)
    .slice(0, listing.limit)
}

function createHeldSource({ prefix, tags }: Listing): ListSource {
  const conditions = [
    ['token IS NOT NULL AND EXISTS (SELECT 1 FROM records WHERE session_id = id)'] as const,
    ...tags.map((tag) => toTagCondition(tag, 'tags')),
    ...toPrefixConditions(prefix, 'id'),
  ]
  return { from: 'sessions INDEXED BY held', time: heldWrittenAtSql, id: 'id', conditions }
}

function createRestingSource(prepare: Prepare, { prefix, tags, parent }: Listing): ListSource {
  const resting = ['token IS NULL'] as const
  const [tag, ...otherTags] = sortByCount(prepare, tags)
  if (tag) {
    const id = 't.session_id'
    const conditions = [
      ['t.name = ? AND t.value = ?', ...tag] as const,
      resting,
      ...otherTags.map((other) => toTagCondition(other, 'tags')),
      ...toPrefixConditions(prefix, id),
    ]
    return { from: 'tags t CROSS JOIN sessions ON id = t.session_id', time: 't.listed_at', id, conditions }
  }
  const isOwned = prefix !== null && parent === null
  const isFew =
    isOwned && countUpTo(prepare, 'sessions WHERE id >= ? AND id < ?', toIdRange(prefix)) < fewSessions
  const index = isFew ? ' INDEXED BY sqlite_autoindex_sessions_1' : ''
  return {
    from: parent === null ? `sessions${index}` : 'sessions INDEXED BY children_of',
    time: 'sessions.listed_at',
    id: 'id',
    // The plus sign prevents the use of the index.
    conditions: [resting, ...toPrefixConditions(prefix, isFew ? 'id' : '+id')],
  }
}

/** Puts the rarest tag first, because its sessions are scanned. */
function sortByCount(prepare: Prepare, tags: Listing['tags']): Listing['tags'] {
  if (tags.length <= 1) return tags
  return tags
    .map((tag) => ({ tag, count: countUpTo(prepare, 'tags WHERE name = ? AND value = ?', tag) }))
    .sort((a, b) => a.count - b.count)
    .map(({ tag }) => tag)
}

function countUpTo({ select }: Prepare, which: string, values: readonly unknown[]): number {
  const from = `FROM (SELECT 1 FROM ${which} LIMIT ${fewSessions})`
  return select<{ count: number }>({ count: integer('count(*)') }, from)(...values)[0]?.count ?? 0
}

/** Read from the records, because updating the session's row with each record would double the writes. */
const createWrittenAtSql = (seq: string) =>
  `coalesce((SELECT written_at FROM records WHERE session_id = id AND seq = ${seq}), 0)`
export const headSql = 'coalesce((SELECT max(seq) FROM records WHERE session_id = id), 0)'
export const createdAtSql = createWrittenAtSql('1')

const sessionFields = {
  id: text,
  head: integer(headSql),
  createdAt: integer(createdAtSql),
  updatedAt: integer(`max(sessions.listed_at, ${createWrittenAtSql(headSql)})`),
  lastMessage: integer,
  summary: text,
  title: textOrNull,
  marks: textOrNull,
}
const leaseFields = { token: text, holder: text, instance: text('process'), expiresAt: integer }

type StoredRow = Omit<SessionRow, 'lease' | 'summary'> &
  NonNullable<SessionRow['lease']> & { summary: string }

export function selectSessions({ select }: Prepare, from: string): (...values: unknown[]) => SessionRow[] {
  const read = select<StoredRow>({ ...sessionFields, ...leaseFields }, from)
  return (...values) =>
    read(...values).map(({ token, holder, instance, expiresAt, ...row }) => ({
      ...row,
      summary: parseSummary(row.summary),
      lease: token ? { token, holder, expiresAt, instance } : null,
    }))
}
