import Database from 'libsql'
import type { ObjectStorage } from '../../src/stores/durable-object/index.js'

/** The number of retries on Cloudflare after an alarm handler rejects. */
const maxRetries = 6

/**
 * In-memory storage of a Durable Object, with SQL from a different SQLite. The alarm follows workerd: one part is stored in the
 * object, one in the external scheduler.
 */
export function createObjectStorage() {
  const database = new Database(':memory:')
  /**
   * The object keeps the alarm that has rung until its handler succeeds. Null when none rings, or when a new alarm was set in the
   * meantime.
   */
  let ringing: number | null = null
  let retries = 0
  const change = (at: number | null): void => {
    ringing = null
    // The scheduler receives a time only when it changes.
    if (storage.alarm !== at) [storage.alarm, storage.scheduled, retries] = [at, at, 0]
  }
  const storage = {
    alarm: null as number | null,
    /** The scheduler's next alarm. Null for none. */
    scheduled: null as number | null,
    /** Rings the alarm by calling `alarm()` of the object. Returns its error. */
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
