import type { LogRecord } from '../../core/sessions/store/store.js'
import { compareTimes, type StoredTimer, type TimerTable } from '../../core/sessions/store/timers.js'

type Value = string | number | null

/** What is used of `ctx.storage`, of a Durable Object with SQLite. */
export interface ObjectStorage {
  readonly sql: { exec(query: string, ...values: Value[]): { toArray(): Record<string, unknown>[] } }
  transactionSync<Result>(work: () => Result): Result
  setAlarm(at: number): Promise<void>
  deleteAlarm(): Promise<void>
}

/** What is known of a session besides its log and its inbox. */
export interface ObjectSession {
  id: string
  createdAt: number
  updatedAt: number
  head: number
  /** How many messages have been put into the inbox. */
  lastMessage: number
  /** JSON text. */
  summary: string | null
  title: string | null
  /** The latest lease; `instance`: the one of the object that holds it. */
  lease: { token: string; holder: string; instance: string; expiresAt: number } | null
}

/** A text of any length under a number: a record of a log, or a message of an inbox. */
export type Item = Pick<LogRecord, 'seq' | 'at' | 'data' | 'check'> & { type: string }
type Kind = 'record' | 'message'

/** A row holds 2 MB: a longer text has several. In units of UTF-16, none of which takes more than 3 bytes. */
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

/** The tables of the store, made in an object that does not have them. */
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
    /** The last snapshot at or before a record; 1: there is none. */
    findSnapshot(session: string, to: number): number {
      const query = `SELECT max(seq) AS seq FROM statewright_items
        WHERE session = ? AND kind = 'record' AND seq <= ? AND type = 'snapshot'`
      return run<{ seq: number | null }>(query, session, to)[0]?.seq ?? 1
    },
    /** The last message of an inbox; 0: there is none. */
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
    /** When the first timer is due; one that was due at `past` counts as `then`. Null: there is none. */
    findFirstTime(past: number, then: number): number | null {
      const query = 'SELECT min(CASE WHEN at > ? THEN at ELSE ? END) AS at FROM statewright_timers'
      return run<{ at: number | null }>(query, past, then)[0]?.at ?? null
    },
  }
}

/** No piece ends within a surrogate pair: SQLite keeps text as UTF-8. */
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
