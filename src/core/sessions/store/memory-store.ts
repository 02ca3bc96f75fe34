import { optionsRule, expectArgument } from '../../base/values.js'
import { createId, loadOnce } from '../../base/platform.js'
import type { BudgetStore } from '../../budgets/budget-store.js'
import { systemClock, toWholeTime } from '../../base/clock.js'
import type { InboxMessage } from './inbox.js'
import { checkListOptions, compareListed, isListed, resolveRange } from './list-options.js'
import { checkSessionId } from './session-id.js'
import { createTableTimers, createTimerTable } from './timers.js'
import {
  checkFollows,
  checkRecords,
  getExpiry,
  leaseLostError,
  sessionBusyError,
  unknownSessionError,
} from './store-error.js'
import { withTitle } from './session-title.js'
import { changeMarks, parseMarks } from './step-marks.js'
import type { Lease, ListedSession, LogRecord, SessionSummary, SyncSessionStore } from './store.js'

/** Options for tests. */
export interface MemoryStoreOptions {
  /** Milliseconds since the epoch. Default: `Date.now`. */
  now?: () => number
}

const loadBudgets = loadOnce(() => import('../../budgets/memory-budgets.js'))

interface MemorySession {
  records: LogRecord[]
  summary: SessionSummary | null
  title: string | null
  /** JSON. */
  marks: string | null
  createdAt: number
  updatedAt: number
  lease: Lease | null
  inbox: InboxMessage[]
  /** The number of messages ever put into the inbox. */
  lastMessage: number
}

const emptyMemorySession = {
  summary: null,
  title: null,
  marks: null,
  createdAt: 0,
  updatedAt: 0,
  lastMessage: 0,
}

const getLastMessage = ({ inbox }: MemorySession): number => inbox.at(-1)?.message ?? 0

/**
 * Sessions that live as long as the process does. Records are kept by reference, so do not change them afterwards.
 * @example createAgent({ model, store: memoryStore() })
 */
export function memoryStore(options: MemoryStoreOptions = {}): SyncSessionStore {
  expectArgument('memoryStore(options)', options, optionsRule)
  const now = toWholeTime(options.now ?? (() => systemClock.now()))
  const sessions = new Map<string, MemorySession>()
  let budgets: BudgetStore | undefined

  const holds = (kept: MemorySession | undefined): kept is MemorySession & { lease: Lease } =>
    kept?.lease != null && kept.lease.expiresAt > now()

  /** The session whose latest lease this is, expired or not. */
  const owned = (lease: Lease): MemorySession => {
    const kept = sessions.get(lease.sessionId)
    if (kept?.lease?.token !== lease.token) throw leaseLostError(lease)
    return kept
  }

  const entryOf = (id: string, kept: MemorySession): ListedSession => {
    const { records, createdAt, updatedAt, title, marks } = kept
    const summary = withTitle(kept.summary, title)
    const holder = holds(kept) ? kept.lease.holder : null
    return { id, createdAt, updatedAt, head: records.length, summary, holder, ...parseMarks(marks) }
  }

  return {
    acquire(id, { holder, ttlMs }) {
      const sessionId = checkSessionId(id)
      const expiresAt = getExpiry(now(), ttlMs)
      const kept = sessions.get(sessionId)
      if (holds(kept)) throw sessionBusyError(sessionId, kept.lease.holder)
      const lease: Lease = { sessionId, token: createId(), holder, expiresAt }
      if (!kept) {
        sessions.set(sessionId, { ...emptyMemorySession, records: [], inbox: [], lease })
        return lease
      }
      kept.lease = lease
      return { ...lease, inbox: getLastMessage(kept) }
    },

    renew(lease, ttlMs) {
      const expiresAt = getExpiry(now(), ttlMs)
      return (owned(lease).lease = { ...lease, expiresAt })
    },

    release({ sessionId, token }) {
      const kept = sessions.get(sessionId)
      if (kept?.lease?.token !== token) return { inbox: 0 }
      if (kept.records.length === 0) sessions.delete(sessionId)
      else kept.lease = null
      return { inbox: getLastMessage(kept) }
    },

    append(lease, records, summary, { release = false } = {}) {
      checkRecords(lease.sessionId, records)
      const kept = owned(lease)
      if (kept.lease === null || kept.lease.expiresAt <= now()) throw leaseLostError(lease)
      checkFollows(lease.sessionId, records, kept.records.length)
      kept.updatedAt = now()
      if (kept.records.length === 0) kept.createdAt = kept.updatedAt
      for (const record of records) kept.records.push(record)
      if (summary) kept.summary = summary
      const released = release && kept.records.length > 0
      if (released) kept.lease = null
      return { inbox: getLastMessage(kept), ...(released && { released }) }
    },

    read(sessionId, range) {
      const records = sessions.get(sessionId)?.records ?? []
      const whole = resolveRange(range)
      if (whole === null) return []
      if (whole.from !== 'snapshot') return records.slice(whole.from - 1, whole.to)
      const upTo = records.slice(0, whole.to)
      return upTo.slice(
        Math.max(
          0,
          upTo.findLastIndex(({ type }) => type === 'snapshot'),
        ),
      )
    },

    get(sessionId) {
      const kept = sessions.get(sessionId)
      return kept && kept.records.length > 0 ? entryOf(sessionId, kept) : null
    },

    list(options) {
      const listing = checkListOptions(options)
      return [...sessions]
        .filter(
          ([id, { records, updatedAt, summary }]) =>
            records.length > 0 && isListed(listing, { id, updatedAt, summary }),
        )
        .map(([id, kept]) => entryOf(id, kept))
        .sort(compareListed)
        .slice(0, listing.limit)
    },

    delete(sessionId) {
      const kept = sessions.get(sessionId)
      if (holds(kept)) throw sessionBusyError(sessionId, kept.lease.holder)
      return sessions.delete(sessionId) && (kept?.records.length ?? 0) > 0
    },

    setTitle(sessionId, title) {
      const kept = sessions.get(sessionId)
      if (!kept || kept.records.length === 0) return false
      kept.title = title
      return true
    },

    setMark(sessionId, seq, mark) {
      const kept = sessions.get(sessionId)
      if (!kept?.records[seq - 1]) return false
      kept.marks = changeMarks(kept.marks, seq, mark)
      return true
    },

    close: () => undefined,

    openBudgets: async () => (budgets ??= (await loadBudgets()).createMemoryBudgets(now)),

    timers: createTableTimers(now, createTimerTable()),

    inbox: {
      put(sessionId, text) {
        const kept = sessions.get(sessionId)
        if (!kept || kept.records.length === 0) throw unknownSessionError(sessionId)
        const message = (kept.lastMessage += 1)
        kept.inbox.push({ message, at: now(), text })
        return { message, holder: holds(kept) ? kept.lease.holder : null }
      },

      read(sessionId, after = 0) {
        const { inbox = [] } = sessions.get(sessionId) ?? {}
        let from = inbox.length
        while ((inbox[from - 1]?.message ?? 0) > after) from -= 1
        return inbox.slice(from)
      },

      remove(sessionId, messages) {
        const kept = sessions.get(sessionId)
        const gone = new Set(messages)
        if (kept) kept.inbox = kept.inbox.filter(({ message }) => !gone.has(message))
      },

      listUnread: () =>
        [...sessions].flatMap(([sessionId, kept]) =>
          kept.inbox.length > 0 ? [{ sessionId, inbox: getLastMessage(kept) }] : [],
        ),
    },
  }
}
