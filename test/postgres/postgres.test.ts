import { inspect } from 'node:util'
import { jest } from '@jest/globals'
import pg from 'pg'
import { getProcessIdentity } from '../../src/core/sessions/store/process-identity.js'
import { postgresStore } from '../../src/stores/postgres/index.js'
import { StoreError } from '../../src/core/sessions/store/store-error.js'
import { openDigests } from '../../src/core/sessions/store/log-digests.js'
import type { Lease, SessionStore } from '../../src/stores/index.js'
import { checkStore } from '../../src/testing/index.js'
import { describeStore } from '../stores/conformance.js'
import {
  leaseRequest,
  failure,
  createRecord,
  createRecords,
  refusal,
  createSummary,
} from '../stores/support.js'
import { type Gateway, openGateway } from './gateway.js'
import { postgresPlace, runSql, url } from './place.js'

describeStore('the store in Postgres', postgresPlace, { shared: true, lacks: ['the store has no purge'] })

describe('the store in Postgres', () => {
  let place: ReturnType<typeof postgresPlace>
  beforeEach(() => {
    place = postgresPlace()
  })
  afterEach(() => place.remove())

  test('batches concurrent appends of many sessions, and refuses only the invalid one', async () => {
    const pool = new pg.Pool({ connectionString: url, max: 4 })
    const asking = jest.spyOn(pool, 'query')
    const store = postgresStore({ pool, schema: place.schema })
    const ids = Array.from({ length: 80 }, (_, n) => `s${n}`)
    const leases = await Promise.all(ids.map(async (id) => store.acquire(id, leaseRequest)))
    const [first, second, third] = leases
    if (!first || !second || !third) throw new Error('no leases')
    await store.release(first)
    await store.acquire('s0', leaseRequest)
    asking.mockClear()
    const outcomes = await Promise.allSettled(
      leases.map(async (lease) =>
        // The server rejects a number that fits no column.
        store.append(lease, lease === second ? [{ ...createRecord(1), at: 2 ** 70 }] : [createRecord(1)]),
      ),
    )
    const failed = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
    )
    expect(failed).toEqual([
      expect.objectContaining({ code: 'lease_lost' }),
      expect.objectContaining({ code: 'invalid_record' }),
    ])
    for (const id of ids.slice(2)) expect(await store.read(id)).toEqual([createRecord(1)])
    asking.mockClear()
    await Promise.all(
      leases.slice(2).map(async (lease) => store.append(lease, [createRecord(2)], createSummary('s'))),
    )
    expect(asking).toHaveBeenCalledTimes(1)
    // The calls of one session run in the order in which they were made.
    await Promise.all([3, 4, 5].map(async (seq) => store.append(third, [createRecord(seq)])))
    expect(await store.read('s2')).toEqual(createRecords(1, 5))
    await store.close()
    await pool.end()
  })

  test('reports a statement timeout and a lack of connections, and continues later', async () => {
    const options = { connectionString: url, max: 1, connectionTimeoutMillis: 2500, statement_timeout: 2500 }
    const pool = new pg.Pool(options)
    const store = postgresStore({ pool, schema: place.schema })
    const lease = await store.acquire('s', leaseRequest)
    await store.append(lease, [createRecord(1)])
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    await other.query('BEGIN')
    await other.query(`SELECT FROM "${place.schema}".sessions WHERE id = 's' FOR UPDATE`)
    await refusal('store_unavailable', () => store.append(lease, [createRecord(2)]))
    await other.query('ROLLBACK')
    await other.end()
    const client = await pool.connect()
    await refusal('store_unavailable', () => store.append(lease, [createRecord(2)]))
    client.release()
    expect(await store.append(lease, [createRecord(2)])).toEqual({ inbox: 0 })
    expect(await store.read('s')).toEqual(createRecords(1, 2))
    await store.close()
    await pool.end()
  })

  test('measures leases by the clock of the server', async () => {
    const store = place.open()
    const before = Date.now()
    const lease = await store.acquire('s', { holder: 'run 1', ttlMs: 60_000 })
    // Both clocks are on one machine, so the server's time lies between.
    expect(lease.expiresAt).toBeGreaterThanOrEqual(before + 60_000)
    expect(lease.expiresAt).toBeLessThanOrEqual(Date.now() + 60_000)
    await store.append(lease, [createRecord(1)])
    const [entry] = await store.list()
    expect(entry?.createdAt).toBeGreaterThanOrEqual(before)
    expect(entry?.holder).toMatch(/^run 1 in process \d+ on ./)
    await store.close()
  })

  test('passes the store check by the clock of the server', async () => {
    const schemas: string[] = []
    const { clock, broken } = await checkStore(
      ({ place: schema }) => postgresStore({ connectionString: url, schema }),
      {
        // Also the tolerance of a machine that stalls.
        leaseMs: 1_500,
        remove: async (schema) => {
          schemas.push(schema)
          await runSql(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`)
        },
      },
    )
    expect({ clock, broken }).toEqual({ clock: 'own', broken: [] })
    expect(schemas.length).toBeGreaterThan(30)
  }, 240_000)

  test('frees a session whose process on this machine has died, but not one elsewhere', async () => {
    const store = place.open()
    const lease = await store.acquire('s', leaseRequest)
    await store.append(lease, [createRecord(1)])
    await runSql(`UPDATE "${place.schema}".sessions SET process = '1@elsewhere'`)
    await refusal('session_busy', () => store.acquire('s', leaseRequest))
    await refusal('session_busy', () => store.delete('s'))
    // No process has this number. The largest pid on Linux is 2^22.
    await runSql(`UPDATE "${place.schema}".sessions SET process = '4194305@' || '${thisMachine()}'`)
    expect((await store.list())[0]?.holder).toBeNull()
    const used = await store.acquire('s', leaseRequest)
    await refusal('lease_lost', () => store.append(lease, [createRecord(2)]))
    await store.append(used, [createRecord(2)])
    await runSql(`UPDATE "${place.schema}".sessions SET process = '4194305@' || '${thisMachine()}'`)
    expect(await store.delete('s')).toBe(true)
    await store.close()
  })

  test('refuses a schema that a newer Statewright wrote', async () => {
    await place.open().list()
    await runSql(`UPDATE "${place.schema}".schema_version SET version = 99`)
    const error = await refusal('newer_log', () => place.open().list())
    expect(error.message).toContain('99')
  })

  test('names a schema with tables of another program, or with only some of its own', async () => {
    const { schema } = place
    await runSql(`CREATE SCHEMA "${schema}"; CREATE TABLE "${schema}".sessions (cookie text)`)
    const foreign = await refusal('corrupt_log', () => place.open().list())
    await runSql(`DROP SCHEMA "${schema}" CASCADE`)
    await place.open().list()
    await runSql(`DELETE FROM "${schema}".schema_version`)
    const unfinished = await refusal('corrupt_log', () => place.open().list())
    await runSql(
      `INSERT INTO "${schema}".schema_version VALUES (1); ALTER TABLE "${schema}".sessions DROP COLUMN head`,
    )
    const partial = await refusal('corrupt_log', () => place.open().list())
    await runSql(`DROP TABLE "${schema}".records`)
    const missing = await refusal('corrupt_log', () => place.open().read('s'))
    for (const { message } of [foreign, unfinished, partial, missing])
      expect(message).toMatch(new RegExp(`schema ${schema} .* another schema`, 'i'))
  })

  test('works with a pool of the caller, and leaves it open', async () => {
    const pool = new pg.Pool({ connectionString: url })
    const store = postgresStore({ pool, schema: place.schema })
    const lease = await store.acquire('s', leaseRequest)
    await store.append(lease, createRecords(1, 3))
    await store.close()
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    await pool.end()
  })

  test('reads numbers with a pool that ignores the type parsers of a query, like a native one', async () => {
    const pool = new pg.Pool({ connectionString: url })
    const ask = pool.query.bind(pool)
    const plain = async (asked: string | pg.QueryConfig, values?: unknown[]) =>
      typeof asked === 'string' ? ask(asked, values) : ask(asked.text, asked.values)
    const store = postgresStore({ pool: Object.assign(pool, { query: plain }), schema: place.schema })
    const lease = await store.acquire('s', leaseRequest)
    expect(lease).toMatchObject({ expiresAt: expect.any(Number), inbox: 0 })
    await store.append(lease, createRecords(1, 3))
    expect(await store.read('s')).toEqual(createRecords(1, 3))
    expect(await store.get('s')).toMatchObject({ head: 3, updatedAt: expect.any(Number) })
    expect(await store.inbox?.put('s', 'now')).toMatchObject({ message: 1 })
    expect(await store.inbox?.findUnread?.(['s'])).toEqual([{ sessionId: 's', inbox: 1 }])
    await store.timers?.set([{ id: 't', at: 5, data: '{}' }])
    expect(await store.timers?.get('t')).toEqual({ id: 't', at: 5, data: '{}' })
    await store.close()
    await pool.end()
  })

  test('serves a user who may only use the tables, and reports one who may not write', async () => {
    await place.open().list()
    const { schema } = place
    const reader = `reader_of_${schema}`
    await runSql(`
      DROP ROLE IF EXISTS ${reader}; CREATE ROLE ${reader} LOGIN PASSWORD 'reader';
      GRANT USAGE ON SCHEMA "${schema}" TO ${reader};
      GRANT SELECT ON ALL TABLES IN SCHEMA "${schema}" TO ${reader}`)
    const asReader = new URL(url)
    Object.assign(asReader, { username: reader, password: 'reader' })
    const store = postgresStore({ connectionString: asReader.href, schema })
    expect(await store.list()).toEqual([])
    await refusal('read_only', () => store.acquire('s', leaseRequest))
    await store.close()
    await runSql(`DROP OWNED BY ${reader}; DROP ROLE ${reader}`)
  })

  test('never shows a password', async () => {
    const secret = 'hunter2-hunter2'
    const { host } = new URL(url)
    for (const connectionString of [
      `postgres://postgres:${secret}@${host}/postgres`,
      `postgres://postgres:${secret}@127.0.0.1:1/postgres`,
      `postgres://postgres:${secret}@${host}:port/postgres`,
      `postgres://postgres:${secret}%zz@${host}/postgres`,
      `postgres://postgres:${secret}/x@${host}/postgres`,
      `postgres://user:1${secret}@[::/postgres`,
    ]) {
      const store = postgresStore({ connectionString, schema: place.schema })
      const error = await failure(() => store.list())
      expect(error).toMatchObject({ code: expect.stringMatching(/^(store_unavailable|invalid_store)$/) })
      expect(everything(error)).not.toContain(secret)
      await store.close()
    }
  })

  describe('over a connection that breaks', () => {
    let gateway: Gateway
    beforeEach(async () => {
      gateway = await openGateway(url)
    })
    afterEach(() => gateway.close())

    test('reports an unavailable server, and works again when it is back', async () => {
      const store = postgresStore({ connectionString: gateway.url, schema: place.schema })
      const lease = await store.acquire('s', leaseRequest)
      await store.append(lease, [createRecord(1)])
      await gateway.close()
      await refusal('store_unavailable', () => store.append(lease, [createRecord(2)]))
      await refusal('store_unavailable', () => store.read('s'))
      await gateway.open()
      expect(await store.read('s')).toEqual([createRecord(1)])
      await store.append(lease, [createRecord(2)])
      expect(await store.read('s')).toEqual(createRecords(1, 2))
      await store.close()
    })

    test('connects if the server is available after a failed first use', async () => {
      await gateway.close()
      const store = postgresStore({ connectionString: gateway.url, schema: place.schema })
      await refusal('store_unavailable', () => store.list())
      await gateway.open()
      expect(await store.list()).toEqual([])
      await store.close()
    })

    // An error without a listener or handler would end the process and this suite.
    test.each([
      ['a pool of the store', false],
      ["a pool of the app's", true],
    ])('fails only the first call if it breaks at any message: %s', async (_, isOwn) => {
      const uses: ((store: SessionStore) => Promise<unknown>)[] = [
        async (store) => store.list(),
        async (store) => (await store.openBudgets?.())?.list(),
        async (store) => (await openDigests(store))?.read(['s']),
        async (store) => store.timers?.listDue({ limit: 1 }),
      ]
      for (const use of uses) {
        for (let count = 1; ; count += 1) {
          await place.remove()
          const pool = new pg.Pool({ connectionString: gateway.url })
          const store = postgresStore({
            ...(isOwn ? { pool } : { connectionString: gateway.url }),
            schema: place.schema,
          })
          gateway.breakAtData(count)
          const error = await use(store).then(
            () => null,
            (reason: unknown) => reason,
          )
          const isOver = gateway.isIntact
          gateway.breakAtData(0)
          if (error !== null) expect(error).toMatchObject({ code: 'store_unavailable' })
          await use(store)
          await store.close()
          await pool.end()
          if (isOver) break
        }
      }
    })

    test('throws a typed error for an append, and the log contains all of it or nothing', async () => {
      const store = postgresStore({ connectionString: gateway.url, schema: place.schema })
      const lease = await store.acquire('s', leaseRequest)
      await store.append(lease, [createRecord(1)])
      const pending = failure(() => store.append(lease, createRecords(2, 4)))
      gateway.breakAtData()
      expect(await pending).toBeInstanceOf(StoreError)
      expect([1, 4]).toContain((await store.read('s')).length)
      await store.close()
    })

    test('releases a session that was being acquired when the server is back', async () => {
      const store = postgresStore({ connectionString: gateway.url, schema: place.schema })
      await store.list()
      const long = { ...leaseRequest, ttlMs: 3_600_000 }
      const pending = failure(() => store.acquire('s', long))
      gateway.breakAtData()
      expect(await pending).toMatchObject({ code: 'store_unavailable' })
      const other = place.open()
      const free = async (): Promise<Lease> => {
        for (;;) {
          try {
            return await other.acquire('s', long)
          } catch (error) {
            expect(error).toMatchObject({ code: 'session_busy' })
            await new Promise((resolve) => setTimeout(resolve, 20))
          }
        }
      }
      const lease = await free()
      // It also does not remove another owner's data.
      await new Promise((resolve) => setTimeout(resolve, 600))
      expect(await other.append(lease, [createRecord(1)])).toEqual({ inbox: 0 })
      await other.release(lease)
      await Promise.all([store.close(), other.close()])
    }, 20_000)
  })
})

function thisMachine(): string {
  return getProcessIdentity().replace(/^\d+@/, '')
}

/** Everything that an error could print in a log. */
function everything(error: unknown): string {
  const parts = [inspect(error, { depth: 10, showHidden: true }), String(error), JSON.stringify(error)]
  return parts.join('\n')
}
