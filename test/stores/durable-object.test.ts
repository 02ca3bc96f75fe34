import {
  ConfigError,
  createAgent,
  defineAgents,
  defineTool,
  sleepUntil,
  StoreError,
} from '../../src/index.js'
import { durableObjectStore, wakeSessions } from '../../src/stores/durable-object/index.js'
import { createOneCallModel } from '../support/manual-model.js'
import { describeStore } from './conformance.js'
import { createObjectStorage } from './object-storage.js'
import { createRecord, leaseRequest, refusal } from './support.js'

describeStore(
  'the store in a Durable Object',
  () => {
    const storage = createObjectStorage()
    return {
      open: (now) => durableObjectStore({ storage, ...(now && { now }) }),
      remove: () => storage.close(),
    }
  },
  {
    shared: true,
    lacks: [
      'the store has no renewAll',
      'the store has no purge',
      'the inbox has no findUnread',
      'the inbox has no listUnread',
    ],
  },
)

test('a storage without SQLite is refused by its name', () => {
  for (const storage of [undefined, {}, { sql: { exec: () => undefined } }]) {
    expect(() => durableObjectStore({ storage } as never)).toThrow(ConfigError)
    expect(() => durableObjectStore({ storage } as never)).toThrow('new_sqlite_classes')
  }
  expect(() => durableObjectStore(undefined as never)).toThrow('{ storage: ctx.storage }')
})

test('what the storage throws is a StoreError that says why', async () => {
  const storage = createObjectStorage()
  const store = durableObjectStore({ storage })
  storage.close()
  const { message, cause } = await refusal('store_unavailable', () => store.list())
  expect(message).toContain('The storage of the Durable Object cannot be used')
  expect(cause).toMatchObject({ message: expect.any(String) })
  expect(() => durableObjectStore({ storage })).toThrow(StoreError)
})

test('a lease of an instance that is gone is void, and its log stays', async () => {
  const storage = createObjectStorage()
  const store = durableObjectStore({ storage })
  const lease = store.acquire('s', leaseRequest)
  store.append(lease, [createRecord(1)])
  await refusal('session_busy', () => durableObjectStore({ storage }).acquire('s', leaseRequest))
  // Cloudflare gives the next instance another object for the same storage.
  const next = durableObjectStore({ storage: { ...storage } })
  expect(next.get('s')).toMatchObject({ head: 1, holder: null })
  next.append(next.acquire('s', leaseRequest), [createRecord(2)])
  await refusal('lease_lost', () => store.append(lease, [createRecord(2)]))
})

test('a record larger than a row may be comes back as it was, surrogate pairs at every cut', () => {
  const store = durableObjectStore({ storage: createObjectStorage() })
  const lease = store.acquire('s', leaseRequest)
  const records = ['', 'x'].map((first, i) =>
    createRecord(i + 1, JSON.stringify(first + '𝄞'.repeat(800_000))),
  )
  store.append(lease, records)
  expect(store.read('s')).toEqual(records)
})

test('the alarm of the object rings when the first session is to be woken, and the session goes on', async () => {
  let time = 1_800_000_000_000
  const clock = { now: () => time, setTimeout: () => undefined, clearTimeout: () => undefined }
  const storage = createObjectStorage()
  const store = durableObjectStore({ storage, now: clock.now })
  const wait = defineTool({
    name: 'wait',
    description: 'Waits.',
    input: { type: 'object' },
    polling: true,
    execute: () => sleepUntil(time + 60_000),
  })
  const clerk = createAgent({ model: createOneCallModel('wait'), tools: [wait], store, clock })
  const agents = defineAgents({ clerk })
  const { state, reason } = await clerk.run('Send it tomorrow.', { session: 'order' }).result
  expect([state, reason, storage.alarm]).toEqual(['PAUSED', 'sleeping', time + 60_000])

  // Where it rings too early, by the clock of the object, it is set again.
  storage.alarm = null
  time += 59_999
  await wakeSessions(agents)
  expect([store.get('order')?.summary?.state, storage.alarm]).toEqual(['PAUSED', time + 10])

  time += 1
  await wakeSessions(agents)
  expect(store.get('order')?.summary?.state).toBe('COMPLETED')
  expect(storage.alarm).toBeNull()
  await wakeSessions(agents)
})
