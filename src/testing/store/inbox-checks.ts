import type { SessionInbox } from '../../core/sessions/store/inbox.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import { CheckFailure, expectTrue, expectSame, formatValue } from '../check-assertions.js'
import {
  leaseRequest,
  type StoreCheckSpec,
  createRecord,
  createRecords,
  expectRefusal,
  strangeIds,
  createSummary,
} from './store-scene.js'
import type { SessionTimers, StoredTimer } from '../../core/sessions/store/timers.js'

function getInbox({ inbox }: SessionStore): SessionInbox {
  if (!inbox) throw new CheckFailure('the store should have an inbox, as it had before')
  return inbox
}

async function writeSession(store: SessionStore, id: string): Promise<void> {
  const lease = await store.acquire(id, leaseRequest)
  await store.append(lease, [createRecord(1)], createSummary(id))
  await store.release(lease)
}

export const inboxChecks: readonly StoreCheckSpec[] = [
  {
    name: 'the inbox keeps messages in order, numbered, until they are removed; no number is used twice',
    needs: 'inbox',
    async run({ store, time }) {
      const inbox = getInbox(store)
      await writeSession(store, 's')
      await writeSession(store, 'other')
      expectSame('an inbox at first', await inbox.read('s'), [])
      const texts = ['{"type":"PAUSE"}', '{"text":"Grüße \\u0000 \u{1F600} \' \\" \\\\"}', '{}']
      const times: number[] = []
      for (const [index, text] of texts.entries()) {
        await time.pass(5)
        times.push(time.now())
        expectSame('what put tells', await inbox.put('s', text), { message: index + 1, holder: null })
      }
      expectSame('the first number of another session', (await inbox.put('other', '{}')).message, 1)
      const found = await inbox.read('s')
      const plain = found.map(({ message, text }) => ({ message, text }))
      expectSame(
        'the messages',
        plain,
        texts.map((text, index) => ({ message: index + 1, text })),
      )
      for (const [index, { at }] of found.entries())
        time.same(`when message ${index + 1} came`, at, times[index] ?? Number.NaN)
      await inbox.remove('s', [1, 3])
      await inbox.remove('s', [1, 9])
      const rest = (await inbox.read('s')).map(({ message }) => message)
      expectSame('what is left of 1, 2, 3 when 1 and 3 are removed', rest, [2])
      await inbox.remove('s', [2])
      expectSame('an inbox of which all was removed', await inbox.read('s'), [])
      expectSame('the number after three that were removed', (await inbox.put('s', '{}')).message, 4)
      expectSame('how many another session has', (await inbox.read('other')).length, 1)
    },
  },
  {
    name: 'the inbox tells who held the session when a message came, and the holder with its next write',
    needs: 'inbox',
    async run({ store, time }) {
      const inbox = getInbox(store)
      const lease = await store.acquire('s', { holder: 'run 4f2a', ttlMs: 60_000 })
      expectSame('the inbox of a new lease', lease.inbox ?? 0, 0)
      expectSame('what append tells of no message', await store.append(lease, createRecords(1, 2)), {
        inbox: 0,
      })
      const { holder } = await inbox.put('s', '{}')
      expectTrue(
        holder?.includes('run 4f2a') === true,
        `put should name the holder, 'run 4f2a', but told ${formatValue(holder)}`,
      )
      expectSame('what append tells of one', await store.append(lease, [createRecord(3)]), { inbox: 1 })
      expectSame('what it tells again', await store.append(lease, [createRecord(4)], createSummary('s')), {
        inbox: 1,
      })
      await inbox.put('s', '{}')
      expectSame('what a summary alone is told', await store.append(lease, [], createSummary('s')), {
        inbox: 2,
      })
      await inbox.remove('s', [1, 2])
      expectSame('what append tells when all are removed', await store.append(lease, [createRecord(5)]), {
        inbox: 0,
      })
      await inbox.put('s', '{}')
      expectSame('what release tells', await store.release(lease), { inbox: 3 })
      expectSame('who holds a session that was released', (await inbox.put('s', '{}')).holder, null)
      const next = await store.acquire('s', { holder: 'run 5', ttlMs: time.ms(100) })
      expectSame('the inbox of the next lease', next.inbox, 4)
      await time.pass(100)
      expectSame('who holds a session whose lease has run out', (await inbox.put('s', '{}')).holder, null)
    },
  },
  {
    name: 'the inbox is of sessions with a record alone, and goes with them',
    needs: 'inbox',
    async run({ store }) {
      const inbox = getInbox(store)
      await expectRefusal('a message for no session', 'unknown_session', () => inbox.put('nobody', '{}'))
      const lease = await store.acquire('s', leaseRequest)
      await expectRefusal('a message for a session that was only acquired', 'unknown_session', () =>
        inbox.put('s', '{}'),
      )
      await store.append(lease, [createRecord(1)])
      await inbox.put('s', '{}')
      await store.release(lease)
      await store.delete('s')
      expectSame('the inbox of a session that was deleted', await inbox.read('s'), [])
      await writeSession(store, 's')
      expectSame('the inbox of a session that began anew', await inbox.read('s'), [])
      expectSame('the first number of a session that began anew', (await inbox.put('s', '{}')).message, 1)
      for (const strange of strangeIds) {
        expectSame(`the inbox of ${formatValue(strange)}`, await inbox.read(strange), [])
        await expectRefusal(`a message for ${formatValue(strange)}`, 'unknown_session', () =>
          inbox.put(strange, '{}'),
        )
      }
    },
  },
  {
    name: 'the inbox takes messages of many at once, and numbers each by itself',
    needs: 'inbox',
    async run({ store }) {
      const inbox = getInbox(store)
      await writeSession(store, 's')
      const put = await Promise.all(Array.from({ length: 40 }, async (_, n) => inbox.put('s', `${n}`)))
      const numbers = Array.from({ length: 40 }, (_, n) => n + 1)
      expectSame(
        'the numbers that forty at once were told',
        put.map(({ message }) => message).sort((a, b) => a - b),
        numbers,
      )
      const found = await inbox.read('s')
      expectSame(
        'the numbers in the inbox',
        found.map(({ message }) => message),
        numbers,
      )
      for (const [n, { message }] of put.entries())
        expectSame(`the text of message ${message}`, found[message - 1]?.text, `${n}`)
    },
  },
  {
    name: 'the inbox says which of many sessions have messages, where other processes can leave some',
    needs: 'findUnread',
    async run({ store }) {
      const inbox = getInbox(store)
      for (const id of ['a', 'b', 'c']) await writeSession(store, id)
      await inbox.put('a', '{}')
      await inbox.put('a', '{}')
      await inbox.put('c', '{}')
      const waiting = await inbox.findUnread?.(['a', 'b', 'nobody', '\u0000'])
      expectSame('who waits of a, b and two that are none', waiting, [{ sessionId: 'a', inbox: 2 }])
      expectSame('who waits of none', await inbox.findUnread?.([]), [])
    },
  },
  {
    name: 'the inbox reads what comes after a message, and tells of every session that has messages',
    needs: 'listUnread',
    async run({ store }) {
      const inbox = getInbox(store)
      for (const id of ['a', 'b', 'c']) await writeSession(store, id)
      for (const id of ['a', 'a', 'c', 'a']) await inbox.put(id, '{}')
      const after = (await inbox.read('a', 1)).map(({ message }) => message)
      expectSame('the messages of 1, 2, 3 after 1', after, [2, 3])
      expectSame('the messages after the last', await inbox.read('a', 3), [])
      const lease = await store.acquire('c', leaseRequest)
      const unheard = [...((await inbox.listUnread?.()) ?? [])].sort((a, b) =>
        a.sessionId < b.sessionId ? -1 : 1,
      )
      expectSame('who has messages, held or not', unheard, [
        { sessionId: 'a', inbox: 3 },
        { sessionId: 'c', inbox: 1 },
      ])
      await store.release(lease)
      await inbox.remove('a', [1, 2, 3])
      expectSame('who has messages when one has heard them', await inbox.listUnread?.(), [
        { sessionId: 'c', inbox: 1 },
      ])
    },
  },
]

function getTimers({ timers }: SessionStore): SessionTimers {
  if (!timers) throw new CheckFailure('the store should have timers, as it had before')
  return timers
}

const createTimer = (id: string, at: number, data = '{}'): StoredTimer => ({ id, at, data })
const listIds = (timers: readonly StoredTimer[]): string[] => timers.map(({ id }) => id)

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
    name: 'a timer moves only from where it is',
    needs: 'timers',
    async run({ store }) {
      const timers = getTimers(store)
      await timers.set([createTimer('a', 1000)])
      expectSame('a move from another time', await timers.move({ id: 'a', from: 999, to: 2000 }), false)
      expectSame('a move of no timer', await timers.move({ id: 'none', from: 1000, to: 2000 }), false)
      expectSame('a move', await timers.move({ id: 'a', from: 1000, to: 2000 }), true)
      expectSame('where it is then', (await timers.get('a'))?.at, 2000)
      expectSame('a removal from another time', await timers.move({ id: 'a', from: 1000, to: null }), false)
      expectSame('a removal', await timers.move({ id: 'a', from: 2000, to: null }), true)
      expectSame('a timer that was removed', await timers.get('a'), null)
    },
  },
  {
    name: 'of twenty who move a timer at once, one succeeds',
    needs: 'timers',
    async run({ store, open }) {
      await getTimers(store).set([createTimer('a', 1000)])
      // If stores do not share sessions, the other one has no such timer.
      const others = [store, await open()].map(getTimers)
      const moved = await Promise.all(
        Array.from({ length: 20 }, async (_, i) =>
          (others[i % 2] as SessionTimers).move({ id: 'a', from: 1000, to: 2000 + i }),
        ),
      )
      expectSame('how many succeeded', moved.filter(Boolean).length, 1)
      const timer = await getTimers(store).get('a')
      expectSame('where it is then', timer?.at, 2000 + moved.indexOf(true))
    },
  },
]
