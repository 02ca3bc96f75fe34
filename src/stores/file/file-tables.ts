import type { InboxMessage, UnreadInbox } from '../../core/sessions/store/inbox.js'
import type { Lease, LogRecord } from '../../core/sessions/store/store.js'
import type { SessionTable } from '../../core/sessions/store/table-store.js'
import type { StoredTimer, TimerTable } from '../../core/sessions/store/timers.js'
import { type Prepare, integer, text } from './database.js'
import { headSql, listSessions, selectSessions } from './list-sessions.js'

const ownColumns = ['title', 'marks', 'listed_at', 'token', 'holder', 'process', 'expires_at']
const summaryColumns = ['summary', 'state', 'agent', 'parent']

export function openTables(prepare: Prepare) {
  const { run, select } = prepare
  const columns = [...ownColumns, ...summaryColumns]
  const session = selectSessions(prepare, 'FROM sessions WHERE id = ?')
  // Without a summary, the stored one is kept, even if it is damaged.
  const put = run(`
    INSERT INTO sessions (id, ${columns.join(', ')}) VALUES (?, ${columns.map(() => '?').join(', ')})
    ON CONFLICT (id) DO UPDATE SET ${[
      ...ownColumns.map((column) => `${column} = excluded.${column}`),
      ...summaryColumns.map(
        (column) => `${column} = iif(excluded.summary IS NULL, ${column}, excluded.${column})`,
      ),
    ].join(', ')}`)
  const renew = run('UPDATE sessions SET expires_at = ? WHERE id = ? AND token = ?')
  const insertSql = 'INSERT INTO records (session_id, seq, at, type, data, checksum, written_at)'
  const insert = run(`${insertSql} VALUES (?, ?, ?, ?, ?, ?, ?)`)
  const follow = run(`
    ${insertSql} SELECT ?, ?, ?, ?, ?, ?, ? FROM sessions
    WHERE id = ? AND token = ? AND expires_at > ? AND ${headSql} = ? - 1`)
  const toValues = (id: string, { seq, at, type, data, check }: LogRecord, time: number) =>
    [id, seq, at, type, data, check, time] as const
  const lastSnapshot = select<{ seq: number }>(
    { seq: integer },
    "FROM records WHERE session_id = ? AND seq <= ? AND type = 'snapshot' ORDER BY seq DESC LIMIT 1",
  )
  const tag = run(`
    INSERT INTO tags (session_id, name, value, listed_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value, listed_at = excluded.listed_at
    WHERE value <> excluded.value OR listed_at <> excluded.listed_at`)
  const untag = run('DELETE FROM tags WHERE session_id = ? AND name NOT IN (SELECT value FROM json_each(?))')
  const removals = [
    ...['records', 'inbox', 'tags'].map((table) => run(`DELETE FROM ${table} WHERE session_id = ?`)),
    run('DELETE FROM sessions WHERE id = ?'),
  ]
  const countMessages = run('UPDATE sessions SET last_message = ? WHERE id = ?')
  const addMessage = run('INSERT INTO inbox (session_id, message, at, text) VALUES (?, ?, ?, ?)')
  const removeMessage = run('DELETE FROM inbox WHERE session_id = ? AND message = ?')
  const lastMessage = select<{ last: number | null }>(
    { last: integer('max(message)') },
    'FROM inbox WHERE session_id = ?',
  )
  const unreadFields = { sessionId: text, inbox: integer('max(message)') }
  const findUnread = select<UnreadInbox>(
    unreadFields,
    'FROM inbox WHERE session_id IN (SELECT value FROM json_each(?)) GROUP BY session_id',
  )

  const table: SessionTable = {
    session: (id) => session(id)[0],
    list: (listing) => listSessions(prepare, listing),
    putSession({ id, title, marks, updatedAt, lease, summary }) {
      const { token = null, holder = null, instance = null, expiresAt = 0 } = lease ?? {}
      const { state = null, agent = null, parent = null, tags = {} } = summary ?? {}
      const own = [title, marks, updatedAt, token, holder, instance, expiresAt]
      put(id, ...own, summary && JSON.stringify(summary), state, agent, parent)
      if (summary) untag(id, JSON.stringify(Object.keys(tags)))
      for (const [name, value] of Object.entries(tags)) tag(id, name, value, updatedAt)
    },
    removeSession(id) {
      for (const remove of removals) remove(id)
    },
    addRecords(id, records, time) {
      for (const record of records) insert(...toValues(id, record, time))
    },
    records: select<LogRecord>(
      { seq: integer, at: integer, type: text, data: text, check: text('checksum') },
      'FROM records WHERE session_id = ? AND seq BETWEEN ? AND ? ORDER BY seq',
    ),
    findSnapshot: (id, to) => lastSnapshot(id, to)[0]?.seq ?? 1,

    addMessage({ id }, { message, at, text: content }) {
      countMessages(message, id)
      addMessage(id, message, at, content)
    },
    messages: select<InboxMessage>(
      { message: integer, at: integer, text },
      'FROM inbox WHERE session_id = ? AND message > ? ORDER BY message',
    ),
    removeMessages(id, numbers) {
      for (const message of numbers) removeMessage(id, message)
    },
    findLastMessage: (id) => lastMessage(id)[0]?.last ?? 0,
  }
  return {
    ...table,
    /** Returns whether the lease was the session's latest. */
    renew: ({ sessionId, token }: Lease, expiresAt: number) => renew(expiresAt, sessionId, token) > 0,
    /** Appends a record and checks its preconditions in one statement. Returns false if a precondition fails. */
    follow: ({ sessionId, token }: Lease, record: LogRecord, time: number) =>
      follow(...toValues(sessionId, record, time), sessionId, token, time, record.seq) > 0,
    findUnread: (sessionIds: readonly string[]) => findUnread(JSON.stringify(sessionIds)),
    listUnread: select<UnreadInbox>(unreadFields, 'FROM inbox GROUP BY session_id'),
    timers: openTimers(prepare),
  }
}

function openTimers({ run, select }: Prepare): TimerTable {
  const fields = { id: text, at: integer, data: text }
  const get = select<StoredTimer>(fields, 'FROM timers WHERE id = ?')
  const byTime = select<StoredTimer>(
    fields,
    'FROM timers WHERE at <= ? AND (at > ? OR (at = ? AND id >= ?)) ORDER BY at, id LIMIT ?',
  )
  const set = run('INSERT INTO timers (id, at, data) VALUES (?, ?, ?)')
  const remove = run('DELETE FROM timers WHERE id = ?')
  return {
    get: (id) => get(id)[0],
    byTime: ({ at, id }, until, limit) => byTime(until, at, at, id, limit),
    byId: select<StoredTimer>(fields, 'FROM timers WHERE id >= ? ORDER BY id LIMIT ?'),
    set: ({ id, at, data }) => void set(id, at, data),
    delete: ({ id }) => void remove(id),
  }
}
