import Database from 'libsql'
import type { ObjectStorage } from '../../src/stores/durable-object/index.js'

/** How often Cloudflare rings again when the handler of an alarm rejects. */
const maxRetries = 6

/**
 * The storage of a Durable Object, in memory, with the SQL of another SQLite. Its alarm is that of workerd: what is kept in the object,
 * and what the scheduler outside knows of it.
 */
export function createObjectStorage() {
  const database = new Database(':memory:')
  /** Until the handler has succeeded, the object keeps the alarm that has rung; null: none rings, or another one was set meanwhile. */
  let ringing: number | null = null
  let retries = 0
  const change = (at: number | null): void => {
    ringing = null
    // The scheduler hears of a time only when it is another one.
    if (storage.alarm !== at) [storage.alarm, storage.scheduled, retries] = [at, at, 0]
  }
  const storage = {
    alarm: null as number | null,
    /** When the scheduler rings next; null: never. */
    scheduled: null as number | null,
    /** Rings the alarm, whose handler is `alarm()` of the object. Returns what it threw. */
    async ring(alarm: () => Promise<void>): Promise<unknown> {
      const rung = storage.scheduled
      ringing = rung
      storage.scheduled = null
      try {
        await alarm()
        if (ringing !== null) storage.alarm = null
        return undefined
      } catch (error) {
        if (storage.scheduled === null && storage.alarm === rung && retries < maxRetries)
          [storage.scheduled, retries] = [rung, retries + 1]
        return error
      } finally {
        ringing = null
      }
    },
    close: (): void => void database.close(),
    sql: {
      exec: (query: string, ...values: (string | number | null)[]) => {
        if (values.length === 0 && query.includes(';')) {
          database.exec(query)
          return { toArray: () => [] }
        }
        const statement = database.prepare(query)
        const rows = /^\s*SELECT/.test(query) ? (statement.all(values) as Record<string, unknown>[]) : []
        if (rows.length === 0 && !/^\s*SELECT/.test(query)) statement.run(values)
        return { toArray: () => rows }
      },
    },
    transactionSync: <Value>(work: () => Value): Value => {
      database.exec('BEGIN')
      try {
        const value = work()
        database.exec('COMMIT')
        return value
      } catch (error) {
        database.exec('ROLLBACK')
        throw error
      }
    },
    setAlarm: async (at: number) => change(at),
    deleteAlarm: async () => change(null),
  }
  return storage satisfies ObjectStorage
}
