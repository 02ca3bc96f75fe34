import type { InboxMessage, UnreadInbox } from '../../core/sessions/store/inbox.js'
import type { Lease, LogRecord } from '../../core/sessions/store/store.js'
import type { SessionTable } from '../../core/sessions/store/table-store.js'
import type { StoredTimer, TimerTable } from '../../core/sessions/store/timers.js'
import { type Prepare, integer, text, createPrepare, textOrNull, type Wrap } from './database.js'
import { headSql, listSessions, selectSessions, createdAtSql } from './list-sessions.js'
import type { BudgetStore } from '../../core/budgets/budget-store.js'
import { type BudgetRecord, type KeptReservation, forgottenMs } from '../../core/budgets/ledger.js'
import { createTableBudgets } from '../../core/budgets/table-budgets.js'
import type { SqliteDatabase } from './sqlite.js'
import type { DigestTable, LogDigest } from '../../core/sessions/store/log-digests.js'

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

const amounts = { spentUsd: integer, spentTokens: integer, reservedUsd: integer, reservedTokens: integer }
const budgetFields = { budget: text('id'), terms: text, windowAt: integer, live: integer, ...amounts }
type BudgetRow = Omit<BudgetRecord, 'spent' | 'reserved'> & Record<keyof typeof amounts, number>

const reservationFields = {
  reservation: text('id'),
  windowAt: integer,
  nanoUsd: integer('usd'),
  tokens: integer,
  expiresAt: integer,
  lost: textOrNull,
}

/** Creates the tables for budgets if they are missing. `write` runs a transaction. */
export function createFileBudgets(database: SqliteDatabase, write: Wrap, now: () => number): BudgetStore {
  database.exec(budgetTablesSql)
  const { run, select } = createPrepare(database)
  const budget = select<BudgetRow>(budgetFields, 'FROM budgets WHERE id = ?')
  const budgets = select<BudgetRow>(budgetFields, 'FROM budgets ORDER BY id')
  const putBudget = run(`
    INSERT OR REPLACE INTO budgets
      (id, terms, window_at, spent_usd, spent_tokens, reserved_usd, reserved_tokens, live)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
  const reservation = select<KeptReservation>(reservationFields, 'FROM budget_reservations WHERE id = ?')
  const putReservation = run(`
    INSERT OR REPLACE INTO budget_reservations (budget, id, window_at, usd, tokens, expires_at, lost)
    VALUES (?, ?, ?, ?, ?, ?, ?)`)
  const expired = select<KeptReservation>(
    reservationFields,
    'FROM budget_reservations WHERE budget = ? AND lost IS NULL AND expires_at <= ?',
  )
  const forget = run(
    'DELETE FROM budget_reservations WHERE budget = ? AND lost IS NOT NULL AND expires_at <= ?',
  )
  const remove = run('DELETE FROM budget_reservations WHERE id = ?')
  const renew = run('UPDATE budget_reservations SET expires_at = ? WHERE id = ? AND lost IS NULL')
  return createTableBudgets(
    {
      budget: (id) => budget(id).map(toBudget)[0],
      budgets: () => budgets().map(toBudget),
      putBudget({ budget, terms, windowAt, spent, reserved, live }) {
        const { nanoUsd, tokens } = reserved
        putBudget(budget, terms, windowAt, spent.nanoUsd, spent.tokens, nanoUsd, tokens, live)
      },
      reservation: (id) => reservation(id)[0],
      putReservation(budget, { reservation: id, windowAt, nanoUsd, tokens, expiresAt, lost }) {
        putReservation(budget, id, windowAt, nanoUsd, tokens, expiresAt, lost)
      },
      removeReservation: (id) => void remove(id),
      renewReservation: (id, expiresAt) => void renew(expiresAt, id),
      takeExpired(budget, time) {
        forget(budget, time - forgottenMs)
        return expired(budget, time)
      },
    },
    now,
    write,
  )
}

function toBudget({ spentUsd, spentTokens, reservedUsd, reservedTokens, ...row }: BudgetRow): BudgetRecord {
  const spent = { nanoUsd: spentUsd, tokens: spentTokens }
  return { ...row, spent, reserved: { nanoUsd: reservedUsd, tokens: reservedTokens } }
}

/** The table for digests, which is created on first use. A trigger deletes digests with their sessions. */
const digestTableSql = `
  CREATE TABLE IF NOT EXISTS log.digests (
    session_id TEXT PRIMARY KEY,
    head INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    data TEXT NOT NULL
  ) STRICT;
  CREATE TRIGGER IF NOT EXISTS log.session_deleted AFTER DELETE ON sessions BEGIN
    DELETE FROM digests WHERE session_id = OLD.id;
  END;
`

/** Creates the table for digests if it is missing. `write` runs a transaction, and `use` runs a read. */
export function createFileDigests(database: SqliteDatabase, write: Wrap, use: Wrap): DigestTable {
  database.exec(digestTableSql)
  const { run, select } = createPrepare(database)
  const read = select<LogDigest>(
    { sessionId: text, head: integer, createdAt: integer, data: text },
    'FROM digests WHERE session_id IN (SELECT value FROM json_each(?))',
  )
  const put = run(`
    INSERT INTO digests (session_id, head, created_at, data)
    SELECT ?, ?, ?, ? FROM sessions WHERE id = ? AND ${headSql} = ? AND ${createdAtSql} = ?
    ON CONFLICT (session_id) DO UPDATE SET head = excluded.head, created_at = excluded.created_at, data = excluded.data`)
  return {
    read: (sessionIds) => use(() => read(JSON.stringify(sessionIds))),

    put: (digests) =>
      write(() => {
        for (const { sessionId, head, createdAt, data } of digests)
          put(sessionId, head, createdAt, data, sessionId, head, createdAt)
      }),
  }
}
