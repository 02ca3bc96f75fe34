import { isObject } from '../../core/base/values.js'
import { type RandomChoices, createRandomChoices } from '../check-assertions.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import type { Lease, SessionStore } from '../../core/sessions/store/store.js'
import * as t from './store-scene.js'

export const crowdChecks: t.StoreChecks = {
  'two hundred concurrent sessions keep all records in order': async ({ store }) => {
    const ids = Array.from({ length: 200 }, (_, index) => `session-${index}`)
    await Promise.all(
      ids.map(async (id) => {
        const lease = await t.hold(store, id)
        for (let seq = 1; seq <= 10; seq += 2) {
          await Promise.resolve()
          await store.append(lease, [t.record(seq, `"${id}"`), t.record(seq + 1, `"${id}"`)])
        }
      }),
    )
    await Promise.all(
      ids.map(async (id) => {
        const wanted = t.records(1, 10).map((each) => ({ ...each, data: `"${id}"` }))
        t.same(`the log of ${id}`, await store.read(id), wanted)
      }),
    )
    t.same('the number of listed sessions', (await store.list()).length, 200)
  },
  'one of twenty concurrent writers acquires a session': async ({ store }) => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, async (_, index) =>
        store.acquire('s', { holder: `${index}`, ttlMs: 60_000 }),
      ),
    )
    const refusals = outcomes.flatMap((one) => (one.status === 'rejected' ? [t.codeOf(one.reason)] : []))
    t.same('the number of writers that acquired it', outcomes.length - refusals.length, 1)
    t.same("the other writers' errors", [...new Set(refusals)], ['session_busy'])
  },
  'overlapping appends of one writer are stored completely or refused': async ({ store }) => {
    const lease = await t.hold(store)
    await Promise.allSettled(
      Array.from({ length: 10 }, async (_, index) =>
        store.append(lease, [t.record(1, `${index}`), t.record(2, `${index}`)]),
      ),
    )
    const log = await store.read('s')
    t.same('the records', t.seqs(log), [1, 2])
    t.same('the second record of the same append', log[1]?.data, log[0]?.data)
  },
}

export const sharedChecks: t.StoreChecks = {
  'another connection reads the records and is refused while the first one writes': async (scene) => {
    const { store, open, time } = scene
    const other = await open()
    const lease = await t.hold(store, 's', { holder: 'run 4f2a', ttlMs: time.ms(100) })
    await t.add(store, lease, 1)
    t.same('the log as another connection reads it', await other.read('s'), [t.record(1)])
    await t.busy('acquire by another connection', 'run 4f2a', () => t.hold(other))
    await t.held('a delete by another connection', () => other.delete('s'))

    await time.pass(100)
    const newLease = await t.hold(other)
    await t.lost('an append with a lease that another connection has taken over', () =>
      t.add(store, lease, 2),
    )
    await t.lost('renewing a lease that another connection has taken over', () => store.renew(lease, 1000))
    await t.add(other, newLease, 2)
    t.same('the log', await store.read('s'), t.records(1, 2))
  },
  'a new place can be opened by several stores at once': async ({ store, open }) => {
    await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const one = await open()
        await one.append(await t.hold(one, `s${index}`), [t.record(1)])
      }),
    )
    t.same('the number of sessions written by eight stores', (await store.list()).length, 8)
  },
  'a closed store throws store_unavailable, and close is idempotent': async ({ store, open }) => {
    const other = await open()
    const lease = await t.hold(other)
    await other.close()
    await other.close()
    await t.refused('an append to a closed store', 'store_unavailable', () => t.add(other, lease, 1))
    await t.refused('reading a closed store', 'store_unavailable', () => other.read('s'))
    await t.refused('listing the sessions of a closed store', 'store_unavailable', () => other.list())
    t.same('the log', await store.read('s'), [])
  },
}

/** Sequences get longer each round, so that the first failure is short. */
const rounds = 60

export const anyOrderChecks: t.StoreChecks = {
  'random operations behave as in the memory store': async ({ store, time, seed }) => {
    const by = createRandomChoices(seed)
    for (let round = 0; round < rounds; round += 1) {
      const length = 1 + Math.ceil((round * 40) / rounds)
      const operations = Array.from({ length }, () => createOperation(by, time))
      await compareStores(operations, store, time, `round-${round}`, seed)
    }
  },
}

/** With a store's own clock, leases are either long or already expired, so that no operation waits. */
async function compareStores(
  operations: readonly Operation[],
  store: SessionStore,
  time: t.CheckTime,
  id: string,
  seed: number,
): Promise<void> {
  const reference = time.isGiven ? time : t.createGivenTime()
  const model: Side = { store: memoryStore({ now: reference.now }), id, time: reference, leases: new Map() }
  const side: Side = { store, id, time, leases: new Map() }
  const words = operations.map((operation) => operation.words)
  for (const [index, { run, waitMs }] of operations.entries()) {
    const wanted = await getOutcome(run, model, time.isGiven)
    const found = await getOutcome(run, side, time.isGiven)
    if (waitMs !== undefined) await time.pass(waitMs)
    const before = words.slice(Math.max(0, index - 9), index)
    const after = before.length === 0 ? '' : ` after ${before.join(', ')}`
    t.same(`the result of ${words[index]}${after} (seed ${seed})`, found, wanted)
  }
  const [found, wanted] = [await store.read(id), await model.store.read(id)]
  t.same(`the log of ${words.join(', ')} (seed ${seed})`, found, wanted)
}

interface Side {
  store: SessionStore
  id: string
  time: t.CheckTime
  leases: Map<number, Lease>
}

interface Operation {
  words: string
  waitMs?: number
  run: (side: Side) => unknown
}

/** The returned value, or an error code. Expiry times differ if there are two clocks. */
async function getOutcome(run: Operation['run'], side: Side, isExact: boolean): Promise<unknown> {
  try {
    const outcome = await run(side)
    if (!isObject(outcome)) return outcome
    return isExact ? outcome['expiresAt'] : 'a lease'
  } catch (error) {
    if (error instanceof StoreError) return error.code
    throw error
  }
}

const kinds = ['acquire', 'renew', 'release', 'append', 'append', 'append', 'read', 'delete', 'wait'] as const

function createOperation({ whole, one }: RandomChoices, { isGiven }: t.CheckTime): Operation {
  const writer = whole(2)
  const ttlMs = isGiven ? whole(20) : one([0, 60_000, 60_000])
  const type = one(kinds)
  /** With a store's own clock, waits until a lease of 0 ms has expired. */
  const untilExpired = async ({ time }: Side, lease: Lease): Promise<Lease> => {
    if (ttlMs === 0 && !time.isGiven) await time.pass(0)
    return lease
  }
  const withLease = (use: (side: Side, lease: Lease) => Promise<unknown>) => (side: Side) => {
    const lease = side.leases.get(writer)
    return lease ? use(side, lease) : 'no lease'
  }
  switch (type) {
    case 'acquire':
      return {
        words: `acquire by ${writer} for ${ttlMs} ms`,
        run: async (side) => {
          const lease = await side.store.acquire(side.id, { holder: `writer ${writer}`, ttlMs })
          side.leases.set(writer, lease)
          return untilExpired(side, lease)
        },
      }
    case 'renew':
      return {
        words: `renew by ${writer} for ${ttlMs} ms`,
        run: withLease(async (side, lease) => untilExpired(side, await side.store.renew(lease, ttlMs))),
      }
    case 'release':
      return {
        words: `release by ${writer}`,
        run: withLease(async ({ store }, lease) => {
          await store.release(lease)
          return 'released'
        }),
      }
    case 'delete':
      return { words: type, run: ({ store, id }) => store.delete(id) }
    case 'wait': {
      const waitMs = isGiven ? whole(15) : 0
      return { words: `${waitMs} ms`, waitMs, run: () => 'waited' }
    }
    case 'read': {
      const range = { from: one([1, 'snapshot' as const, whole(12)]), to: whole(12) }
      return {
        words: `read from ${range.from} to ${range.to}`,
        run: ({ store, id }) => store.read(id, range),
      }
    }
    default: {
      const types = Array.from({ length: whole(3) }, () => one(['event', 'event', 'snapshot'] as const))
      const gap = one([0, 0, 0, 0, 1, -1])
      const where = gap === 0 ? '' : gap > 0 ? ' with a gap' : ' overlapping the head'
      return {
        words: `append of ${types.length}${where} by ${writer}`,
        run: withLease(async ({ store, id }, lease) => {
          const next = ((await store.read(id)).at(-1)?.seq ?? 0) + 1 + gap
          await store.append(
            lease,
            types.map((kind, index) => t.record(next + index, `${writer}`, kind)),
          )
          return 'appended'
        }),
      }
    }
  }
}
