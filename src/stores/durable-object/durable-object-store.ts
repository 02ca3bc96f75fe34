import { createId } from '../../core/base/platform.js'
import { systemClock, toWholeTime } from '../../core/base/clock.js'
import { StatewrightError, configError } from '../../core/base/errors.js'
import { expectArgument, objectRule, getOrCreate } from '../../core/base/values.js'
import { isListed } from '../../core/sessions/store/list-options.js'
import { parseSummary } from '../../core/sessions/store/session-title.js'
import type { LogRecord, SyncSessionStore } from '../../core/sessions/store/store.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import {
  createTableStore,
  type SessionRow,
  type SessionTable,
} from '../../core/sessions/store/table-store.js'
import {
  createTableTimers,
  compareTimes,
  type StoredTimer,
  type TimerTable,
} from '../../core/sessions/store/timers.js'

/** Options for `durableObjectStore`. */
export interface DurableObjectStoreOptions {
  /** `ctx.storage` of an object whose class is in `new_sqlite_classes`. The store uses the object's alarm. */
  storage: ObjectStorage
  /** Returns the time in milliseconds since the epoch. Defaults to `Date.now`. */
  now?: () => number
}

const soonestMs = 10
/** Minimum delay of the next alarm. An alarm for the time when it fires is dropped, and the clock may lag. */
const soonestAgainMs = 1000
/** Retry delay for due sessions that this program cannot wake, because they belong to another deployment or program. */
const overdueMs = 60_000

/** Cloudflare runs one instance of an object at a time, so the leases of other instances are void. */
const instances = new WeakMap<ObjectStorage, string>()

/**
 * Sessions in the storage of a Durable Object. Use a separate object for each session. The object also stores the
 * sessions of the session's sub-agents. Cloudflare holds back output, including model requests, until writes are
 * durable. The alarm fires when a session is due. See `wakeSessions`.
 *
 * @example
 * const openStore = (ctx: { storage: ObjectStorage }) => durableObjectStore({ storage: ctx.storage }) // in the object's constructor
 * @throws {ConfigError} `invalid_config` for a storage without SQLite
 */
export function durableObjectStore(options: DurableObjectStoreOptions): SyncSessionStore {
  const { storage, now: clock = () => systemClock.now() } = checkOptions(options)
  const now = toWholeTime(clock)
  const instance = getOrCreate(instances, storage, createId)
  const tables = translateErrors(() => openTables(storage))
  const timers = createTableTimers(now, tables.timers)
  let isClosed = false
  /** All timers before this time have been read. */
  let readUntil = Number.MIN_SAFE_INTEGER

  const use = <Value>(work: () => Value): Value => {
    if (isClosed) throw new StoreError('store_unavailable', 'The store is closed. Open it again.')
    return translateErrors(work)
  }
  const write = <Value>(work: () => Value): Value => use(() => storage.transactionSync(work))

  /** Changes timers, then sets the alarm. `isRung`: it has fired, and the due sessions have been woken. */
  const writeTimers = <Value>(work: () => Value, isRung = false): Value => {
    const value = write(work)
    const time = now()
    const first = use(() =>
      tables.findFirstTime(isRung ? readUntil : Number.MIN_SAFE_INTEGER, time + overdueMs),
    )
    const soonest = time + (isRung ? soonestAgainMs : soonestMs)
    const set = first === null ? storage.deleteAlarm() : storage.setAlarm(Math.max(first, soonest))
    // Cloudflare resets an object whose alarm cannot be set.
    void set.catch(() => undefined)
    return value
  }

  return {
    ...createTableStore({ table: tables, now, instance, use, write }),

    close() {
      isClosed = true
    },

    timers: {
      get: (id) => use(() => timers.get(id)),
      set: (changes) => writeTimers(() => timers.set(changes), changes.length === 0),
      listDue(options) {
        const due = use(() => timers.listDue(options))
        readUntil = due.now
        return due
      },
      list: (options) => use(() => timers.list(options)),
      move: (step) => writeTimers(() => timers.move(step)),
    },
  }
}

function checkOptions(options: DurableObjectStoreOptions): DurableObjectStoreOptions {
  const rule = objectRule([], 'an object with the storage: { storage: ctx.storage }')
  expectArgument('durableObjectStore(options)', options, rule)
  const storage = (options.storage ?? {}) as { [Name in keyof ObjectStorage]?: unknown }
  const exec = (storage.sql as { exec?: unknown } | undefined)?.exec
  if (![exec, storage.transactionSync, storage.setAlarm].every((method) => typeof method === 'function')) {
    throw configError(
      'storage must be ctx.storage of a Durable Object with SQLite: list its class in new_sqlite_classes.',
      'storage',
    )
  }
  return options
}

function translateErrors<Value>(work: () => Value): Value {
  try {
    return work()
  } catch (error) {
    if (error instanceof StatewrightError) throw error
    const why = error instanceof Error ? error.message : String(error)
    const text = `The Durable Object's storage cannot be used: ${why}.`
    throw new StoreError('store_unavailable', text, 'storage', { cause: error })
  }
}

type Value = string | number | null

/** The parts of `ctx.storage` that are used, in a Durable Object with SQLite. */
export interface ObjectStorage {
  readonly sql: { exec(query: string, ...values: Value[]): { toArray(): Record<string, unknown>[] } }
  transactionSync<Result>(work: () => Result): Result
  setAlarm(at: number): Promise<void>
  deleteAlarm(): Promise<void>
}

/** A numbered text, which is a log record or an inbox message. */
type Item = Pick<LogRecord, 'seq' | 'at' | 'data' | 'check'> & { type: string }
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

interface ObjectTables extends SessionTable {
  timers: TimerTable
  /** Time of the first timer, or null. A timer that was due by `past` counts as due at `then`. */
  findFirstTime(past: number, then: number): number | null
}

function openTables({ sql }: ObjectStorage): ObjectTables {
  const run = <Row>(query: string, ...values: Value[]): Row[] => sql.exec(query, ...values).toArray() as Row[]
  run(tablesSql)
  const parse = ({ data }: { data: string }): SessionRow => {
    const row = JSON.parse(data) as SessionRow
    return { ...row, summary: parseSummary(row.summary) }
  }
  const addItem = (session: string, kind: Kind, { seq, at, type, data, check }: Item): void => {
    splitText(data).forEach((piece, part) => {
      const values = [session, kind, seq, part, at, type, piece, check]
      run('INSERT INTO statewright_items VALUES (?, ?, ?, ?, ?, ?, ?, ?)', ...values)
    })
  }
  const listItems = (session: string, kind: Kind, from: number, to = Number.MAX_SAFE_INTEGER): Item[] => {
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
  }
  const selectTimers = (where = '', ...values: Value[]): StoredTimer[] =>
    run(`SELECT id, at, data FROM statewright_timers ${where}`, ...values)
  const findLast = (session: string, kind: Kind, where = '', ...values: Value[]): number | undefined => {
    const query = `SELECT max(seq) AS seq FROM statewright_items WHERE session = ? AND kind = ? ${where}`
    return run<{ seq: number | null }>(query, session, kind, ...values)[0]?.seq ?? undefined
  }
  const putSession = (row: SessionRow): void => {
    const data = JSON.stringify({ ...row, summary: row.summary && JSON.stringify(row.summary) })
    run('INSERT OR REPLACE INTO statewright_sessions (id, data) VALUES (?, ?)', row.id, data)
  }

  return {
    session: (id) =>
      run<{ data: string }>('SELECT data FROM statewright_sessions WHERE id = ?', id).map(parse)[0],
    list: (listing) =>
      run<{ data: string }>('SELECT data FROM statewright_sessions')
        .map(parse)
        .filter((row) => isListed(listing, row)),
    putSession,
    removeSession(id) {
      run('DELETE FROM statewright_items WHERE session = ?', id)
      run('DELETE FROM statewright_sessions WHERE id = ?', id)
    },

    addRecords(session, records) {
      for (const record of records) addItem(session, 'record', record)
    },
    records: (session, from, to) => listItems(session, 'record', from, to) as LogRecord[],
    findSnapshot: (session, to) => findLast(session, 'record', "AND seq <= ? AND type = 'snapshot'", to) ?? 1,

    addMessage(row, { message, at, text }) {
      putSession(row)
      addItem(row.id, 'message', { seq: message, at, type: '', data: text, check: '' })
    },
    messages: (session, after) =>
      listItems(session, 'message', after + 1).map(({ seq, at, data }) => ({ message: seq, at, text: data })),
    removeMessages(session, messages) {
      const query = "DELETE FROM statewright_items WHERE session = ? AND kind = 'message' AND seq = ?"
      for (const message of messages) run(query, session, message)
    },
    findLastMessage: (session) => findLast(session, 'message') ?? 0,

    timers: {
      get: (id) => selectTimers('WHERE id = ?', id)[0],
      // An object has only the timers of one session and its sub-agents.
      byTime: () => selectTimers().sort(compareTimes),
      byId: (id) => selectTimers('WHERE id >= ? ORDER BY id', id),
      set({ id, at, data }) {
        run('INSERT OR REPLACE INTO statewright_timers (id, at, data) VALUES (?, ?, ?)', id, at, data)
      },
      delete: ({ id }) => void run('DELETE FROM statewright_timers WHERE id = ?', id),
    },
    findFirstTime(past, then) {
      const query = 'SELECT min(CASE WHEN at > ? THEN at ELSE ? END) AS at FROM statewright_timers'
      return run<{ at: number | null }>(query, past, then)[0]?.at ?? null
    },
  }
}

/** Splits a text without splitting a surrogate pair, because SQLite stores UTF-8. */
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
