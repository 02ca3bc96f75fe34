import { createId } from '../../base/platform.js'
import type { InboxMessage } from './inbox.js'
import { checkListOptions, compareListed, type Listing, resolveRange } from './list-options.js'
import { checkSessionId } from './session-id.js'
import { withTitle } from './session-title.js'
import { changeMarks, parseMarks } from './step-marks.js'
import {
  checkFollows,
  checkRecords,
  getExpiry,
  leaseLostError,
  sessionBusyError,
  unknownSessionError,
} from './store-error.js'
import type { Lease, ListedSession, LogRecord, SessionSummary, SyncSessionStore } from './store.js'

export interface SessionRow {
  readonly id: string
  createdAt: number
  updatedAt: number
  head: number
  /** Number of messages that have ever been added to the inbox. */
  lastMessage: number
  summary: SessionSummary | null
  title: string | null
  /** The marks as JSON. */
  marks: string | null
  /** The latest lease. `instance` is the process or the instance of the store that acquired it. */
  lease: { token: string; holder: string; expiresAt: number; instance: string } | null
}

export interface SessionTable {
  session(id: string): SessionRow | undefined
  /** The sessions with records that match the listing, in any order. */
  list(listing: Listing): SessionRow[]
  putSession(row: SessionRow): void
  removeSession(id: string): void
  /** `time` is the time of the store. */
  addRecords(id: string, records: readonly LogRecord[], time: number): void
  records(id: string, from: number, to: number): LogRecord[]
  /** Number of the last snapshot up to a record, or 1. */
  findSnapshot(id: string, to: number): number
  /** Adds a message to the inbox, and stores the new `lastMessage` of its session. */
  addMessage(row: SessionRow, message: InboxMessage): void
  messages(id: string, after: number): InboxMessage[]
  removeMessages(id: string, messages: readonly number[]): void
  /** Number of the last message in the inbox, or 0. */
  findLastMessage(id: string): number
}

export interface TableStoreOptions {
  table: SessionTable
  now: () => number
  instance?: string
  /** Whether the leases of an instance are valid. By default, only the leases of this instance are. */
  isLive?: (instance: string) => boolean
  /** Wraps reads from the table. */
  use?: <Value>(work: () => Value) => Value
  /** Wraps a transaction. */
  write?: <Value>(work: () => Value) => Value
}

const runWork = <Value>(work: () => Value): Value => work()

/** Leases, record order, lists and inboxes on top of a table. */
export function createTableStore({
  table,
  now,
  instance = '',
  isLive = (other) => other === instance,
  use = runWork,
  write = use,
}: TableStoreOptions): Omit<SyncSessionStore, 'close' | 'timers'> {
  const findHolder = (row: SessionRow | undefined): string | null =>
    row?.lease && row.lease.expiresAt > now() && isLive(row.lease.instance) ? row.lease.holder : null

  const findOwned = ({ sessionId, token }: Lease): SessionRow | undefined => {
    const row = table.session(sessionId)
    return row?.lease?.token === token ? row : undefined
  }

  const findWritten = (sessionId: string): SessionRow | undefined => {
    const row = table.session(sessionId)
    return row && row.head > 0 ? row : undefined
  }

  const toListed = (row: SessionRow): ListedSession => {
    const { id, createdAt, updatedAt, head, title, marks } = row
    const summary = withTitle(row.summary, title)
    return { id, createdAt, updatedAt, head, summary, holder: findHolder(row), ...parseMarks(marks) }
  }

  return {
    acquire(id, { holder, ttlMs }) {
      const sessionId = checkSessionId(id)
      return write(() => {
        const row = table.session(sessionId) ?? { ...newSession, id: sessionId }
        const busy = findHolder(row)
        if (busy !== null) throw sessionBusyError(sessionId, busy)
        const lease = { token: createId(), holder, expiresAt: getExpiry(now(), ttlMs) }
        row.lease = { ...lease, instance }
        table.putSession(row)
        return { ...lease, sessionId, inbox: table.findLastMessage(sessionId) }
      })
    },

    renew: (lease, ttlMs) =>
      write(() => {
        const expiresAt = getExpiry(now(), ttlMs)
        const row = findOwned(lease)
        if (!row?.lease) throw leaseLostError(lease)
        row.lease = { ...row.lease, expiresAt }
        table.putSession(row)
        return { ...lease, expiresAt }
      }),

    release: (lease) =>
      write(() => {
        const row = findOwned(lease)
        if (row === undefined) return { inbox: 0 }
        const inbox = table.findLastMessage(row.id)
        row.lease = null
        if (row.head === 0) table.removeSession(row.id)
        else table.putSession(row)
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
        table.addRecords(sessionId, records, time)
        if (row.head === 0) row.createdAt = time
        row.updatedAt = time
        row.head += records.length
        if (summary) row.summary = summary
        const released = release && row.head > 0
        if (released) row.lease = null
        table.putSession(row)
        return { inbox: table.findLastMessage(sessionId), ...(released && { released }) }
      })
    },

    read(sessionId, range) {
      const whole = resolveRange(range)
      if (whole === null) return []
      const { from, to } = whole
      return use(() =>
        table.records(sessionId, from === 'snapshot' ? table.findSnapshot(sessionId, to) : from, to),
      )
    },

    get(sessionId) {
      const row = use(() => findWritten(sessionId))
      return row ? toListed(row) : null
    },

    list(options) {
      const listing = checkListOptions(options)
      return use(() => table.list(listing))
        .map(toListed)
        .sort(compareListed)
        .slice(0, listing.limit)
    },

    delete: (sessionId) =>
      write(() => {
        const row = table.session(sessionId)
        if (row === undefined) return false
        const busy = findHolder(row)
        if (busy !== null) throw sessionBusyError(sessionId, busy)
        table.removeSession(sessionId)
        return row.head > 0
      }),

    setTitle: (sessionId, title) =>
      write(() => {
        const row = findWritten(sessionId)
        if (row) table.putSession(Object.assign(row, { title }))
        return row !== undefined
      }),

    setMark: (sessionId, seq, mark) =>
      write(() => {
        const row = table.session(sessionId)
        if (row === undefined || seq < 1 || seq > row.head) return false
        row.marks = changeMarks(row.marks, seq, mark)
        table.putSession(row)
        return true
      }),

    inbox: {
      put: (sessionId, text) =>
        write(() => {
          const row = findWritten(sessionId)
          if (row === undefined) throw unknownSessionError(sessionId)
          const message = (row.lastMessage += 1)
          table.addMessage(row, { message, at: now(), text })
          return { message, holder: findHolder(row) }
        }),

      read: (sessionId, after = 0) => use(() => table.messages(sessionId, after)),

      remove: (sessionId, messages) => write(() => table.removeMessages(sessionId, messages)),
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
