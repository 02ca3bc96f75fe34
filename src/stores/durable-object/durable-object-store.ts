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
import { createTableTimers } from '../../core/sessions/store/timers.js'
import { type ObjectSession, type ObjectStorage, openTables } from './object-tables.js'

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
    const { id, createdAt, updatedAt, head, summary, title } = row
    const shown = withTitle(parseSummary(summary), title)
    return { id, createdAt, updatedAt, head, summary: shown, holder: findHolder(row) }
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
