import { expectArgument, objectRule } from '../../core/base/values.js'
import { join, resolve } from 'node:path'
import { StatewrightError, configError } from '../../core/base/errors.js'
import { createId } from '../../core/base/platform.js'
import {
  describeHolder,
  isProcessGone,
  getProcessIdentity,
} from '../../core/sessions/store/process-identity.js'
import { checkSessionId } from '../../core/sessions/store/session-id.js'
import { checkListOptions, resolveRange } from '../../core/sessions/store/list-options.js'
import {
  checkFollows,
  checkRecords,
  getExpiry,
  leaseLostError,
  sessionBusyError,
  StoreError,
  unknownSessionError,
} from '../../core/sessions/store/store-error.js'
import type { Lease, ListedSession, SyncSessionStore } from '../../core/sessions/store/store.js'
import { type DigestTable, offerDigests } from '../../core/sessions/store/log-digests.js'
import { parseSummary, withTitle } from '../../core/sessions/store/session-title.js'
import { changeMarks, parseMarks } from '../../core/sessions/store/step-marks.js'
import type { BudgetStore } from '../../core/budgets/budget-store.js'
import { openDatabase, toFileStoreError } from './database.js'
import { createFileBudgets } from './file-budgets.js'
import { createFileDigests } from './file-digests.js'
import { systemClock, toWholeTime } from '../../core/base/clock.js'
import type { LeaseRow, SessionRow } from './list-sessions.js'
import { type Statements, prepareStatements } from './file-statements.js'

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
  let open: Statements | null = translateErrors(file, () => prepareStatements(openDatabase(file, sync)))

  let budgets: BudgetStore | undefined
  let digests: DigestTable | undefined

  const use = <Value>(work: (sql: Statements) => Value): Value => {
    // Statements would still work after the database has been closed.
    const sql = open
    if (sql === null) throw closedStoreError(file)
    return translateErrors(file, () => work(sql))
  }

  /** Runs a write transaction. It acquires the write lock first, so that its reads stay valid. */
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

  const store: SyncSessionStore = {
    acquire(id, options) {
      const sessionId = checkSessionId(id)
      const holder = describeHolder(options.holder)
      return write((sql) => {
        const time = now()
        const lease: Lease = {
          sessionId,
          token: createId(),
          holder,
          expiresAt: getExpiry(time, options.ttlMs),
        }
        const row = sql.session(sessionId)
        if (row !== null && isLeaseHeld(row, time)) throw sessionBusyError(sessionId, row.holder)
        sql.take(lease, getProcessIdentity())
        return { ...lease, inbox: sql.inbox.last(sessionId) }
      })
    },

    renew(lease, ttlMs) {
      const expiresAt = getExpiry(now(), ttlMs)
      if (!use((sql) => sql.renew(lease, expiresAt))) throw leaseLostError(lease)
      return { ...lease, expiresAt }
    },

    renewAll: (leases, ttlMs) =>
      write((sql) => {
        const expiresAt = getExpiry(now(), ttlMs)
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
      // The common case. If it fails, the slow path determines why.
      const appended = use((sql) =>
        only && records.length === 1 && !summary && sql.follow(lease, only, now())
          ? { inbox: sql.inbox.last(sessionId) }
          : undefined,
      )
      if (appended) return appended
      return write((sql) => {
        const time = now()
        const row = sql.session(sessionId)
        if (row === null || row.token !== token || row.expiresAt <= time) throw leaseLostError(lease)
        checkFollows(sessionId, records, row.head)
        for (const record of records) sql.insert(sessionId, record, time)
        if (summary) sql.sumUp(sessionId, time, summary)
        return { inbox: sql.inbox.last(sessionId) }
      })
    },

    read(sessionId, range) {
      const whole = resolveRange(range)
      return whole === null ? [] : use((sql) => sql.read(sessionId, whole))
    },

    get(sessionId) {
      const row = use((sql) => sql.session(sessionId))
      return row !== null && row.head > 0 ? toListedSession(row, now()) : null
    },

    list(options) {
      const listing = checkListOptions(options)
      const time = now()
      return use((sql) => sql.list(listing)).map((row) => toListedSession(row, time))
    },

    delete: (sessionId) =>
      write((sql) => {
        const row = sql.session(sessionId)
        if (row === null) return false
        if (isLeaseHeld(row, now())) throw sessionBusyError(sessionId, row.holder)
        sql.remove(sessionId)
        return row.head > 0
      }),

    setTitle: (sessionId, title) => write((sql) => sql.setTitle(sessionId, title)),

    setMark: (sessionId, seq, mark) =>
      write((sql) => {
        const row = sql.session(sessionId)
        return row !== null && sql.setMarks(sessionId, seq, changeMarks(row.marks, seq, mark))
      }),

    purge() {
      if (use((sql) => sql.purge())) return
      throw new StoreError(
        'store_unavailable',
        `Another process has been reading ${file} for several seconds, so ${file}-wal still contains deleted text. Call purge() again.`,
        file,
      )
    },

    openBudgets: () => (budgets ??= createFileBudgets(write, now)),

    close() {
      open?.close()
      open = null
    },

    inbox: {
      put: (sessionId, text) =>
        write((sql) => {
          const time = now()
          const row = sql.session(sessionId)
          if (row === null || row.head === 0) throw unknownSessionError(sessionId)
          const message = sql.inbox.put(sessionId, time, text)
          return { message, holder: isLeaseHeld(row, time) ? row.holder : null }
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

    timers: {
      get: (id) => use((sql) => sql.timers.get(id)),

      set(timers) {
        write((sql) => {
          for (const timer of timers) sql.timers.set(timer)
        })
      },

      listDue: ({ limit, after }) =>
        use((sql) => {
          const time = now()
          return { now: time, timers: sql.timers.listDue(time, limit, after ?? beforeAllTimers) }
        }),

      list: ({ prefix, limit, after = '' }) => use((sql) => sql.timers.list(prefix, limit, after)),

      move: ({ id, from, to }) => write((sql) => sql.timers.move(id, from, to)),
    },
  }
  return offerDigests(store, () => (digests ??= createFileDigests(write, use)))
}

const beforeAllTimers = { at: Number.MIN_SAFE_INTEGER, id: '' }

function toListedSession(row: SessionRow, time: number): ListedSession {
  const { id, createdAt, updatedAt, head, summary, title, marks } = row
  return {
    id,
    createdAt,
    updatedAt,
    head,
    summary: withTitle(parseSummary(summary), title),
    holder: isLeaseHeld(row, time) ? row.holder : null,
    ...parseMarks(marks),
  }
}

function isLeaseHeld({ token, process, expiresAt }: LeaseRow, time: number): boolean {
  return token !== null && expiresAt > time && !isProcessGone(process)
}

function translateErrors<Value>(file: string, work: () => Value): Value {
  try {
    return work()
  } catch (error) {
    throw error instanceof StatewrightError ? error : toFileStoreError(error, file)
  }
}

function closedStoreError(file: string): StoreError {
  return new StoreError('store_unavailable', `The store ${file} is closed. Open it again.`, file)
}

function checkFileStoreOptions(dir: unknown, sync: unknown): void {
  if (typeof dir !== 'string' || dir === '') {
    throw configError('dir is missing. Set it to the folder for the sessions.', 'dir')
  }
  if (sync !== 'normal' && sync !== 'full') {
    throw configError(`sync is ${JSON.stringify(sync)}. Use "normal" or "full".`, 'sync')
  }
}
