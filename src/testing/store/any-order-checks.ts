import { memoryStore } from '../../core/sessions/store/memory-store.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import type { Lease, LogRecord, SessionStore } from '../../core/sessions/store/store.js'
import { expectSame } from '../check-assertions.js'
import { type RandomChoices, createRandomChoices } from './random-choices.js'
import { type StoreCheckSpec, createRecord } from './store-scene.js'
import { type CheckTime, createGivenTime } from './check-time.js'

/** An operation on one session, by one of three writers. */
type Operation =
  | { type: 'acquire'; writer: number; ttl: number }
  | { type: 'renew'; writer: number; ttl: number }
  | { type: 'release'; writer: number }
  | { type: 'append'; writer: number; gap: number; types: ('event' | 'snapshot')[] }
  | { type: 'read'; from: number | 'snapshot'; to: number }
  | { type: 'delete' }
  | { type: 'wait'; ms: number }

/** How many sequences; each is longer than the one before, so that the first that goes wrong is short. */
const rounds = 60

/** Random operations in random order: the store must behave like the store in memory. */
export const anyOrderChecks: readonly StoreCheckSpec[] = [
  {
    name: 'does what the store in memory does, whatever is asked of it',
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

/** Runs the same operations on both stores. With a store's own clock, leases are long or have expired: nothing waits. */
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
    expectSame(`what ${describeOperation(operation)} comes to${after} (seed ${seed})`, found, wanted)
  }
  expectSame(
    `the log of ${operations.map(describeOperation).join(', ')} (seed ${seed})`,
    await store.read(id),
    await model.readLog(),
  )
}

/** A store, and the leases of those who write to it. */
class StoreSide {
  readonly #store: SessionStore
  readonly #id: string
  readonly #time: CheckTime
  /** Whether it is told when a lease runs out: of two clocks it is not the same. */
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

  /** A value without tokens, or the code of an error. */
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
      const asked = { holder: `writer ${step.writer}`, ttlMs: step.ttl }
      const lease = await this.#store.acquire(this.#id, asked)
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

  /** Waits until a lease of 0 ms has expired, with a store's own clock. */
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
      const gap = operation.gap === 0 ? '' : operation.gap > 0 ? ' with a gap' : ' over the head'
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
