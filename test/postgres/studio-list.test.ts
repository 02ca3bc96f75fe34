import pg from 'pg'
import { postgresStore } from '../../src/stores/postgres/index.js'
import type { SessionStore } from '../../src/stores/index.js'
import { describeLongList } from '../studio/long-list.js'

const url = process.env['STATEWRIGHT_TEST_POSTGRES'] ?? ''
if (url === '') throw new Error('Run this suite with: npm run test:postgres')

const schema = `list_${process.pid}`
const opened: SessionStore[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map(async (store) => store.close()))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`)
  await client.end()
})

describeLongList('a long list of sessions in Postgres', () => {
  const store = postgresStore({ connectionString: url, schema })
  opened.push(store)
  return store
})
