import { join, resolve } from 'node:path'
import { valueOr } from '../../core/base/maybe-promise.js'
import { expectArgument, objectRule } from '../../core/base/values.js'
import { systemClock, toWholeTime } from '../../core/base/clock.js'
import { StatewrightError, configError } from '../../core/base/errors.js'
import type { BudgetStore } from '../../core/budgets/budget-store.js'
import { type DigestTable, offerDigests } from '../../core/sessions/store/log-digests.js'
import {
  describeHolder,
  isProcessGone,
  getProcessIdentity,
} from '../../core/sessions/store/process-identity.js'
import { checkRecords, getExpiry, StoreError } from '../../core/sessions/store/store-error.js'
import type { SyncSessionStore } from '../../core/sessions/store/store.js'
import { createTableStore } from '../../core/sessions/store/table-store.js'
import { createTableTimers } from '../../core/sessions/store/timers.js'
import {
  closeDatabase,
  createPrepare,
  emptyWriteAheadLog,
  openDatabase,
  toFileStoreError,
} from './database.js'
import { createFileBudgets, createFileDigests, openTables } from './file-tables.js'

/** Options for `fileStore`. */
export interface FileStoreOptions {
  /** A folder on a local disk, created if missing. It contains one file, `sessions.db`. */
  dir: string
  /** `normal` survives a process crash, `full` also survives a power loss. Defaults to `normal`. */
  sync?: 'normal' | 'full'
  /** Returns the time in milliseconds since the epoch. Defaults to `Date.now`. */
  now?: () => number
}

/**
 * Sessions in a local folder, for any number of processes on one machine. Only the owner can read the files. If a
 * process exits, its leases become void immediately. Calls are synchronous. An append takes about 50 microseconds, or
 * the time of a disk sync with `sync: 'full'`.
 * @throws {StatewrightError} `missing_package` before Node 22.13 without the package `libsql`
 * @throws {StoreError} if the folder cannot be used
 * @example
 * const store = fileStore({ dir: '.sessions' })
 */
export function fileStore(options: FileStoreOptions): SyncSessionStore {
  expectArgument(
    'fileStore(options)',
    options,
    objectRule([], "an object with the folder: { dir: './sessions' }"),
  )
  const { dir, sync = 'normal' } = options
  const now = toWholeTime(options.now ?? (() => systemClock.now()))
  checkFileStoreOptions(dir, sync)
  const file = join(resolve(dir), 'sessions.db')
  const { database, tables, begin, commit } = translateErrors(file, () => {
    const database = openDatabase(file, sync)
    const [begin, commit] = [database.prepare('BEGIN IMMEDIATE'), database.prepare('COMMIT')]
    return { database, tables: openTables(createPrepare(database)), begin, commit }
  })
  let isOpen = true
  let budgets: BudgetStore | undefined
  let digests: DigestTable | undefined

  const use = <Value>(work: () => Value): Value => {
    // Statements would still work after the database has been closed.
    if (isOpen) return translateErrors(file, work)
    throw new StoreError('store_unavailable', `The store ${file} is closed. Open it again.`, file)
  }

  /** Runs a write transaction. It acquires the write lock first, so that its reads stay valid. */
  const write = <Value>(work: () => Value): Value =>
    use(() => {
      begin.run([])
      try {
        const value = work()
        commit.run([])
        return value
      } catch (error) {
        // After some errors, SQLite has already rolled back.
        valueOr(() => database.exec('ROLLBACK'), undefined)
        throw error
      }
    })

  const instance = getProcessIdentity()
  const isLive = (other: string): boolean => !isProcessGone(other)
  const sessions = createTableStore({ table: tables, now, instance, isLive, use, write })
  const timers = createTableTimers(now, tables.timers)
  const store: SyncSessionStore = {
    ...sessions,

    acquire: (id, { holder, ttlMs }) => sessions.acquire(id, { holder: describeHolder(holder), ttlMs }),

    renewAll: (leases, ttlMs) =>
      write(() => {
        const expiresAt = getExpiry(now(), ttlMs)
        return leases
          .filter((lease) => tables.renew(lease, expiresAt))
          .map((lease) => ({ ...lease, expiresAt }))
      }),

    append(lease, records, summary) {
      if (summary || records.length === 0) return sessions.append(lease, records, summary)
      checkRecords(lease.sessionId, records)
      // Without a summary, only the records change. If this fails, the general case determines why.
      const run = records.length === 1 ? use : write
      const inbox = run(() => {
        const time = now()
        const isFollowed = records.every((record) => tables.follow(lease, record, time))
        return isFollowed ? tables.findLastMessage(lease.sessionId) : null
      })
      return inbox === null ? sessions.append(lease, records) : { inbox }
    },

    purge() {
      if (use(() => emptyWriteAheadLog(database))) return
      throw new StoreError(
        'store_unavailable',
        `Another process has been reading ${file} for several seconds, so ${file}-wal still contains deleted text. Call purge() again.`,
        file,
      )
    },

    openBudgets: () => (budgets ??= write(() => createFileBudgets(database, write, now))),

    close() {
      if (isOpen) closeDatabase(database)
      isOpen = false
    },

    inbox: {
      ...sessions.inbox,
      findUnread: (sessionIds) => use(() => tables.findUnread(sessionIds)),
      listUnread: () => use(() => tables.listUnread()),
    },

    timers: {
      get: (id) => use(() => timers.get(id)),
      set: (changes) => write(() => timers.set(changes)),
      listDue: (options) => use(() => timers.listDue(options)),
      list: (options) => use(() => timers.list(options)),
      move: (step) => write(() => timers.move(step)),
    },
  }
  return offerDigests(store, () => (digests ??= write(() => createFileDigests(database, write, use))))
}

function translateErrors<Value>(file: string, work: () => Value): Value {
  try {
    return work()
  } catch (error) {
    throw error instanceof StatewrightError ? error : toFileStoreError(error, file)
  }
}

function checkFileStoreOptions(dir: unknown, sync: unknown): void {
  if (typeof dir !== 'string' || dir === '') {
    throw configError('dir is missing. Set it to the folder for the sessions.', 'dir')
  }
  if (sync !== 'normal' && sync !== 'full') {
    throw configError(`sync is ${JSON.stringify(sync)}. Use "normal" or "full".`, 'sync')
  }
}
