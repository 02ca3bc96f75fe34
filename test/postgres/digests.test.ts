import pg from 'pg'
import { type DigestTable, openDigests } from '../../src/core/sessions/store/log-digests.js'
import { postgresStore } from '../../src/stores/postgres/index.js'
import type { SessionStore } from '../../src/stores/index.js'
import { describeDigests, grow } from '../stores/digest-table.js'

const url = process.env['STATEWRIGHT_TEST_POSTGRES'] ?? ''
if (url === '') throw new Error('Run this suite with: npm run test:postgres')

const schema = `digests_${process.pid}`
const opened: SessionStore[] = []

function open(now?: () => number, connectionString = url): SessionStore {
  const store = postgresStore({ connectionString, schema, ...(now && { now }) })
  opened.push(store)
  return store
}

async function query(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(text)
  await client.end()
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map(async (store) => store.close()))
  await query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`)
})

describeDigests('the digests of postgresStore', open)

it('a user who may create no tables uses digests that are there, and is refused where they are not', async () => {
  const role = `reader_${process.pid}`
  const owner = open()
  const session = await grow(owner, 's')
  await query(`CREATE ROLE ${role} LOGIN PASSWORD 'reader'; GRANT USAGE ON SCHEMA "${schema}" TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "${schema}" TO ${role}`)
  try {
    const asReader = new URL(url)
    Object.assign(asReader, { username: role, password: 'reader' })
    const reader = open(undefined, asReader.href)
    await expect(openDigests(reader)).rejects.toMatchObject({ name: 'StoreError' })
    const table = (await openDigests(owner)) as DigestTable
    await query(`GRANT SELECT, INSERT, UPDATE ON "${schema}".digests TO ${role}`)
    const { id: sessionId, head, createdAt } = session
    await (await openDigests(reader))?.put([{ sessionId, head, createdAt, data: '1' }])
    expect(await table.read(['s'])).toHaveLength(1)
    await reader.close()
  } finally {
    await query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  }
})
