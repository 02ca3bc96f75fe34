import type { LogRecord } from '../../core/sessions/store/store.js'
import { compareTimes, type StoredTimer, type TimerTable } from '../../core/sessions/store/timers.js'

type Value = string | number | null

/** The part of `ctx.storage` that is used, of a Durable Object with SQLite. */
export interface ObjectStorage {
  readonly sql: { exec(query: string, ...values: Value[]): { toArray(): Record<string, unknown>[] } }
  transactionSync<Result>(work: () => Result): Result
  setAlarm(at: number): Promise<void>
  deleteAlarm(): Promise<void>
}

/** A session's row. */
export interface ObjectSession {
  id: string
  createdAt: number
  updatedAt: number
  head: number
  /** Number of messages put into the inbox. */
  lastMessage: number
  /** JSON. */
  summary: string | null
  title: string | null
  /** The latest lease. `instance` is the object instance that holds it. */
  lease: { token: string; holder: string; instance: string; expiresAt: number } | null
}

/** A numbered text, which is a log record or an inbox message. */
export type Item = Pick<LogRecord, 'seq' | 'at' | 'data' | 'check'> & { type: string }
type Kind = 'record' | 'message'

/** A row holds 2 MB, so longer texts are split. Counted in UTF-16 units of at most 3 bytes each. */
const maxPart = 500_000

const tablesSql = `
  CREATE TABLE IF NOT EXISTS statewright_sessions (id TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS statewright_items (
    session TEXT NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL, part INTEGER NOT NULL,
    at INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL, checksum TEXT NOT NULL,
    PRIMARY KEY (session, kind, seq, part)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS statewright_timers (id TEXT PRIMARY KEY, at INTEGER NOT NULL, data TEXT NOT NULL) STRICT;
`

/** Opens the tables, and creates missing ones. */
export function openTables({ sql }: ObjectStorage) {
  const run = <Row>(query: string, ...values: Value[]): Row[] => sql.exec(query, ...values).toArray() as Row[]
  run(tablesSql)
  const parse = ({ data }: { data: string }): ObjectSession => JSON.parse(data) as ObjectSession

  return {
    session: (id: string): ObjectSession | null =>
      run<{ data: string }>('SELECT data FROM statewright_sessions WHERE id = ?', id).map(parse)[0] ?? null,
    sessions: (): ObjectSession[] =>
      run<{ data: string }>('SELECT data FROM statewright_sessions').map(parse),
    putSession(row: ObjectSession) {
      run('INSERT OR REPLACE INTO statewright_sessions (id, data) VALUES (?, ?)', row.id, JSON.stringify(row))
    },
    removeSession(id: string) {
      run('DELETE FROM statewright_items WHERE session = ?', id)
      run('DELETE FROM statewright_sessions WHERE id = ?', id)
    },

    addItem(session: string, kind: Kind, { seq, at, type, data, check }: Item) {
      splitText(data).forEach((piece, part) => {
        const values = [session, kind, seq, part, at, type, piece, check]
        run('INSERT INTO statewright_items VALUES (?, ?, ?, ?, ?, ?, ?, ?)', ...values)
      })
    },
    items(session: string, kind: Kind, from: number, to = Number.MAX_SAFE_INTEGER): Item[] {
      const items: Item[] = []
      const rows = run<Item & { part: number }>(
        `SELECT seq, part, at, type, data, checksum AS "check" FROM statewright_items
         WHERE session = ? AND kind = ? AND seq BETWEEN ? AND ? ORDER BY seq, part`,
        session,
        kind,
        from,
        to,
      )
      for (const { part, ...item } of rows) {
        const last = items.at(-1)
        if (part > 0 && last) last.data += item.data
        else items.push(item)
      }
      return items
    },
    removeMessage(session: string, message: number) {
      const query = "DELETE FROM statewright_items WHERE session = ? AND kind = 'message' AND seq = ?"
      run(query, session, message)
    },
    /** Sequence number of the last snapshot up to a record; 1 if there is none. */
    findSnapshot(session: string, to: number): number {
      const query = `SELECT max(seq) AS seq FROM statewright_items
        WHERE session = ? AND kind = 'record' AND seq <= ? AND type = 'snapshot'`
      return run<{ seq: number | null }>(query, session, to)[0]?.seq ?? 1
    },
    /** Number of the last inbox message; 0 if there is none. */
    findLastMessage(session: string): number {
      const query = "SELECT max(seq) AS seq FROM statewright_items WHERE session = ? AND kind = 'message'"
      return run<{ seq: number | null }>(query, session)[0]?.seq ?? 0
    },

    timers: {
      get: (id) => run<StoredTimer>('SELECT id, at, data FROM statewright_timers WHERE id = ?', id)[0],
      // An object has the timers of one session and its sub-agents.
      byTime: () => run<StoredTimer>('SELECT id, at, data FROM statewright_timers').sort(compareTimes),
      byId: (id) =>
        run<StoredTimer>('SELECT id, at, data FROM statewright_timers')
          .filter((timer) => timer.id >= id)
          .sort((a, b) => (a.id < b.id ? -1 : 1)),
      set({ id, at, data }) {
        run('INSERT OR REPLACE INTO statewright_timers (id, at, data) VALUES (?, ?, ?)', id, at, data)
      },
      delete({ id }) {
        run('DELETE FROM statewright_timers WHERE id = ?', id)
      },
    } satisfies TimerTable,
    /** Time of the first timer, or null. A timer due at `past` counts as due at `then`. */
    findFirstTime(past: number, then: number): number | null {
      const query = 'SELECT min(CASE WHEN at > ? THEN at ELSE ? END) AS at FROM statewright_timers'
      return run<{ at: number | null }>(query, past, then)[0]?.at ?? null
    },
  }
}

/** Never splits a surrogate pair, because SQLite stores UTF-8. */
function splitText(text: string): string[] {
  const pieces: string[] = []
  let from = 0
  do {
    const end = from + maxPart
    const to = /[\uD800-\uDBFF]/.test(text.charAt(end - 1)) ? end + 1 : end
    pieces.push(text.slice(from, to))
    from = to
  } while (from < text.length)
  return pieces
}
