import { optionsRule, expectArgument } from '../../base/values.js'
import { createMemoryBudgets } from '../../budgets/memory-budgets.js'
import { systemClock, toWholeTime } from '../../base/clock.js'
import type { InboxMessage } from './inbox.js'
import { isListed } from './list-options.js'
import { createTableTimers, createTimerTable } from './timers.js'
import type { LogRecord, SyncSessionStore } from './store.js'
import { createTableStore, type SessionRow, type SessionTable } from './table-store.js'

/** Options for tests. */
export interface MemoryStoreOptions {
  /** Returns the current time in milliseconds since the epoch. Defaults to `Date.now`. */
  now?: () => number
}

/**
 * Creates a store that keeps its data in the memory of the process. Records are stored by reference, so do not change
 * them afterwards.
 * @example createAgent({ model, store: memoryStore() })
 */
export function memoryStore(options: MemoryStoreOptions = {}): SyncSessionStore {
  expectArgument('memoryStore(options)', options, optionsRule)
  const now = toWholeTime(options.now ?? (() => systemClock.now()))
  const sessions = new Map<string, MemorySession>()
  const store = createTableStore({ table: createMemoryTable(sessions), now })
  const budgets = createMemoryBudgets(now)
  return {
    ...store,
    close: () => undefined,
    openBudgets: () => budgets,
    timers: createTableTimers(now, createTimerTable()),
    inbox: {
      ...store.inbox,
      listUnread: () =>
        [...sessions].flatMap(([sessionId, { inbox }]) =>
          inbox.length > 0 ? [{ sessionId, inbox: getLastMessage(inbox) }] : [],
        ),
    },
  }
}

interface MemorySession {
  row: SessionRow
  records: LogRecord[]
  inbox: InboxMessage[]
}

const getLastMessage = (inbox: readonly InboxMessage[]): number => inbox.at(-1)?.message ?? 0

function createMemoryTable(sessions: Map<string, MemorySession>): SessionTable {
  const listRecords = (id: string): LogRecord[] => sessions.get(id)?.records ?? []
  const listMessages = (id: string): InboxMessage[] => sessions.get(id)?.inbox ?? []
  return {
    session: (id) => sessions.get(id)?.row,
    list: (listing) => [...sessions.values()].flatMap(({ row }) => (isListed(listing, row) ? row : [])),
    putSession(row) {
      if (!sessions.has(row.id)) sessions.set(row.id, { row, records: [], inbox: [] })
    },
    removeSession: (id) => void sessions.delete(id),
    addRecords(id, records) {
      const known = listRecords(id)
      for (const record of records) known.push(record)
    },
    records: (id, from, to) => listRecords(id).slice(from - 1, to),
    findSnapshot: (id, to) =>
      Math.max(
        0,
        listRecords(id).findLastIndex(({ seq, type }) => seq <= to && type === 'snapshot'),
      ) + 1,
    addMessage: ({ id }, message) => void listMessages(id).push(message),
    messages(id, after) {
      const inbox = listMessages(id)
      let from = inbox.length
      while ((inbox[from - 1]?.message ?? 0) > after) from -= 1
      return inbox.slice(from)
    },
    removeMessages(id, messages) {
      const session = sessions.get(id)
      const gone = new Set(messages)
      if (session) session.inbox = session.inbox.filter(({ message }) => !gone.has(message))
    },
    findLastMessage: (id) => getLastMessage(listMessages(id)),
  }
}
