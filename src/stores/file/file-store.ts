import { expectArgument, objectWith } from '../../core/base/expect-argument.js'
import { join, resolve } from 'node:path'
import { ConfigError, StatewrightError } from '../../core/base/errors.js'
import { newId } from '../../core/base/new-id.js'
import { holderInWords, isGone, thisProcess } from '../../core/sessions/store/holder.js'
import { checkSessionId, wholeRange } from '../../core/sessions/store/session-id.js'
import { checkedListing } from '../../core/sessions/store/list-options.js'
import {
  busy,
  checkFollows,
  checkRecords,
  expiryOf,
  lost,
  unknownSession,
} from '../../core/sessions/store/refusals.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import type { Lease, ListedSession, SyncSessionStore } from '../../core/sessions/store/store.js'
import { summaryOf } from '../../core/sessions/store/summary-text.js'
import { openDatabase } from './database.js'
import { fileError } from './sqlite-error.js'
import type { LeaseRow, SessionRow } from './session-row.js'
import { type Statements, statements } from './statements.js'

/** Where the sessions are, and what they survive. */
export interface FileStoreOptions {
  /** The folder, on a local disk; made when it is not there. Its one file is `sessions.db`. */
  dir: string
  /** `normal` survives the end of the process at any point, `full` a power failure, too. Default: `normal`. */
  sync?: 'normal' | 'full'
  /** Milliseconds since the epoch. Default: `Date.now`. */
  now?: () => number
}

/**
 * Sessions in a folder on disk, for any number of processes of one machine. The folder and its files are readable by
 * their owner only. A lease whose process has ended is void at once. Every call blocks until it is done: an append
 * takes some 50 microseconds, or as long as the disk needs with `sync: 'full'`.
 *
 * @throws {StoreError} at once, when the folder cannot be used
 * @example
 * const store = fileStore({ dir: '.sessions' })
 */
export function fileStore(options: FileStoreOptions): SyncSessionStore {
  expectArgument(
    'fileStore(options)',
    options,
    objectWith([], "an object with the folder: { dir: './sessions' }"),
  )
  const { dir, sync = 'normal', now = Date.now } = options
  checkOptions(dir, sync)
  const file = join(resolve(dir), 'sessions.db')
  let open: Statements | null = attempt(file, () => statements(openDatabase(file, sync)))

  const use = <Value>(work: (sql: Statements) => Value): Value => {
    // Statements would work on after the database is closed.
    const sql = open
    if (sql === null) throw closed(file)
    return attempt(file, () => work(sql))
  }

  /** One transaction, begun as a writer so that what it reads stays true until it ends. */
  const write = <Value>(work: (sql: Statements) => Value): Value =>
    use((sql) => {
      sql.begin()
      try {
        const value = work(sql)
        sql.commit()
        return value
      } catch (error) {
        sql.rollback()
        throw error
      }
    })

  return {
    acquire(id, options) {
      const sessionId = checkSessionId(id)
      const holder = holderInWords(options.holder)
      return write((sql) => {
        const time = now()
        const lease: Lease = { sessionId, token: newId(), holder, expiresAt: expiryOf(time, options.ttlMs) }
        const row = sql.session(sessionId)
        if (row !== null && isHeld(row, time)) throw busy(sessionId, row.holder)
        sql.take(lease, thisProcess())
        return { ...lease, inbox: sql.inbox.last(sessionId) }
      })
    },

    renew(lease, ttlMs) {
      const expiresAt = expiryOf(now(), ttlMs)
      if (!use((sql) => sql.renew(lease, expiresAt))) throw lost(lease)
      return { ...lease, expiresAt }
    },

    renewAll: (leases, ttlMs) =>
      write((sql) => {
        const expiresAt = expiryOf(now(), ttlMs)
        return leases.filter((lease) => sql.renew(lease, expiresAt)).map((lease) => ({ ...lease, expiresAt }))
      }),

    release(lease) {
      return write((sql) => {
        const isOurs = sql.release(lease)
        return { inbox: isOurs ? sql.inbox.last(lease.sessionId) : 0 }
      })
    },

    append(lease, records, summary) {
      const { sessionId, token } = lease
      checkRecords(sessionId, records)
      const [only] = records
      // What most appends are. Where it fails, the longer way tells why.
      const told = use((sql) =>
        only && records.length === 1 && !summary && sql.follow(lease, only, now())
          ? { inbox: sql.inbox.last(sessionId) }
          : undefined,
      )
      if (told) return told
      return write((sql) => {
        const time = now()
        const row = sql.session(sessionId)
        if (row === null || row.token !== token || row.expiresAt <= time) throw lost(lease)
        checkFollows(sessionId, records, row.head)
        for (const record of records) sql.insert(sessionId, record, time)
        if (summary) sql.sumUp(sessionId, time, summary)
        return { inbox: sql.inbox.last(sessionId) }
      })
    },

    read(sessionId, range) {
      const whole = wholeRange(range)
      return whole === null ? [] : use((sql) => sql.read(sessionId, whole))
    },

    get(sessionId) {
      const row = use((sql) => sql.session(sessionId))
      return row !== null && row.head > 0 ? entryOf(row, now()) : null
    },

    list(options) {
      const listing = checkedListing(options)
      const time = now()
      return use((sql) => sql.list(listing)).map((row) => entryOf(row, time))
    },

    delete: (sessionId) =>
      write((sql) => {
        const row = sql.session(sessionId)
        if (row === null) return false
        if (isHeld(row, now())) throw busy(sessionId, row.holder)
        sql.remove(sessionId)
        return row.head > 0
      }),

    close() {
      open?.close()
      open = null
    },

    inbox: {
      put: (sessionId, text) =>
        write((sql) => {
          const time = now()
          const row = sql.session(sessionId)
          if (row === null || row.head === 0) throw unknownSession(sessionId)
          const message = sql.inbox.put(sessionId, time, text)
          return { message, holder: isHeld(row, time) ? row.holder : null }
        }),

      read: (sessionId, after) => use((sql) => sql.inbox.read(sessionId, after)),

      remove(sessionId, messages) {
        write((sql) => {
          for (const message of messages) sql.inbox.remove(sessionId, message)
        })
      },

      findUnread: (sessionIds) => use((sql) => sql.inbox.findUnread(sessionIds)),

      listUnread: () => use((sql) => sql.inbox.listUnread()),
    },
  }
}

function entryOf(row: SessionRow, time: number): ListedSession {
  const { id, createdAt, updatedAt, head, summary } = row
  return {
    id,
    createdAt,
    updatedAt,
    head,
    summary: summaryOf(summary),
    holder: isHeld(row, time) ? row.holder : null,
  }
}

function isHeld({ token, process, expiresAt }: LeaseRow, time: number): boolean {
  return token !== null && expiresAt > time && !isGone(process)
}

function attempt<Value>(file: string, work: () => Value): Value {
  try {
    return work()
  } catch (error) {
    throw error instanceof StatewrightError ? error : fileError(error, file)
  }
}

function closed(file: string): StoreError {
  return new StoreError('store_unavailable', `The store ${file} is closed. Open it again.`, file)
}

function checkOptions(dir: unknown, sync: unknown): void {
  if (typeof dir !== 'string' || dir === '') {
    throw new ConfigError('invalid_config', 'dir is missing. Give the folder for the sessions.', 'dir')
  }
  if (sync !== 'normal' && sync !== 'full') {
    throw new ConfigError(
      'invalid_config',
      `sync is ${JSON.stringify(sync)}. Use "normal" or "full".`,
      'sync',
    )
  }
}
