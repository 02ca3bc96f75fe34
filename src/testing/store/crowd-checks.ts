import { expectSame, type RandomChoices, createRandomChoices } from '../check-assertions.js'
import {
  leaseRequest,
  type StoreCheckSpec,
  getCode,
  createRecord,
  createRecords,
  expectBusy,
  expectRefusal,
  listSeqs,
  type CheckTime,
  createGivenTime,
} from './store-scene.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import type { Lease, LogRecord, SessionStore } from '../../core/sessions/store/store.js'

export const crowdChecks: readonly StoreCheckSpec[] = [
  {
    name: 'two hundred concurrent sessions keep all records in order',
    async run({ store }) {
      const ids = Array.from({ length: 200 }, (_, index) => `session-${index}`)
      await Promise.all(
        ids.map(async (id) => {
          const lease = await store.acquire(id, leaseRequest)
          for (let seq = 1; seq <= 10; seq += 2) {
            await Promise.resolve()
            await store.append(lease, [createRecord(seq, `"${id}"`), createRecord(seq + 1, `"${id}"`)])
          }
        }),
      )
      await Promise.all(
        ids.map(async (id) => {
          const wanted = createRecords(1, 10).map((each) => ({ ...each, data: `"${id}"` }))
          expectSame(`the log of ${id}`, await store.read(id), wanted)
        }),
      )
      expectSame('the number of listed sessions', (await store.list()).length, 200)
    },
  },
  {
    name: 'one of twenty concurrent writers acquires a session',
    async run({ store }) {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 20 }, async (_, index) =>
          store.acquire('s', { holder: `${index}`, ttlMs: 60_000 }),
        ),
      )
      const refusals = outcomes.flatMap((one) => (one.status === 'rejected' ? [getCode(one.reason)] : []))
      expectSame('the number of writers that acquired it', outcomes.length - refusals.length, 1)
      expectSame("the other writers' errors", [...new Set(refusals)], ['session_busy'])
    },
  },
  {
    name: 'overlapping appends of one writer are stored completely or refused',
    async run({ store }) {
      const lease = await store.acquire('s', leaseRequest)
      await Promise.allSettled(
        Array.from({ length: 10 }, async (_, index) =>
          store.append(lease, [createRecord(1, `${index}`), createRecord(2, `${index}`)]),
        ),
      )
      const log = await store.read('s')
      expectSame('the records', listSeqs(log), [1, 2])
      expectSame('the second record of the same append', log[1]?.data, log[0]?.data)
    },
  },
  {
    name: 'another connection reads the records and is refused while the first one writes',
    needs: 'shared',
    async run({ store, open, time }) {
      const other = await open()
      const lease = await store.acquire('s', { holder: 'run 4f2a', ttlMs: time.ms(100) })
      await store.append(lease, [createRecord(1)])
      expectSame('the log as another connection reads it', await other.read('s'), [createRecord(1)])
      await expectBusy('acquire by another connection', 'run 4f2a', () => other.acquire('s', leaseRequest))
      await expectRefusal('a delete by another connection', 'session_busy', () => other.delete('s'))

      await time.pass(100)
      const newLease = await other.acquire('s', leaseRequest)
      await expectRefusal('an append with a lease that another connection has taken over', 'lease_lost', () =>
        store.append(lease, [createRecord(2)]),
      )
      await expectRefusal('renewing a lease that another connection has taken over', 'lease_lost', () =>
        store.renew(lease, 1000),
      )
      await other.append(newLease, [createRecord(2)])
      expectSame('the log', await store.read('s'), createRecords(1, 2))
    },
  },
  {
    name: 'a new place can be opened by several stores at once',
    needs: 'shared',
    async run({ store, open }) {
      await Promise.all(
        Array.from({ length: 8 }, async (_, index) => {
          const one = await open()
          await one.append(await one.acquire(`s${index}`, leaseRequest), [createRecord(1)])
        }),
      )
      expectSame('the number of sessions written by eight stores', (await store.list()).length, 8)
    },
  },
  {
    name: 'a closed store throws store_unavailable, and close is idempotent',
    needs: 'shared',
    async run({ store, open }) {
      const other = await open()
      const lease = await other.acquire('s', leaseRequest)
      await other.close()
      await other.close()
      await expectRefusal('an append to a closed store', 'store_unavailable', () =>
        other.append(lease, [createRecord(1)]),
      )
      await expectRefusal('reading a closed store', 'store_unavailable', () => other.read('s'))
      await expectRefusal('listing the sessions of a closed store', 'store_unavailable', () => other.list())
      expectSame('the log', await store.read('s'), [])
    },
  },
]

type Operation =
  | { type: 'acquire'; writer: number; ttl: number }
  | { type: 'renew'; writer: number; ttl: number }
  | { type: 'release'; writer: number }
  | { type: 'append'; writer: number; gap: number; types: ('event' | 'snapshot')[] }
  | { type: 'read'; from: number | 'snapshot'; to: number }
  | { type: 'delete' }
  | { type: 'wait'; ms: number }

/** Sequences get longer each round, so that the first failure is short. */
const rounds = 60

/** Checks that random operations behave as in the memory store. */
export const anyOrderChecks: readonly StoreCheckSpec[] = [
  {
    name: 'random operations behave as in the memory store',
    async run({ store, time, seed }) {
      const by = createRandomChoices(seed)
      for (let round = 0; round < rounds; round += 1) {
        const length = 1 + Math.ceil((round * 40) / rounds)
        const operations = Array.from({ length }, () => createOperation(by, time))
        await compareStores(operations, store, time, `round-${round}`, seed)
      }
    },
  },
]

/**
 * Runs the same operations on both stores. With a store's own clock, leases are either long or already expired, so that
 * no operation waits.
 */
async function compareStores(
  operations: readonly Operation[],
  store: SessionStore,
  time: CheckTime,
  id: string,
  seed: number,
): Promise<void> {
  const reference = time.isGiven ? time : createGivenTime()
  const model = new StoreSide(memoryStore({ now: reference.now }), id, reference, time.isGiven)
  const side = new StoreSide(store, id, time, time.isGiven)
  for (const [index, operation] of operations.entries()) {
    const wanted = await model.getOutcome(operation)
    const found = await side.getOutcome(operation)
    if (operation.type === 'wait') await time.pass(operation.ms)
    const before = operations.slice(Math.max(0, index - 9), index).map(describeOperation)
    const after = before.length === 0 ? '' : ` after ${before.join(', ')}`
    expectSame(`the result of ${describeOperation(operation)}${after} (seed ${seed})`, found, wanted)
  }
  expectSame(
    `the log of ${operations.map(describeOperation).join(', ')} (seed ${seed})`,
    await store.read(id),
    await model.readLog(),
  )
}

/** A store with the leases of its writers. */
class StoreSide {
  readonly #store: SessionStore
  readonly #id: string
  readonly #time: CheckTime
  /** Whether to compare expiry times. They differ if there are two clocks. */
  readonly #isExact: boolean
  readonly #leases = new Map<number, Lease>()

  constructor(store: SessionStore, id: string, time: CheckTime, isExact: boolean) {
    this.#store = store
    this.#id = id
    this.#time = time
    this.#isExact = isExact
  }

  async readLog(): Promise<LogRecord[]> {
    return this.#store.read(this.#id)
  }

  /** The returned value without tokens, or an error code. */
  async getOutcome(operation: Operation): Promise<unknown> {
    try {
      return await this.#performStep(operation)
    } catch (error) {
      if (error instanceof StoreError) return error.code
      throw error
    }
  }

  async #performStep(step: Operation): Promise<unknown> {
    if (step.type === 'wait') return 'waited'
    if (step.type === 'delete') return this.#store.delete(this.#id)
    if (step.type === 'read') return this.#store.read(this.#id, { from: step.from, to: step.to })
    if (step.type === 'acquire') {
      const leaseOptions = { holder: `writer ${step.writer}`, ttlMs: step.ttl }
      const lease = await this.#store.acquire(this.#id, leaseOptions)
      this.#leases.set(step.writer, lease)
      await this.#waitForExpiry(step.ttl)
      return this.#formatExpiry(lease)
    }
    const lease = this.#leases.get(step.writer)
    if (!lease) return 'no lease'
    if (step.type === 'renew') {
      const renewed = await this.#store.renew(lease, step.ttl)
      await this.#waitForExpiry(step.ttl)
      return this.#formatExpiry(renewed)
    }
    if (step.type === 'release') {
      await this.#store.release(lease)
      return 'released'
    }
    const next = ((await this.readLog()).at(-1)?.seq ?? 0) + 1 + step.gap
    const added = step.types.map((type, index) => createRecord(next + index, `${step.writer}`, type))
    await this.#store.append(lease, added)
    return 'appended'
  }

  /** With a store's own clock, waits until a lease of 0 ms has expired. */
  async #waitForExpiry(ttl: number): Promise<void> {
    if (ttl === 0 && !this.#time.isGiven) await this.#time.pass(0)
  }

  #formatExpiry({ expiresAt }: Lease): unknown {
    return this.#isExact ? expiresAt : 'a lease'
  }
}

function createOperation({ whole, one }: RandomChoices, { isGiven }: CheckTime): Operation {
  const writer = whole(2)
  const ttl = isGiven ? whole(20) : one([0, 60_000, 60_000])
  const kinds = [
    'acquire',
    'renew',
    'release',
    'append',
    'append',
    'append',
    'read',
    'delete',
    'wait',
  ] as const
  const type = one(kinds)
  if (type === 'acquire') return { type, writer, ttl }
  if (type === 'renew') return { type, writer, ttl }
  if (type === 'release') return { type, writer }
  if (type === 'delete') return { type }
  if (type === 'wait') return { type, ms: isGiven ? whole(15) : 0 }
  if (type === 'read') return { type, from: one([1, 'snapshot', whole(12)]), to: whole(12) }
  const types = Array.from({ length: whole(3) }, () => one(['event', 'event', 'snapshot'] as const))
  return { type, writer, gap: one([0, 0, 0, 0, 1, -1]), types }
}

function describeOperation(operation: Operation): string {
  switch (operation.type) {
    case 'acquire':
    case 'renew':
      return `${operation.type} by ${operation.writer} for ${operation.ttl} ms`
    case 'append': {
      const gap = operation.gap === 0 ? '' : operation.gap > 0 ? ' with a gap' : ' overlapping the head'
      return `append of ${operation.types.length}${gap} by ${operation.writer}`
    }
    case 'release':
      return `release by ${operation.writer}`
    case 'read':
      return `read from ${operation.from} to ${operation.to}`
    case 'wait':
      return `${operation.ms} ms`
    default:
      return operation.type
  }
}
