import type { Listing, ResolvedRange } from '../../core/sessions/store/list-options.js'
import type { Lease, LogRecord, SessionSummary } from '../../core/sessions/store/store.js'
import type { StoredTimer } from '../../core/sessions/store/timers.js'
import type { InboxMessage, UnreadInbox } from '../../core/sessions/store/inbox.js'
import {
  type Prepare,
  closeDatabase,
  decodeText,
  emptyWriteAheadLog,
  selectBytes,
  selectInteger,
} from './database.js'
import { prepareDigestStatements } from './file-digests.js'
import type { SqliteDatabase } from './sqlite.js'
import {
  type SessionRow,
  headSql,
  listSessions,
  readSessionRow,
  sessionColumns,
  updatedAtSql,
} from './list-sessions.js'

const recordColumns = [
  ...['seq', 'at'].map(selectInteger),
  ...['type', 'data', 'checksum'].map(selectBytes),
].join(', ')

/**
 * The prepared statements of the file store. Every read runs to completion, because an open statement keeps the
 * database files open.
 */
export function prepareStatements(database: SqliteDatabase) {
  const one = (sql: string) => database.prepare(sql)
  const begin = one('BEGIN IMMEDIATE')
  const commit = one('COMMIT')
  const session = one(`SELECT ${sessionColumns} FROM sessions WHERE id = ?`)
  const take = one(`
    INSERT INTO sessions (id, token, holder, process, expires_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET token = excluded.token, holder = excluded.holder,
      process = excluded.process, expires_at = excluded.expires_at`)
  const renew = one('UPDATE sessions SET expires_at = ? WHERE id = ? AND token = ?')
  const release = one(
    `UPDATE sessions SET token = NULL, listed_at = ${updatedAtSql} WHERE id = ? AND token = ?`,
  )
  const insert = one(
    'INSERT INTO records (session_id, seq, at, type, data, checksum, written_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  const follow = one(`
    INSERT INTO records (session_id, seq, at, type, data, checksum, written_at)
    SELECT ?, ?, ?, ?, ?, ?, ? FROM sessions
    WHERE id = ? AND token = ? AND expires_at > ? AND ${headSql} = ? - 1`)
  const sumUp = one(
    'UPDATE sessions SET listed_at = ?, summary = ?, state = ?, agent = ?, parent = ? WHERE id = ?',
  )
  const entitle = one(
    'UPDATE sessions SET title = ? WHERE id = ? AND EXISTS (SELECT 1 FROM records WHERE session_id = id)',
  )
  const mark = one(
    'UPDATE sessions SET marks = ? WHERE id = ? AND EXISTS (SELECT 1 FROM records WHERE session_id = id AND seq = ?)',
  )
  const read = one(
    `SELECT ${recordColumns} FROM records WHERE session_id = ? AND seq BETWEEN ? AND ? ORDER BY seq`,
  )
  const lastSnapshot = one(`
    SELECT ${selectInteger('seq')} FROM records WHERE session_id = ? AND seq <= ? AND type = 'snapshot' ORDER BY seq DESC LIMIT 1`)
  const removeRecords = one('DELETE FROM records WHERE session_id = ?')
  const removeMessages = one('DELETE FROM inbox WHERE session_id = ?')
  const removeSession = one('DELETE FROM sessions WHERE id = ?')
  const tag = one(`
    INSERT INTO tags (session_id, name, value) VALUES (?, ?, ?)
    ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value WHERE value <> excluded.value`)
  const untag = one('DELETE FROM tags WHERE session_id = ? AND name NOT IN (SELECT value FROM json_each(?))')
  const relist = one(`
    UPDATE tags SET listed_at = (SELECT listed_at FROM sessions WHERE id = session_id) WHERE session_id = ?`)
  const removeUnwritten = one(`DELETE FROM sessions WHERE id = ? AND ${headSql} = 0 AND token IS NULL`)

  return {
    begin: () => begin.run([]),
    commit: () => commit.run([]),
    /** Rolls back. Also works if SQLite has already rolled back by itself, which happens on some errors. */
    rollback() {
      try {
        database.exec('ROLLBACK')
      } catch {}
    },
    session(id: string): SessionRow | null {
      const [row] = session.all([id])
      return row === undefined ? null : readSessionRow(row)
    },
    list: (listing: Listing): SessionRow[] => listSessions(one, listing),
    inbox: prepareInboxStatements(one),
    prepareBudgets: () => prepareBudgetStatements(database),
    prepareDigests: () => prepareDigestStatements(database),
    timers: prepareTimerStatements(one),
    take({ sessionId, token, holder, expiresAt }: Lease, process: string) {
      take.run([sessionId, token, holder, process, expiresAt])
    },
    renew: ({ sessionId, token }: Lease, expiresAt: number): boolean =>
      renew.run([expiresAt, sessionId, token]).changes > 0,
    /** Returns whether the lease was the session's latest. */
    release({ sessionId, token }: Lease): boolean {
      const isOurs = release.run([sessionId, token]).changes > 0
      relist.run([sessionId])
      if (removeUnwritten.run([sessionId]).changes > 0) untag.run([sessionId, '[]'])
      return isOurs
    },
    insert(sessionId: string, { seq, at, type, data, check }: LogRecord, time: number) {
      insert.run([sessionId, seq, at, type, data, check, time])
    },
    /** Appends a record and checks its preconditions in one statement. Returns false if a precondition fails. */
    follow({ sessionId, token }: Lease, { seq, at, type, data, check }: LogRecord, time: number): boolean {
      return (
        follow.run([sessionId, seq, at, type, data, check, time, sessionId, token, time, seq]).changes > 0
      )
    },
    sumUp(sessionId: string, time: number, summary: SessionSummary) {
      const { state, agent = null, parent = null, tags = {} } = summary
      sumUp.run([time, JSON.stringify(summary), state, agent, parent, sessionId])
      untag.run([sessionId, JSON.stringify(Object.keys(tags))])
      for (const [name, value] of Object.entries(tags)) tag.run([sessionId, name, value])
    },
    setTitle: (sessionId: string, title: string | null): boolean =>
      entitle.run([title, sessionId]).changes > 0,
    setMarks: (sessionId: string, seq: number, marks: string): boolean =>
      mark.run([marks, sessionId, seq]).changes > 0,
    read(sessionId: string, { from, to }: ResolvedRange): LogRecord[] {
      const first =
        from === 'snapshot' ? ((lastSnapshot.all([sessionId, to]) as [number][])[0]?.[0] ?? 1) : from
      return read.all([sessionId, first, to]).map(readLogRecord)
    },
    remove(id: string) {
      removeRecords.run([id])
      removeMessages.run([id])
      untag.run([id, '[]'])
      removeSession.run([id])
    },
    purge: (): boolean => emptyWriteAheadLog(database),
    close() {
      closeDatabase(database)
    },
  }
}

export type Statements = ReturnType<typeof prepareStatements>

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

const columns = `${selectBytes('id')}, ${selectInteger('at')}, ${selectBytes('data')}`

function prepareTimerStatements(one: Prepare) {
  const get = one(`SELECT ${columns} FROM timers WHERE id = ?`)
  const set = one(
    'INSERT INTO timers (id, at, data) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at, data = excluded.data',
  )
  const listDue = one(`
    SELECT ${columns} FROM timers WHERE at <= ? AND (at > ? OR (at = ? AND id > ?)) ORDER BY at, id LIMIT ?`)
  const list = one(`
    SELECT ${columns} FROM timers WHERE id > ? AND substr(id, 1, length(?)) = ? ORDER BY id LIMIT ?`)
  const move = one('UPDATE timers SET at = ? WHERE id = ? AND at = ?')
  const remove = one('DELETE FROM timers WHERE id = ? AND at = ?')

  return {
    get: (id: string): StoredTimer | null => get.all([id]).map(readTimer)[0] ?? null,
    set({ id, at, data }: StoredTimer) {
      set.run([id, at, data])
    },
    listDue: (time: number, limit: number, after: Pick<StoredTimer, 'at' | 'id'>): StoredTimer[] =>
      listDue.all([time, after.at, after.at, after.id, limit]).map(readTimer),
    list: (prefix: string, limit: number, after: string): StoredTimer[] =>
      list.all([after, prefix, prefix, limit]).map(readTimer),
    /** Returns whether the timer was set to that time. */
    move: (id: string, from: number, to: number | null): boolean =>
      (to === null ? remove.run([id, from]) : move.run([to, id, from])).changes > 0,
  }
}

function readTimer(row: unknown): StoredTimer {
  const [id, at, data] = row as [Uint8Array, number, Uint8Array]
  return { id: decodeText(id), at, data: decodeText(data) }
}

function prepareInboxStatements(one: Prepare) {
  const count = one('UPDATE sessions SET last_message = last_message + 1 WHERE id = ?')
  const put = one(
    'INSERT INTO inbox (session_id, message, at, text) SELECT id, last_message, ?, ? FROM sessions WHERE id = ?',
  )
  const read = one(
    `SELECT ${selectInteger('message')}, ${selectInteger('at')}, ${selectBytes('text')} FROM inbox
     WHERE session_id = ? AND message > ? ORDER BY message`,
  )
  const number = one(`SELECT ${selectInteger('last_message')} FROM sessions WHERE id = ?`)
  const last = one('SELECT max(message) FROM inbox WHERE session_id = ?')
  const remove = one('DELETE FROM inbox WHERE session_id = ? AND message = ?')
  const findUnread = one(`
    SELECT ${selectBytes('session_id')}, max(message) FROM inbox
    WHERE session_id IN (SELECT value FROM json_each(?)) GROUP BY session_id`)
  const listUnread = one(`SELECT ${selectBytes('session_id')}, max(message) FROM inbox GROUP BY session_id`)
  const toNews = (rows: unknown): UnreadInbox[] =>
    (rows as [Uint8Array, number][]).map(([id, inbox]) => ({ sessionId: decodeText(id), inbox }))

  return {
    put(sessionId: string, time: number, message: string): number {
      count.run([sessionId])
      put.run([time, message, sessionId])
      return (number.all([sessionId]) as [number][])[0]?.[0] ?? 0
    },
    read: (sessionId: string, after = 0): InboxMessage[] =>
      (read.all([sessionId, after]) as [number, number, Uint8Array][]).map(([message, at, words]) => ({
        message,
        at,
        text: decodeText(words),
      })),
    last: (sessionId: string): number => (last.all([sessionId]) as [number | null][])[0]?.[0] ?? 0,
    remove(sessionId: string, message: number) {
      remove.run([sessionId, message])
    },
    findUnread: (sessionIds: readonly string[]): UnreadInbox[] =>
      toNews(findUnread.all([JSON.stringify(sessionIds)])),
    listUnread: (): UnreadInbox[] => toNews(listUnread.all([])),
  }
}

const budgetTablesSql = `
  CREATE TABLE IF NOT EXISTS log.budgets (
    id TEXT PRIMARY KEY,
    terms TEXT NOT NULL,
    window_at INTEGER NOT NULL,
    spent_usd INTEGER NOT NULL,
    spent_tokens INTEGER NOT NULL,
    reserved_usd INTEGER NOT NULL,
    reserved_tokens INTEGER NOT NULL,
    live INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS log.budget_reservations (
    id TEXT PRIMARY KEY,
    budget TEXT NOT NULL,
    window_at INTEGER NOT NULL,
    usd INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    lost TEXT
  ) STRICT;
  CREATE INDEX IF NOT EXISTS log.budget_expiry ON budget_reservations (budget, expires_at);
`

const rowColumns = [
  ...['id', 'terms'].map(selectBytes),
  ...['window_at', 'spent_usd', 'spent_tokens', 'reserved_usd', 'reserved_tokens', 'live'].map(selectInteger),
].join(', ')
const reservationColumns = [
  selectBytes('id'),
  ...['window_at', 'usd', 'tokens', 'expires_at'].map(selectInteger),
  selectBytes('lost'),
].join(', ')

export type BudgetValues = [Uint8Array, Uint8Array, number, number, number, number, number, number]
export type ReservationValues = [Uint8Array, number, number, number, number, Uint8Array | null]

/** Creates the tables for budgets if they are missing. */
function prepareBudgetStatements(database: SqliteDatabase) {
  const one = (sql: string) => database.prepare(sql)
  database.exec(budgetTablesSql)
  return {
    row: one(`SELECT ${rowColumns} FROM budgets WHERE id = ?`),
    rows: one(`SELECT ${rowColumns} FROM budgets ORDER BY id`),
    put: one(`
      INSERT INTO budgets (id, terms, window_at, spent_usd, spent_tokens, reserved_usd, reserved_tokens, live)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET terms = excluded.terms, window_at = excluded.window_at,
        spent_usd = excluded.spent_usd, spent_tokens = excluded.spent_tokens, reserved_usd = excluded.reserved_usd,
        reserved_tokens = excluded.reserved_tokens, live = excluded.live`),
    expired: one(`
      SELECT ${reservationColumns} FROM budget_reservations
      WHERE budget = ? AND lost IS NULL AND expires_at <= ?`),
    forget: one('DELETE FROM budget_reservations WHERE budget = ? AND lost IS NOT NULL AND expires_at <= ?'),
    reservation: one(`SELECT ${reservationColumns} FROM budget_reservations WHERE id = ?`),
    hold: one(`
      INSERT INTO budget_reservations (id, budget, window_at, usd, tokens, expires_at, lost) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET lost = excluded.lost`),
    drop: one('DELETE FROM budget_reservations WHERE id = ?'),
    renew: one('UPDATE budget_reservations SET expires_at = ? WHERE id = ? AND lost IS NULL'),
  }
}
