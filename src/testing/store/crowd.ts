import { holds, same } from '../verdict.js'
import { asked, type Check, codeOf, record, records, refused } from './scene.js'

/** Many writers, and several stores at one place. */
export const crowdChecks: readonly Check[] = [
  {
    name: 'two hundred sessions written at once lose nothing and keep their order',
    async run({ store }) {
      const ids = Array.from({ length: 200 }, (_, index) => `session-${index}`)
      await Promise.all(
        ids.map(async (id) => {
          const lease = await store.acquire(id, asked)
          for (let seq = 1; seq <= 10; seq += 2) {
            await Promise.resolve()
            await store.append(lease, [record(seq, `"${id}"`), record(seq + 1, `"${id}"`)])
          }
        }),
      )
      await Promise.all(
        ids.map(async (id) => {
          const wanted = records(1, 10).map((each) => ({ ...each, data: `"${id}"` }))
          same(`the log of ${id}`, await store.read(id), wanted)
        }),
      )
      same('how many are listed', (await store.list()).length, 200)
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
      const refusals = outcomes.flatMap((one) => (one.status === 'rejected' ? [codeOf(one.reason)] : []))
      same('how many got it', outcomes.length - refusals.length, 1)
      same('what the others were told', [...new Set(refusals)], ['session_busy'])
    },
  },
  {
    name: 'of appends of one writer that overlap, each is kept whole or refused',
    async run({ store }) {
      const lease = await store.acquire('s', asked)
      await Promise.allSettled(
        Array.from({ length: 10 }, async (_, index) =>
          store.append(lease, [record(1, `${index}`), record(2, `${index}`)]),
        ),
      )
      const log = await store.read('s')
      same(
        'the records',
        log.map(({ seq }) => seq),
        [1, 2],
      )
      same('the second record, of the same append', log[1]?.data, log[0]?.data)
    },
  },
  {
    name: 'another connection sees what is written, and is refused while the first one writes',
    needs: 'shared',
    async run({ store, open, time }) {
      const other = await open()
      const lease = await store.acquire('s', { holder: 'run 4f2a', ttlMs: time.ms(100) })
      await store.append(lease, [record(1)])
      same('the log, as another connection reads it', await other.read('s'), [record(1)])
      const error = await refused('acquire by another connection', 'session_busy', () =>
        other.acquire('s', asked),
      )
      holds(error.message.includes('run 4f2a'), 'the message of session_busy should name the holder')
      await refused('a delete by another connection', 'session_busy', () => other.delete('s'))

      await time.pass(100)
      const taken = await other.acquire('s', asked)
      await refused('an append with a lease that another connection has taken over', 'lease_lost', () =>
        store.append(lease, [record(2)]),
      )
      await refused('the renewal of a lease that another connection has taken over', 'lease_lost', () =>
        store.renew(lease, 1000),
      )
      await other.append(taken, [record(2)])
      same('the log', await store.read('s'), records(1, 2))
    },
  },
  {
    name: 'a place that many open for the first time at once is good for all',
    needs: 'shared',
    async run({ store, open }) {
      await Promise.all(
        Array.from({ length: 8 }, async (_, index) => {
          const one = await open()
          await one.append(await one.acquire(`s${index}`, asked), [record(1)])
        }),
      )
      same('how many sessions eight stores have written', (await store.list()).length, 8)
    },
  },
  {
    name: 'a closed store says so, and closing it again is nothing',
    needs: 'shared',
    async run({ store, open }) {
      const other = await open()
      const lease = await other.acquire('s', asked)
      await other.close()
      await other.close()
      await refused('an append to a closed store', 'store_unavailable', () =>
        other.append(lease, [record(1)]),
      )
      await refused('a read of a closed store', 'store_unavailable', () => other.read('s'))
      await refused('a list of a closed store', 'store_unavailable', () => other.list())
      same('the log', await store.read('s'), [])
    },
  },
]
