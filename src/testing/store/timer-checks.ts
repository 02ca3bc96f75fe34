import type { SessionStore } from '../../core/sessions/store/store.js'
import type { SessionTimers, StoredTimer } from '../../core/sessions/store/timers.js'
import { CheckFailure, expectSame, expectTrue } from '../check-assertions.js'
import type { StoreCheckSpec } from './store-scene.js'

/** Each is run with stores that have them. */
function getTimers({ timers }: SessionStore): SessionTimers {
  if (!timers) throw new CheckFailure('the store should have timers, as it had before')
  return timers
}

const createTimer = (id: string, at: number, data = '{}'): StoredTimer => ({ id, at, data })
const listIds = (timers: readonly StoredTimer[]): string[] => timers.map(({ id }) => id)

/** What every store does that keeps timers. */
export const timerChecks: readonly StoreCheckSpec[] = [
  {
    name: 'timers are read as they were set, and replaced by others of the same id',
    needs: 'timers',
    async run({ store, time }) {
      const timers = getTimers(store)
      expectSame('a timer that is not there', await timers.get('a'), null)
      const strange = '{"text":"Grüße \u{1F600} \' \\" \\\\"}'
      await timers.set([createTimer('a', time.now(), strange), createTimer('b', time.now() + 60_000)])
      expectSame('a timer', (await timers.get('a'))?.data, strange)
      await timers.set([createTimer('a', 1_700_000_000_123, '{"v":2}')])
      expectSame(
        'a timer that was replaced',
        await timers.get('a'),
        createTimer('a', 1_700_000_000_123, '{"v":2}'),
      )
      await timers.set([])
    },
  },
  {
    name: 'timers are due by the clock of the store, the first ones first, page by page',
    needs: 'timers',
    async run({ store, time }) {
      const timers = getTimers(store)
      const start = time.now()
      const far = start + 10_000_000
      await timers.set([
        createTimer('later', far),
        createTimer('c', start - 1000),
        createTimer('b', start - 1000),
        createTimer('a', start - 500),
      ])
      const due = await timers.listDue({ limit: 10 })
      time.same('the time of the store', due.now, time.now())
      expectSame('what is due', listIds(due.timers), ['b', 'c', 'a'])
      const first = await timers.listDue({ limit: 2 })
      expectSame('a page of two', listIds(first.timers), ['b', 'c'])
      const rest = await timers.listDue({ limit: 2, after: first.timers.at(-1) })
      expectSame('the page after it', listIds(rest.timers), ['a'])
      await timers.set([createTimer('soon', (await timers.listDue({ limit: 1 })).now + time.ms(100))])
      expectSame('what is due before its time', listIds((await timers.listDue({ limit: 10 })).timers), [
        'b',
        'c',
        'a',
      ])
      await time.pass(100)
      expectSame('what is due at its time', listIds((await timers.listDue({ limit: 10 })).timers), [
        'b',
        'c',
        'a',
        'soon',
      ])
    },
  },
  {
    name: 'timers are listed by the beginning of their ids, page by page',
    needs: 'timers',
    async run({ store }) {
      const timers = getTimers(store)
      await timers.set(['x:b', 'x:a', 'x%c', 'y:a', 'x:_'].map((id) => createTimer(id, 1)))
      expectSame('the list', listIds(await timers.list({ prefix: 'x:', limit: 10 })), ['x:_', 'x:a', 'x:b'])
      expectSame('a page', listIds(await timers.list({ prefix: 'x:', limit: 2 })), ['x:_', 'x:a'])
      expectSame('the page after it', listIds(await timers.list({ prefix: 'x:', limit: 2, after: 'x:a' })), [
        'x:b',
      ])
    },
  },
  {
    name: 'a timer moves only from where it is, and brings others along',
    needs: 'timers',
    async run({ store }) {
      const timers = getTimers(store)
      await timers.set([createTimer('a', 1000), createTimer('kept', 5, '{"kept":true}')])
      const add = [createTimer('new', 7), createTimer('kept', 6)]
      expectSame('a move from another time', await timers.move({ id: 'a', from: 999, to: 2000, add }), false)
      expectSame('what such a move adds', await timers.get('new'), null)
      expectSame('a move of no timer', await timers.move({ id: 'none', from: 1000, to: 2000, add }), false)
      expectSame('a move', await timers.move({ id: 'a', from: 1000, to: 2000, add }), true)
      expectSame('where it is then', (await timers.get('a'))?.at, 2000)
      expectSame('what it added', await timers.get('new'), createTimer('new', 7))
      expectSame('what was there before', await timers.get('kept'), createTimer('kept', 5, '{"kept":true}'))
      expectSame('a removal from another time', await timers.move({ id: 'a', from: 1000, to: null }), false)
      const last = [createTimer('last', 8)]
      expectSame('a removal', await timers.move({ id: 'a', from: 2000, to: null, add: last }), true)
      expectSame('a timer that was removed', await timers.get('a'), null)
      expectSame('what a removal added', await timers.get('last'), createTimer('last', 8))
    },
  },
  {
    name: 'of twenty who move a timer at once, one succeeds',
    needs: 'timers',
    async run({ store, open }) {
      await getTimers(store).set([createTimer('a', 1000)])
      // Where each store has sessions of its own, the others find no such timer.
      const others = [store, await open()].map(getTimers)
      const moved = await Promise.all(
        Array.from({ length: 20 }, async (_, i) =>
          (others[i % 2] as SessionTimers).move({
            id: 'a',
            from: 1000,
            to: 2000 + i,
            add: [createTimer(`n${i}`, 1)],
          }),
        ),
      )
      expectSame('how many succeeded', moved.filter(Boolean).length, 1)
      const added = listIds(await getTimers(store).list({ prefix: 'n', limit: 100 }))
      expectTrue(
        added.length === 1 && added[0] === `n${moved.indexOf(true)}`,
        `what the one added should be there alone, but there is ${added.join(', ') || 'nothing'}`,
      )
    },
  },
]
