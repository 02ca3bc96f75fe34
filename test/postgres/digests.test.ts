import { type DigestTable, openDigests } from '../../src/core/sessions/store/log-digests.js'
import { postgresStore } from '../../src/stores/postgres/index.js'
import { describeDigests, grow } from '../stores/digest-table.js'
import { usePlace } from '../stores/use-place.js'
import { postgresPlace, runSql, url } from './place.js'

const { getPlace, keep, open } = usePlace(postgresPlace)

describeDigests('the digests of postgresStore', open)

it('a user without the right to create tables uses existing digests, and is refused without them', async () => {
  const role = `reader_${process.pid}`
  const { schema } = getPlace()
  const owner = open()
  const session = await grow(owner, 's')
  await runSql(`CREATE ROLE ${role} LOGIN PASSWORD 'reader'; GRANT USAGE ON SCHEMA "${schema}" TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "${schema}" TO ${role}`)
  try {
    const asReader = new URL(url)
    Object.assign(asReader, { username: role, password: 'reader' })
    const reader = keep(postgresStore({ connectionString: asReader.href, schema }))
    await expect(openDigests(reader)).rejects.toMatchObject({ name: 'StoreError' })
    const table = (await openDigests(owner)) as DigestTable
    await runSql(`GRANT SELECT, INSERT, UPDATE ON "${schema}".digests TO ${role}`)
    const { id: sessionId, head, createdAt } = session
    await (await openDigests(reader))?.put([{ sessionId, head, createdAt, data: '1' }])
    expect(await table.read(['s'])).toHaveLength(1)
    await reader.close()
  } finally {
    await runSql(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  }
})
