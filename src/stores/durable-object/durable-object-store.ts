import { createId } from '../../core/base/platform.js'
import { systemClock, toWholeTime } from '../../core/base/clock.js'
import { ConfigError, StatewrightError } from '../../core/base/errors.js'
import { expectArgument, objectRule } from '../../core/base/values.js'
import {
  checkListOptions,
  compareListed,
  isListed,
  resolveRange,
} from '../../core/sessions/store/list-options.js'
import { checkSessionId } from '../../core/sessions/store/session-id.js'
import { parseSummary, withTitle } from '../../core/sessions/store/session-title.js'
import { changeMarks, parseMarks } from '../../core/sessions/store/step-marks.js'
import type { Lease, ListedSession, LogRecord, SyncSessionStore } from '../../core/sessions/store/store.js'
import {
  checkFollows,
  checkRecords,
  getExpiry,
  leaseLostError,
  sessionBusyError,
  StoreError,
  unknownSessionError,
} from '../../core/sessions/store/store-error.js'
import {
  createTableTimers,
  compareTimes,
  type StoredTimer,
  type TimerTable,
} from '../../core/sessions/store/timers.js'

/** Options of `durableObjectStore`. */
export interface DurableObjectStoreOptions {
  /** `ctx.storage` of an object whose class is in `new_sqlite_classes`. The store uses its alarm. */
  storage: ObjectStorage
  /** Milliseconds since the epoch. Default: `Date.now`. */
  now?: () => number
}

/** Minimum delay of the alarm. */
const soonestMs = 10
/**
 * Minimum delay after the alarm has fired. An alarm set to the time at which it fires is dropped, and the object's
 * clock may lag behind.
 */
const soonestAgainMs = 1000
/**
 * Retry delay for due sessions that this program cannot wake, because they belong to another deployment or program.
 */
const overdueMs = 60_000

/** Cloudflare runs one instance of an object at a time, so leases of other instances are void. */
const instances = new WeakMap<ObjectStorage, string>()

/**
 * Sessions in the storage of a Durable Object. Give each session a separate object, which also stores the sessions of
 * its sub-agents. Cloudflare holds output, including model requests, until writes are durable. The alarm fires when a
 * session is due; see `wakeSessions`.
 *
 * @example
 * const openStore = (ctx: { storage: ObjectStorage }) => durableObjectStore({ storage: ctx.storage }) // in the object's constructor
 * @throws {ConfigError} `invalid_config` for a storage without SQLite
 */
export function durableObjectStore(options: DurableObjectStoreOptions): SyncSessionStore {
  const { storage, now: clock = () => systemClock.now() } = checkOptions(options)
  const now = toWholeTime(clock)
  const instance = instances.get(storage) ?? createId()
  instances.set(storage, instance)
  const tables = translateErrors(() => openTables(storage))
  const timers = createTableTimers(now, tables.timers)
  let isClosed = false
  /** All timers due before this time have been read. */
  let readUntil = Number.MIN_SAFE_INTEGER

  const use = <Value>(work: () => Value): Value => {
    if (isClosed) throw new StoreError('store_unavailable', 'The store is closed. Open it again.')
    return translateErrors(work)
  }
  const write = <Value>(work: () => Value): Value => use(() => storage.transactionSync(work))

  /**
   * Changes timers and sets the alarm to the first one. `isRung` means that the alarm has fired, and due timers were
   * read and woken. Cloudflare resets an object whose alarm cannot be set.
   */
  const writeTimers = <Value>(work: () => Value, isRung = false): Value => {
    const value = write(work)
    const time = now()
    const first = use(() =>
      tables.findFirstTime(isRung ? readUntil : Number.MIN_SAFE_INTEGER, time + overdueMs),
    )
    const soonest = time + (isRung ? soonestAgainMs : soonestMs)
    const set = first === null ? storage.deleteAlarm() : storage.setAlarm(Math.max(first, soonest))
    void set.catch(() => undefined)
    return value
  }

  const findHolder = ({ lease }: ObjectSession): string | null =>
    lease?.instance === instance && lease.expiresAt > now() ? lease.holder : null

  /** The session for which this is the latest lease, expired or not. */
  const findOwned = ({ sessionId, token }: Lease): ObjectSession | null => {
    const row = tables.session(sessionId)
    return row?.lease?.token === token ? row : null
  }

  const toListed = (row: ObjectSession): ListedSession => {
    const { id, createdAt, updatedAt, head, summary, title, marks } = row
    const shown = withTitle(parseSummary(summary), title)
    return { id, createdAt, updatedAt, head, summary: shown, holder: findHolder(row), ...parseMarks(marks) }
  }

  return {
    acquire(id, { holder, ttlMs }) {
      const sessionId = checkSessionId(id)
      return write(() => {
        const row = tables.session(sessionId) ?? { ...newSession, id: sessionId }
        const busy = findHolder(row)
        if (busy !== null) throw sessionBusyError(sessionId, busy)
        const lease = { token: createId(), holder, expiresAt: getExpiry(now(), ttlMs) }
        tables.putSession({ ...row, lease: { ...lease, instance } })
        return { ...lease, sessionId, inbox: tables.findLastMessage(sessionId), head: row.head }
      })
    },

    renew: (lease, ttlMs) =>
      write(() => {
        const expiresAt = getExpiry(now(), ttlMs)
        const row = findOwned(lease)
        if (!row?.lease) throw leaseLostError(lease)
        tables.putSession({ ...row, lease: { ...row.lease, expiresAt } })
        return { ...lease, expiresAt }
      }),

    release: (lease) =>
      write(() => {
        const row = findOwned(lease)
        if (row === null) return { inbox: 0 }
        const inbox = tables.findLastMessage(row.id)
        if (row.head === 0) tables.removeSession(row.id)
        else tables.putSession({ ...row, lease: null })
        return { inbox }
      }),

    append(lease, records, summary, { release = false } = {}) {
      const { sessionId } = lease
      checkRecords(sessionId, records)
      return write(() => {
        const time = now()
        const row = findOwned(lease)
        if (!row?.lease || row.lease.expiresAt <= time) throw leaseLostError(lease)
        checkFollows(sessionId, records, row.head)
        for (const record of records) tables.addItem(sessionId, 'record', record)
        const head = row.head + records.length
        const released = release && head > 0
        tables.putSession({
          ...row,
          createdAt: row.head === 0 ? time : row.createdAt,
          updatedAt: time,
          head,
          ...(summary && { summary: JSON.stringify(summary) }),
          ...(released && { lease: null }),
        })
        return { inbox: tables.findLastMessage(sessionId), ...(released && { released }) }
      })
    },

    read(sessionId, range) {
      const whole = resolveRange(range)
      if (whole === null) return []
      const { from, to } = whole
      return use(() => {
        const first = from === 'snapshot' ? tables.findSnapshot(sessionId, to) : from
        return tables.items(sessionId, 'record', first, to) as LogRecord[]
      })
    },

    get(sessionId) {
      const row = use(() => tables.session(sessionId))
      return row && row.head > 0 ? toListed(row) : null
    },

    list(options) {
      const listing = checkListOptions(options)
      return use(() => tables.sessions())
        .filter(({ head }) => head > 0)
        .map(toListed)
        .filter((listed) => isListed(listing, listed))
        .sort(compareListed)
        .slice(0, listing.limit)
    },

    delete: (sessionId) =>
      write(() => {
        const row = tables.session(sessionId)
        if (row === null) return false
        const busy = findHolder(row)
        if (busy !== null) throw sessionBusyError(sessionId, busy)
        tables.removeSession(sessionId)
        return row.head > 0
      }),

    setTitle: (sessionId, title) =>
      write(() => {
        const row = tables.session(sessionId)
        if (row === null || row.head === 0) return false
        tables.putSession({ ...row, title })
        return true
      }),

    setMark: (sessionId, seq, mark) =>
      write(() => {
        const row = tables.session(sessionId)
        if (row === null || seq < 1 || seq > row.head) return false
        tables.putSession({ ...row, marks: changeMarks(row.marks, seq, mark) })
        return true
      }),

    close() {
      isClosed = true
    },

    inbox: {
      put: (sessionId, text) =>
        write(() => {
          const row = tables.session(sessionId)
          if (row === null || row.head === 0) throw unknownSessionError(sessionId)
          const message = row.lastMessage + 1
          tables.putSession({ ...row, lastMessage: message })
          tables.addItem(sessionId, 'message', { seq: message, at: now(), type: '', data: text, check: '' })
          return { message, holder: findHolder(row) }
        }),

      read: (sessionId, after = 0) =>
        use(() => tables.items(sessionId, 'message', after + 1)).map(({ seq, at, data }) => ({
          message: seq,
          at,
          text: data,
        })),

      remove: (sessionId, messages) =>
        write(() => {
          for (const message of messages) tables.removeMessage(sessionId, message)
        }),
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

const newSession = {
  createdAt: 0,
  updatedAt: 0,
  head: 0,
  lastMessage: 0,
  summary: null,
  title: null,
  marks: null,
  lease: null,
}

function checkOptions(options: DurableObjectStoreOptions): DurableObjectStoreOptions {
  const rule = objectRule([], 'an object with the storage: { storage: ctx.storage }')
  expectArgument('durableObjectStore(options)', options, rule)
  const storage = (options.storage ?? {}) as { [Name in keyof ObjectStorage]?: unknown }
  const exec = (storage.sql as { exec?: unknown } | undefined)?.exec
  if (![exec, storage.transactionSync, storage.setAlarm].every((method) => typeof method === 'function')) {
    throw new ConfigError(
      'invalid_config',
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
    const text = `The storage of the Durable Object cannot be used: ${why}.`
    throw new StoreError('store_unavailable', text, 'storage', { cause: error })
  }
}

type Value = string | number | null

/** The part of `ctx.storage` that is used, of a Durable Object with SQLite. */
export interface ObjectStorage {
  readonly sql: { exec(query: string, ...values: Value[]): { toArray(): Record<string, unknown>[] } }
  transactionSync<Result>(work: () => Result): Result
  setAlarm(at: number): Promise<void>
  deleteAlarm(): Promise<void>
}

/** A session's row. */
interface ObjectSession {
  id: string
  createdAt: number
  updatedAt: number
  head: number
  /** Number of messages put into the inbox. */
  lastMessage: number
  /** JSON. */
  summary: string | null
  title: string | null
  /** JSON. */
  marks: string | null
  /** The latest lease. `instance` is the object instance that holds it. */
  lease: { token: string; holder: string; instance: string; expiresAt: number } | null
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

/** Opens the tables, and creates missing ones. */
function openTables({ sql }: ObjectStorage) {
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
