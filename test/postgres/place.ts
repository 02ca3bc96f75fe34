import pg from 'pg'
import { postgresStore } from '../../src/stores/postgres/index.js'
import type { Place } from '../stores/support.js'

/** The server of the suite. */
export const url = process.env['STATEWRIGHT_TEST_POSTGRES'] ?? ''
if (url === '') throw new Error('Run this suite with: npm run suite -- postgres')

let places = 0

/** A separate schema. */
export function postgresPlace(): Place & { schema: string } {
  const schema = `place_${process.pid}_${++places}`
  return {
    schema,
    open: (now) => postgresStore({ connectionString: url, schema, ...(now ? { now } : {}) }),
    remove: () => runSql(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`),
  }
}

/** Runs on a separate connection, as the suite's user. */
export async function runSql(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
