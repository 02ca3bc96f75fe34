import type { InboxMessage, UnreadInbox } from '../../core/sessions/store/inbox.js'
import type { Lease, LogRecord } from '../../core/sessions/store/store.js'
import type { SessionTable } from '../../core/sessions/store/table-store.js'
import type { StoredTimer, TimerTable } from '../../core/sessions/store/timers.js'
import { type Prepare, decodeText, selectBytes, selectInteger } from './database.js'
import { headSql, listSessions, readSessionRow, sessionColumns } from './list-sessions.js'
import type { SqliteDatabase } from './sqlite.js'

interface FileTables extends SessionTable {
  timers: TimerTable
  /** Returns whether the lease was the session's latest. */
  renew(lease: Lease, expiresAt: number): boolean
  /** Appends a record and checks its preconditions in one statement. Returns false if a precondition fails. */
  follow(lease: Lease, record: LogRecord, time: number): boolean
  findUnread(sessionIds: readonly string[]): UnreadInbox[]
  listUnread(): UnreadInbox[]
}

const recordColumns = [
  ...['seq', 'at'].map(selectInteger),
  ...['type', 'data', 'checksum'].map(selectBytes),
].join(', ')

const ownColumns = ['title', 'marks', 'listed_at', 'token', 'holder', 'process', 'expires_at']
const summaryColumns = ['summary', 'state', 'agent', 'parent']

/** Prepares the statements. Every read runs to completion, because an open statement keeps the database files open. */
export function openTables(database: SqliteDatabase): FileTables {
  const one = (sql: string) => database.prepare(sql)
  const columns = [...ownColumns, ...summaryColumns]
  const session = one(`SELECT ${sessionColumns} FROM sessions WHERE id = ?`)
  // Without a summary, the stored one is kept, even if it is damaged.
  const put = one(`
    INSERT INTO sessions (id, ${columns.join(', ')}) VALUES (?, ${columns.map(() => '?').join(', ')})
    ON CONFLICT (id) DO UPDATE SET ${[
      ...ownColumns.map((column) => `${column} = excluded.${column}`),
      ...summaryColumns.map(
        (column) => `${column} = iif(excluded.summary IS NULL, ${column}, excluded.${column})`,
      ),
    ].join(', ')}`)
  const renew = one('UPDATE sessions SET expires_at = ? WHERE id = ? AND token = ?')
  const insertSql = 'INSERT INTO records (session_id, seq, at, type, data, checksum, written_at)'
  const insert = one(`${insertSql} VALUES (?, ?, ?, ?, ?, ?, ?)`)
  const follow = one(`
    ${insertSql} SELECT ?, ?, ?, ?, ?, ?, ? FROM sessions
    WHERE id = ? AND token = ? AND expires_at > ? AND ${headSql} = ? - 1`)
  const toValues = (id: string, { seq, at, type, data, check }: LogRecord, time: number) =>
    [id, seq, at, type, data, check, time] as const
  const read = one(
    `SELECT ${recordColumns} FROM records WHERE session_id = ? AND seq BETWEEN ? AND ? ORDER BY seq`,
  )
  const lastSnapshot = one(`
    SELECT ${selectInteger('seq')} FROM records WHERE session_id = ? AND seq <= ? AND type = 'snapshot' ORDER BY seq DESC LIMIT 1`)
  const tag = one(`
    INSERT INTO tags (session_id, name, value, listed_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value, listed_at = excluded.listed_at
    WHERE value <> excluded.value OR listed_at <> excluded.listed_at`)
  const untag = one('DELETE FROM tags WHERE session_id = ? AND name NOT IN (SELECT value FROM json_each(?))')
  const removals = [
    ...['records', 'inbox', 'tags'].map((table) => one(`DELETE FROM ${table} WHERE session_id = ?`)),
    one('DELETE FROM sessions WHERE id = ?'),
  ]
  const countMessages = one('UPDATE sessions SET last_message = ? WHERE id = ?')
  const addMessage = one('INSERT INTO inbox (session_id, message, at, text) VALUES (?, ?, ?, ?)')
  const messages = one(
    `SELECT ${selectInteger('message')}, ${selectInteger('at')}, ${selectBytes('text')} FROM inbox
     WHERE session_id = ? AND message > ? ORDER BY message`,
  )
  const lastMessage = one('SELECT max(message) FROM inbox WHERE session_id = ?')
  const removeMessage = one('DELETE FROM inbox WHERE session_id = ? AND message = ?')
  const findUnread = one(`
    SELECT ${selectBytes('session_id')}, max(message) FROM inbox
    WHERE session_id IN (SELECT value FROM json_each(?)) GROUP BY session_id`)
  const listUnread = one(`SELECT ${selectBytes('session_id')}, max(message) FROM inbox GROUP BY session_id`)

  return {
    session: (id) => session.all([id]).map(readSessionRow)[0],
    list: (listing) => listSessions(one, listing),
    putSession({ id, title, marks, updatedAt, lease, summary }) {
      const { token = null, holder = null, instance = null, expiresAt = 0 } = lease ?? {}
      const { state = null, agent = null, parent = null, tags = {} } = summary ?? {}
      const text = summary && JSON.stringify(summary)
      const own = [title, marks, updatedAt, token, holder, instance, expiresAt]
      put.run([id, ...own, text, state, agent, parent])
      if (summary) untag.run([id, JSON.stringify(Object.keys(tags))])
      for (const [name, value] of Object.entries(tags)) tag.run([id, name, value, updatedAt])
    },
    removeSession(id) {
      for (const removal of removals) removal.run([id])
    },
    renew: ({ sessionId, token }, expiresAt) => renew.run([expiresAt, sessionId, token]).changes > 0,

    addRecords(id, records, time) {
      for (const record of records) insert.run(toValues(id, record, time))
    },
    follow({ sessionId, token }, record, time) {
      const values = [...toValues(sessionId, record, time), sessionId, token, time, record.seq]
      return follow.run(values).changes > 0
    },
    records: (id, from, to) => read.all([id, from, to]).map(readLogRecord),
    findSnapshot: (id, to) => (lastSnapshot.all([id, to]) as [number][])[0]?.[0] ?? 1,

    addMessage({ id }, { message, at, text }) {
      countMessages.run([message, id])
      addMessage.run([id, message, at, text])
    },
    messages: (id, after) => messages.all([id, after]).map(readMessage),
    removeMessages(id, numbers) {
      for (const message of numbers) removeMessage.run([id, message])
    },
    findLastMessage: (id) => (lastMessage.all([id]) as [number | null][])[0]?.[0] ?? 0,
    findUnread: (sessionIds) => findUnread.all([JSON.stringify(sessionIds)]).map(readUnread),
    listUnread: () => listUnread.all([]).map(readUnread),

    timers: openTimers(one),
  }
}

function readLogRecord(row: unknown): LogRecord {
  const [seq, at, type, data, check] = row as [number, number, Uint8Array, Uint8Array, Uint8Array]
  return {
    seq,
    at,
    type: decodeText(type) as LogRecord['type'],
    data: decodeText(data),
    check: decodeText(check),
  }
}

function readMessage(row: unknown): InboxMessage {
  const [message, at, text] = row as [number, number, Uint8Array]
  return { message, at, text: decodeText(text) }
}

function readUnread(row: unknown): UnreadInbox {
  const [id, inbox] = row as [Uint8Array, number]
  return { sessionId: decodeText(id), inbox }
}

function openTimers(one: Prepare): TimerTable {
  const select = `SELECT ${selectBytes('id')}, ${selectInteger('at')}, ${selectBytes('data')} FROM timers`
  const get = one(`${select} WHERE id = ?`)
  const byTime = one(`${select} WHERE at <= ? AND (at > ? OR (at = ? AND id >= ?)) ORDER BY at, id LIMIT ?`)
  const byId = one(`${select} WHERE id >= ? ORDER BY id LIMIT ?`)
  const set = one('INSERT INTO timers (id, at, data) VALUES (?, ?, ?)')
  const remove = one('DELETE FROM timers WHERE id = ?')
  return {
    get: (id) => get.all([id]).map(readTimer)[0],
    byTime: ({ at, id }, until, limit) => byTime.all([until, at, at, id, limit]).map(readTimer),
    byId: (id, limit) => byId.all([id, limit]).map(readTimer),
    set: ({ id, at, data }) => void set.run([id, at, data]),
    delete: ({ id }) => void remove.run([id]),
  }
}

function readTimer(row: unknown): StoredTimer {
  const [id, at, data] = row as [Uint8Array, number, Uint8Array]
  return { id: decodeText(id), at, data: decodeText(data) }
}
