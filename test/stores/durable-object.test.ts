import fc from 'fast-check'
import {
  ConfigError,
  createAgent,
  defineAgents,
  defineTool,
  type ModelProvider,
  runSession,
  sleepUntil,
  StoreError,
} from '../../src/index.js'
import { durableObjectStore, wakeSessions } from '../../src/stores/durable-object/index.js'
import { sampled } from '../support/extent.js'
import { call, createOneCallModel, plainAnswer } from '../support/manual-model.js'
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

test('an error of the storage is a StoreError with the reason', async () => {
  const storage = createObjectStorage()
  const store = durableObjectStore({ storage })
  storage.close()
  const { message, cause } = await refusal('store_unavailable', () => store.list())
  expect(message).toContain("The Durable Object's storage cannot be used")
  expect(cause).toMatchObject({ message: expect.any(String) })
  expect(() => durableObjectStore({ storage })).toThrow(StoreError)
})

test('a lease of an instance that has ended is void, and its log stays', async () => {
  const storage = createObjectStorage()
  const store = durableObjectStore({ storage })
  const lease = store.acquire('s', leaseRequest)
  store.append(lease, [createRecord(1)])
  await refusal('session_busy', () => durableObjectStore({ storage }).acquire('s', leaseRequest))
  // On Cloudflare, the next instance gets another object for the same storage.
  const next = durableObjectStore({ storage: { ...storage } })
  expect(next.get('s')).toMatchObject({ head: 1, holder: null })
  next.append(next.acquire('s', leaseRequest), [createRecord(2)])
  await refusal('lease_lost', () => store.append(lease, [createRecord(2)]))
})

test('a record larger than a row is restored unchanged, with surrogate pairs at every split', () => {
  const store = durableObjectStore({ storage: createObjectStorage() })
  const lease = store.acquire('s', leaseRequest)
  const records = ['', 'x'].map((first, i) =>
    createRecord(i + 1, JSON.stringify(first + '𝄞'.repeat(800_000))),
  )
  store.append(lease, records)
  expect(store.read('s')).toEqual(records)
})

const minute = 60_000

/**
 * An object whose session sleeps for a minute on each request. `behind` is the lag of the run's clock behind the store's clock in
 * milliseconds, as when an event waits for its write. `stale` is the lag of the object's clock behind the alarm. `tick` is the time
 * that passes on each read.
 */
function createObject({ behind = 0, naps = 1, stale = 0, tick = 0 } = {}) {
  const start = 1_800_000_000_000
  const own = { time: start }
  const storage = createObjectStorage()
  const clock = { now: () => own.time - behind, setTimeout: () => undefined, clearTimeout: () => undefined }
  /** On Cloudflare, each instance gets another object for the same storage. */
  const open = () => {
    const store = durableObjectStore({
      storage: Object.create(storage) as typeof storage,
      now: () => (own.time += tick) - stale,
    })
    const wait = defineTool({
      name: 'wait',
      description: 'Waits.',
      input: { type: 'object' },
      polling: true,
      execute: () => sleepUntil(own.time + minute),
    })
    const model: ModelProvider = {
      provider: 'manual',
      model: 'napper',
      request: ({ messages }) => {
        const results = messages.filter(({ role }) => role === 'tool').length
        const asks = { toolCalls: [call(`c${results}`, 'wait')], finishReason: 'tool_calls' as const }
        return Promise.resolve({ ...plainAnswer, ...(results < naps ? asks : { text: 'Sent.' }) })
      },
    }
    const clerk = createAgent({ model, tools: [wait], store, clock })
    return { store, clerk, agents: defineAgents({ clerk }) }
  }
  let instance = open()
  return {
    own,
    storage,
    get store() {
      return instance.store
    },
    get agents() {
      return instance.agents
    },
    begin: (session: string) => runSession(instance.agents, { session, input: 'Send it later.' }),
    stateOf: (session: string) => instance.store.get(session)?.summary?.state,
    /** The object ends. The next request creates a new instance. */
    reopen: () => void (instance = open()),
    /** Advances the time until the alarm rings. Returns the handler's error. */
    async ring(lateMs = 0): Promise<unknown> {
      own.time = Math.max(own.time, (storage.scheduled ?? Infinity) + lateMs)
      return storage.ring(() => wakeSessions(instance.agents))
    },
  }
}

test('the alarm of the object fires when the first session is due, and the session continues', async () => {
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

  // If it rings too early by the object's clock, it is set again.
  storage.alarm = null
  time += 59_999
  await wakeSessions(agents)
  expect([store.get('order')?.summary?.state, storage.alarm]).toEqual(['PAUSED', time + 1000])

  time += 1000
  await wakeSessions(agents)
  expect(store.get('order')?.summary?.state).toBe('COMPLETED')
  expect(storage.alarm).toBeNull()
  await wakeSessions(agents)
})

describe('the alarm fires until no session sleeps', () => {
  test('if the clock of the run is behind it, because the session still sleeps by its own clock', async () => {
    const object = createObject({ behind: 3 })
    await object.begin('order')
    await object.ring()
    expect(object.stateOf('order')).toBe('PAUSED')
    expect(object.storage.scheduled).toBeGreaterThan(object.own.time)
    await object.ring()
    expect(object.stateOf('order')).toBe('COMPLETED')
    expect(object.storage.scheduled).toBeNull()
  })

  test('if the clock of the object is behind the alarm', async () => {
    const object = createObject({ stale: 40 })
    await object.begin('order')
    await object.ring()
    expect(object.stateOf('order')).toBe('PAUSED')
    await object.ring()
    expect(object.stateOf('order')).toBe('COMPLETED')
  })

  test('if another request works on the session, which is woken afterwards, and the others immediately', async () => {
    const object = createObject()
    await object.begin('busy')
    await object.begin('order')
    const lease = object.store.acquire('busy', { ...leaseRequest, ttlMs: 10 * minute })
    expect(await object.ring()).toBeUndefined()
    expect(['busy', 'order'].map(object.stateOf)).toEqual(['PAUSED', 'COMPLETED'])
    object.store.release(lease)
    expect(await object.ring()).toBeUndefined()
    expect(object.stateOf('busy')).toBe('COMPLETED')
  })

  test('if a session fails, because the others are woken, and it is retried a minute later', async () => {
    const object = createObject()
    await object.begin('a')
    await object.begin('b')
    const failing = { context: (session: string) => (session === 'a' ? Promise.reject(new Error('no')) : {}) }
    object.own.time += minute
    const thrown = await object.storage.ring(() => wakeSessions(object.agents, failing))
    expect(thrown).toMatchObject({ code: 'host_function_failed' })
    expect(['a', 'b'].map(object.stateOf)).toEqual(['PAUSED', 'COMPLETED'])
    expect(object.storage.scheduled).toBe(object.own.time + minute)
    await object.ring()
    expect(object.stateOf('a')).toBe('COMPLETED')
  })

  test('at most once a minute for sessions that no agent here continues', async () => {
    const object = createObject()
    object.store.timers.set([{ id: 'wake:stranger', at: object.own.time, data: '{"agent":"other"}' }])
    expect(object.storage.scheduled).toBe(object.own.time + 10)
    await object.ring()
    expect(object.storage.scheduled).toBe(object.own.time + minute)
  })

  test('for any clocks, and any end of the object', async () => {
    const steps = fc.array(fc.record({ lateMs: fc.nat(30), ends: fc.boolean() }), {
      minLength: 12,
      maxLength: 12,
    })
    const clocks = fc.record({
      behind: fc.nat(20),
      stale: fc.nat(20),
      naps: fc.integer({ min: 1, max: 3 }),
      tick: fc.nat(2),
    })
    await fc.assert(
      fc.asyncProperty(clocks, steps, async (input, moments) => {
        const object = createObject(input)
        const { time } = object.own
        await object.begin('order')
        for (const { lateMs, ends } of moments) {
          if (object.stateOf('order') === 'COMPLETED') break
          if (ends) object.reopen()
          // The alarm must ring during the sleep.
          expect(object.storage.scheduled).not.toBeNull()
          expect(await object.ring(lateMs)).toBeUndefined()
        }
        expect(object.stateOf('order')).toBe('COMPLETED')
        expect(object.storage.scheduled).toBeNull()
        expect(object.own.time).toBeLessThan(time + input.naps * (minute + 10_000))
      }),
      { numRuns: sampled(40) },
    )
  })
})
