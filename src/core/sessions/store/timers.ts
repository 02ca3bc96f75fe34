import { compareText, OrderedList } from '../../base/ordered-list.js'
import type { MaybePromise, Synchronous } from '../../base/maybe-promise.js'

/** A scheduled action, such as waking a sleeping session. */
export interface StoredTimer {
  /** 1 to 300 characters, unique in its store. */
  id: string
  /** Milliseconds since the epoch, according to the store's clock. */
  at: number
  /** JSON text. */
  data: string
}

/** The timers that are due according to the store's clock, which all processes of the store share. */
export interface DueTimers {
  /** Milliseconds since the epoch. */
  now: number
  /** The due timers in order of time, then id. */
  timers: StoredTimer[]
}

/** The timers of a store. A process moves a timer before it acts on it, so that no other process does. */
export interface SessionTimers {
  /**
   * Returns a timer, or null.
   * @example
   * const timer = await memoryStore().timers.get('wake:report') // null
   */
  get(id: string): MaybePromise<StoredTimer | null>
  /**
   * Adds timers, replacing any that have the same ids. The timers are durable when `set` returns or resolves.
   * @example
   * await memoryStore().timers.set([{ id: 'wake:report', at: Date.now() + 60_000, data: '{}' }])
   */
  set(timers: readonly StoredTimer[]): MaybePromise<void>
  /**
   * Lists up to `limit` due timers after the timer `after`.
   * @example
   * const { now, timers } = await memoryStore().timers.listDue({ limit: 100 })
   */
  listDue(options: { limit: number; after?: StoredTimer | undefined }): MaybePromise<DueTimers>
  /**
   * Lists up to `limit` timers whose ids start with `prefix`, in id order, after the id `after`.
   * @example
   * const alarms = await memoryStore().timers.list({ prefix: 'wake:', limit: 100 })
   */
  list(options: { prefix: string; limit: number; after?: string | undefined }): MaybePromise<StoredTimer[]>
  /**
   * Moves a timer from one time to another, or removes it (`to: null`). If the timer is not at `from`, changes nothing
   * and returns false.
   * @example
   * const wasMine = await memoryStore().timers.move({ id: 'wake:report', from: 1000, to: 2000 })
   */
  move(step: { id: string; from: number; to: number | null }): MaybePromise<boolean>
}

/** Synchronous timers. */
export type SyncSessionTimers = Synchronous<SessionTimers>

const pageSize = 200

/** Lists all due timers, a page at a time. `now` is the store's time. */
export async function* listAllDue(
  timers: SessionTimers,
): AsyncGenerator<{ timer: StoredTimer; now: number }> {
  let after: StoredTimer | undefined
  do {
    const { now, timers: page } = await timers.listDue({ limit: pageSize, after })
    for (const timer of page) yield { timer, now }
    after = page.length === pageSize ? page.at(-1) : undefined
  } while (after)
}

export interface TimerTable {
  get(id: string): StoredTimer | undefined
  /** Iterates in time order from this timer. May end after `limit` timers, or at a timer later than `until`. */
  byTime(from: StoredTimer, until: number, limit: number): Iterable<StoredTimer>
  /** Iterates in id order, starting with this id. May end after `limit` timers. */
  byId(from: string, limit: number): Iterable<StoredTimer>
  set(timer: StoredTimer): void
  delete(timer: StoredTimer): void
}

/** Timers on top of a table and the store's clock. A store with transactions wraps each method in one. */
export function createTableTimers(now: () => number, table: TimerTable): SyncSessionTimers {
  const put = (timer: StoredTimer): void => {
    const before = table.get(timer.id)
    if (before) table.delete(before)
    table.set(timer)
  }
  return {
    get: (id) => table.get(id) ?? null,
    set(changes) {
      for (const { id, at, data } of changes) put({ id, at, data })
    },
    listDue({ limit, after }) {
      const time = now()
      const timers: StoredTimer[] = []
      for (const timer of table.byTime(after ?? firstTimer, time, limit + 1)) {
        if (timer.at > time || timers.length >= limit) break
        if (after === undefined || compareTimes(timer, after) > 0) timers.push(timer)
      }
      return { now: time, timers }
    },
    list({ prefix, limit, after }) {
      const timers: StoredTimer[] = []
      const from = after !== undefined && after > prefix ? after : prefix
      for (const timer of table.byId(from, limit + 1)) {
        if (!timer.id.startsWith(prefix) || timers.length >= limit) break
        if (timer.id !== after) timers.push(timer)
      }
      return timers
    },
    move({ id, from, to }) {
      const timer = table.get(id)
      if (timer?.at !== from) return false
      if (to === null) table.delete(timer)
      else put({ ...timer, at: to })
      return true
    },
  }
}

export function createTimerTable(): TimerTable {
  const timers = new Map<string, StoredTimer>()
  const byTime = new OrderedList<StoredTimer>(compareTimes)
  const byId = new OrderedList<StoredTimer>((a, b) => compareText(a.id, b.id))
  return {
    get: (id) => timers.get(id),
    byTime: (from) => byTime.from(from),
    byId: (id) => byId.from({ ...firstTimer, id }),
    set(timer) {
      timers.set(timer.id, timer)
      byTime.add(timer)
      byId.add(timer)
    },
    delete(timer) {
      timers.delete(timer.id)
      byTime.delete(timer)
      byId.delete(timer)
    },
  }
}

const firstTimer: StoredTimer = { id: '', at: Number.MIN_SAFE_INTEGER, data: '' }

export const compareTimes = (a: StoredTimer, b: StoredTimer): number => a.at - b.at || compareText(a.id, b.id)
