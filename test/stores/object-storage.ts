import Database from 'libsql'
import type { ObjectStorage } from '../../src/stores/durable-object/index.js'

/** The storage of a Durable Object, in memory, with the SQL of another SQLite. */
export function createObjectStorage(): ObjectStorage & { alarm: number | null; close: () => void } {
  const database = new Database(':memory:')
  const storage = {
    alarm: null as number | null,
    close: () => database.close(),
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
    setAlarm: async (at: number) => {
      storage.alarm = at
    },
    deleteAlarm: async () => {
      storage.alarm = null
    },
  }
  return storage
}
