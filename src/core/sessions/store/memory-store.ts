import { newId } from '../../base/new-id.js'
import { checkedSessionId, wholeRange } from './session-id.js'
import { busy, checkFollows, checkRecords, expiryOf, lost } from './refusals.js'
import type { Lease, ListedSession, LogRecord, SessionSummary, SyncSessionStore } from './store.js'

/**
 * Time, for tests.
 *
 * @example
 * const options: MemoryStoreOptions = { now: () => 0 } // milliseconds; default: the system's clock
 * const store = memoryStore(options)
 */
export interface MemoryStoreOptions {
  /** Milliseconds since the epoch. Default: `Date.now`. */
  now?: () => number
}

interface Kept {
  records: LogRecord[]
  summary: SessionSummary | null
  createdAt: number
  updatedAt: number
  lease: Lease | null
}

/**
 * Sessions that live as long as the process does. Records are kept by reference: do not change them afterwards.
 *
 * @example createAgent({ model, store: memoryStore() })
 */
export function memoryStore({ now = Date.now }: MemoryStoreOptions = {}): SyncSessionStore {
  const sessions = new Map<string, Kept>()

  const holds = (kept: Kept | undefined): kept is Kept & { lease: Lease } =>
    kept?.lease != null && kept.lease.expiresAt > now()

  /** The session of a lease that is its latest, whether or not it has run out. */
  const owned = (lease: Lease): Kept => {
    const kept = sessions.get(lease.sessionId)
    if (kept?.lease?.token !== lease.token) throw lost(lease)
    return kept
  }

  const entryOf = (id: string, kept: Kept): ListedSession => {
    const { records, createdAt, updatedAt, summary } = kept
    const holder = holds(kept) ? kept.lease.holder : null
    return { id, createdAt, updatedAt, head: records.length, summary, holder }
  }

  return {
    acquire(id, { holder, ttlMs }) {
      const sessionId = checkedSessionId(id)
      const expiresAt = expiryOf(now(), ttlMs)
      const kept = sessions.get(sessionId)
      if (holds(kept)) throw busy(sessionId, kept.lease.holder)
      const lease: Lease = { sessionId, token: newId(), holder, expiresAt }
      if (kept) kept.lease = lease
      else sessions.set(sessionId, { records: [], summary: null, createdAt: 0, updatedAt: 0, lease })
      return lease
    },

    renew(lease, ttlMs) {
      const expiresAt = expiryOf(now(), ttlMs)
      return (owned(lease).lease = { ...lease, expiresAt })
    },

    release({ sessionId, token }) {
      const kept = sessions.get(sessionId)
      if (kept?.lease?.token !== token) return
      if (kept.records.length === 0) sessions.delete(sessionId)
      else kept.lease = null
    },

    append(lease, records, summary) {
      checkRecords(lease.sessionId, records)
      const kept = owned(lease)
      if (!holds(kept)) throw lost(lease)
      checkFollows(lease.sessionId, records, kept.records.length)
      kept.updatedAt = now()
      if (kept.records.length === 0) kept.createdAt = kept.updatedAt
      for (const record of records) kept.records.push(record)
      if (summary) kept.summary = summary
    },

    read(sessionId, range) {
      const records = sessions.get(sessionId)?.records ?? []
      const whole = wholeRange(range)
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

    list: () =>
      [...sessions]
        .filter(([, { records }]) => records.length > 0)
        .map(([id, kept]) => entryOf(id, kept))
        .sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1)),

    delete(sessionId) {
      const kept = sessions.get(sessionId)
      if (holds(kept)) throw busy(sessionId, kept.lease.holder)
      return sessions.delete(sessionId) && (kept?.records.length ?? 0) > 0
    },

    close: () => undefined,
  }
}
