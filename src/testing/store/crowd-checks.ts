import { expectTrue, expectSame } from '../check-assertions.js'
import {
  leaseRequest,
  type StoreCheckSpec,
  getCode,
  createRecord,
  createRecords,
  expectRefusal,
} from './store-scene.js'

/** Many writers, and several stores at one place. */
export const crowdChecks: readonly StoreCheckSpec[] = [
  {
    name: 'two hundred sessions written at once lose nothing and keep their order',
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
      expectSame('how many are listed', (await store.list()).length, 200)
    },
  },
  {
    name: 'of twenty who want a session at once, one gets it',
    async run({ store }) {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 20 }, async (_, index) =>
          store.acquire('s', { holder: `${index}`, ttlMs: 60_000 }),
        ),
      )
      const refusals = outcomes.flatMap((one) => (one.status === 'rejected' ? [getCode(one.reason)] : []))
      expectSame('how many got it', outcomes.length - refusals.length, 1)
      expectSame('what the others were told', [...new Set(refusals)], ['session_busy'])
    },
  },
  {
    name: 'of appends of one writer that overlap, each is kept whole or refused',
    async run({ store }) {
      const lease = await store.acquire('s', leaseRequest)
      await Promise.allSettled(
        Array.from({ length: 10 }, async (_, index) =>
          store.append(lease, [createRecord(1, `${index}`), createRecord(2, `${index}`)]),
        ),
      )
      const log = await store.read('s')
      expectSame(
        'the records',
        log.map(({ seq }) => seq),
        [1, 2],
      )
      expectSame('the second record, of the same append', log[1]?.data, log[0]?.data)
    },
  },
  {
    name: 'another connection sees what is written, and is refused while the first one writes',
    needs: 'shared',
    async run({ store, open, time }) {
      const other = await open()
      const lease = await store.acquire('s', { holder: 'run 4f2a', ttlMs: time.ms(100) })
      await store.append(lease, [createRecord(1)])
      expectSame('the log, as another connection reads it', await other.read('s'), [createRecord(1)])
      const error = await expectRefusal('acquire by another connection', 'session_busy', () =>
        other.acquire('s', leaseRequest),
      )
      expectTrue(error.message.includes('run 4f2a'), 'the message of session_busy should name the holder')
      await expectRefusal('a delete by another connection', 'session_busy', () => other.delete('s'))

      await time.pass(100)
      const taken = await other.acquire('s', leaseRequest)
      await expectRefusal('an append with a lease that another connection has taken over', 'lease_lost', () =>
        store.append(lease, [createRecord(2)]),
      )
      await expectRefusal('the renewal of a lease that another connection has taken over', 'lease_lost', () =>
        store.renew(lease, 1000),
      )
      await other.append(taken, [createRecord(2)])
      expectSame('the log', await store.read('s'), createRecords(1, 2))
    },
  },
  {
    name: 'a place that many open for the first time at once is good for all',
    needs: 'shared',
    async run({ store, open }) {
      await Promise.all(
        Array.from({ length: 8 }, async (_, index) => {
          const one = await open()
          await one.append(await one.acquire(`s${index}`, leaseRequest), [createRecord(1)])
        }),
      )
      expectSame('how many sessions eight stores have written', (await store.list()).length, 8)
    },
  },
  {
    name: 'a closed store says so, and closing it again is nothing',
    needs: 'shared',
    async run({ store, open }) {
      const other = await open()
      const lease = await other.acquire('s', leaseRequest)
      await other.close()
      await other.close()
      await expectRefusal('an append to a closed store', 'store_unavailable', () =>
        other.append(lease, [createRecord(1)]),
      )
      await expectRefusal('a read of a closed store', 'store_unavailable', () => other.read('s'))
      await expectRefusal('a list of a closed store', 'store_unavailable', () => other.list())
      expectSame('the log', await store.read('s'), [])
    },
  },
]
