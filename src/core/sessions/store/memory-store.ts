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
  createdAt: number
  updatedAt: number
  lease: Lease | null
  inbox: InboxMessage[]
  /** The number of messages ever put into the inbox. */
  lastMessage: number
}

const emptyMemorySession = { summary: null, title: null, createdAt: 0, updatedAt: 0, lastMessage: 0 }

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

  const holds = (session: MemorySession | undefined): session is MemorySession & { lease: Lease } =>
    session?.lease != null && session.lease.expiresAt > now()

  /** The session whose latest lease this is, expired or not. */
  const owned = (lease: Lease): MemorySession => {
    const session = sessions.get(lease.sessionId)
    if (session?.lease?.token !== lease.token) throw leaseLostError(lease)
    return session
  }

  const entryOf = (id: string, session: MemorySession): ListedSession => {
    const { records, createdAt, updatedAt, title } = session
    const summary = withTitle(session.summary, title)
    const holder = holds(session) ? session.lease.holder : null
    return { id, createdAt, updatedAt, head: records.length, summary, holder }
  }

  return {
    acquire(id, { holder, ttlMs }) {
      const sessionId = checkSessionId(id)
      const expiresAt = getExpiry(now(), ttlMs)
      const session = sessions.get(sessionId)
      if (holds(session)) throw sessionBusyError(sessionId, session.lease.holder)
      const lease: Lease = { sessionId, token: createId(), holder, expiresAt }
      if (!session) {
        sessions.set(sessionId, { ...emptyMemorySession, records: [], inbox: [], lease })
        return lease
      }
      session.lease = lease
      return { ...lease, inbox: getLastMessage(session) }
    },

    renew(lease, ttlMs) {
      const expiresAt = getExpiry(now(), ttlMs)
      return (owned(lease).lease = { ...lease, expiresAt })
    },

    release({ sessionId, token }) {
      const session = sessions.get(sessionId)
      if (session?.lease?.token !== token) return { inbox: 0 }
      if (session.records.length === 0) sessions.delete(sessionId)
      else session.lease = null
      return { inbox: getLastMessage(session) }
    },

    append(lease, records, summary, { release = false } = {}) {
      checkRecords(lease.sessionId, records)
      const session = owned(lease)
      if (session.lease === null || session.lease.expiresAt <= now()) throw leaseLostError(lease)
      checkFollows(lease.sessionId, records, session.records.length)
      session.updatedAt = now()
      if (session.records.length === 0) session.createdAt = session.updatedAt
      for (const record of records) session.records.push(record)
      if (summary) session.summary = summary
      const released = release && session.records.length > 0
      if (released) session.lease = null
      return { inbox: getLastMessage(session), ...(released && { released }) }
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
      const session = sessions.get(sessionId)
      return session && session.records.length > 0 ? entryOf(sessionId, session) : null
    },

    list(options) {
      const listing = checkListOptions(options)
      return [...sessions]
        .filter(
          ([id, { records, updatedAt, summary }]) =>
            records.length > 0 && isListed(listing, { id, updatedAt, summary }),
        )
        .map(([id, session]) => entryOf(id, session))
        .sort(compareListed)
        .slice(0, listing.limit)
    },

    delete(sessionId) {
      const session = sessions.get(sessionId)
      if (holds(session)) throw sessionBusyError(sessionId, session.lease.holder)
      return sessions.delete(sessionId) && (session?.records.length ?? 0) > 0
    },

    setTitle(sessionId, title) {
      const session = sessions.get(sessionId)
      if (!session || session.records.length === 0) return false
      session.title = title
      return true
    },

    close: () => undefined,

    openBudgets: async () => (budgets ??= (await loadBudgets()).createMemoryBudgets(now)),

    timers: createTableTimers(now, createTimerTable()),

    inbox: {
      put(sessionId, text) {
        const session = sessions.get(sessionId)
        if (!session || session.records.length === 0) throw unknownSessionError(sessionId)
        const message = (session.lastMessage += 1)
        session.inbox.push({ message, at: now(), text })
        return { message, holder: holds(session) ? session.lease.holder : null }
      },

      read(sessionId, after = 0) {
        const { inbox = [] } = sessions.get(sessionId) ?? {}
        let from = inbox.length
        while ((inbox[from - 1]?.message ?? 0) > after) from -= 1
        return inbox.slice(from)
      },

      remove(sessionId, messages) {
        const session = sessions.get(sessionId)
        const gone = new Set(messages)
        if (session) session.inbox = session.inbox.filter(({ message }) => !gone.has(message))
      },

      listUnread: () =>
        [...sessions].flatMap(([sessionId, session]) =>
          session.inbox.length > 0 ? [{ sessionId, inbox: getLastMessage(session) }] : [],
        ),
    },
  }
}
