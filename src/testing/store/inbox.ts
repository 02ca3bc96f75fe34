import type { SessionInbox } from '../../core/sessions/store/inbox.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import { Broken, holds, same, shown } from '../verdict.js'
import { asked, type Check, record, records, refused, strangeIds, summary } from './scene.js'

/** Each is run with stores that have one. */
function inboxOf({ inbox }: SessionStore): SessionInbox {
  if (!inbox) throw new Broken('the store should have an inbox, as it had before')
  return inbox
}

/** A session with a record, which nobody holds. */
async function written(store: SessionStore, id: string): Promise<void> {
  const lease = await store.acquire(id, asked)
  await store.append(lease, [record(1)], summary(id))
  await store.release(lease)
}

/** What every store does that takes messages for its sessions. */
export const inboxChecks: readonly Check[] = [
  {
    name: 'the inbox keeps messages in order, numbered, until they are removed; no number is used twice',
    needs: 'inbox',
    async run({ store, time }) {
      const inbox = inboxOf(store)
      await written(store, 's')
      await written(store, 'other')
      same('an inbox at first', await inbox.read('s'), [])
      const texts = ['{"type":"PAUSE"}', '{"text":"Grüße \\u0000 \u{1F600} \' \\" \\\\"}', '{}']
      const times: number[] = []
      for (const [index, text] of texts.entries()) {
        await time.pass(5)
        times.push(time.now())
        same('what put tells', await inbox.put('s', text), { message: index + 1, holder: null })
      }
      same('the first number of another session', (await inbox.put('other', '{}')).message, 1)
      const found = await inbox.read('s')
      const plain = found.map(({ message, text }) => ({ message, text }))
      same(
        'the messages',
        plain,
        texts.map((text, index) => ({ message: index + 1, text })),
      )
      for (const [index, { at }] of found.entries())
        time.same(`when message ${index + 1} came`, at, times[index] ?? Number.NaN)
      await inbox.remove('s', [1, 3])
      await inbox.remove('s', [1, 9])
      const rest = (await inbox.read('s')).map(({ message }) => message)
      same('what is left of 1, 2, 3 when 1 and 3 are removed', rest, [2])
      await inbox.remove('s', [2])
      same('an inbox of which all was removed', await inbox.read('s'), [])
      same('the number after three that were removed', (await inbox.put('s', '{}')).message, 4)
      same('how many another session has', (await inbox.read('other')).length, 1)
    },
  },
  {
    name: 'the inbox tells who held the session when a message came, and the holder with its next write',
    needs: 'inbox',
    async run({ store, time }) {
      const inbox = inboxOf(store)
      const lease = await store.acquire('s', { holder: 'run 4f2a', ttlMs: 60_000 })
      same('the inbox of a new lease', lease.inbox ?? 0, 0)
      same('what append tells of no message', await store.append(lease, records(1, 2)), { inbox: 0 })
      const { holder } = await inbox.put('s', '{}')
      holds(
        holder?.includes('run 4f2a') === true,
        `put should name the holder, 'run 4f2a', but told ${shown(holder)}`,
      )
      same('what append tells of one', await store.append(lease, [record(3)]), { inbox: 1 })
      same('what it tells again', await store.append(lease, [record(4)], summary('s')), { inbox: 1 })
      await inbox.put('s', '{}')
      same('what a summary alone is told', await store.append(lease, [], summary('s')), { inbox: 2 })
      await inbox.remove('s', [1, 2])
      same('what append tells when all are removed', await store.append(lease, [record(5)]), { inbox: 0 })
      await inbox.put('s', '{}')
      same('what release tells', await store.release(lease), { inbox: 3 })
      same('who holds a session that was released', (await inbox.put('s', '{}')).holder, null)
      const next = await store.acquire('s', { holder: 'run 5', ttlMs: time.ms(100) })
      same('the inbox of the next lease', next.inbox, 4)
      await time.pass(100)
      same('who holds a session whose lease has run out', (await inbox.put('s', '{}')).holder, null)
    },
  },
  {
    name: 'the inbox is of sessions with a record alone, and goes with them',
    needs: 'inbox',
    async run({ store }) {
      const inbox = inboxOf(store)
      await refused('a message for no session', 'unknown_session', () => inbox.put('nobody', '{}'))
      const lease = await store.acquire('s', asked)
      await refused('a message for a session that was only acquired', 'unknown_session', () =>
        inbox.put('s', '{}'),
      )
      await store.append(lease, [record(1)])
      await inbox.put('s', '{}')
      await store.release(lease)
      await store.delete('s')
      same('the inbox of a session that was deleted', await inbox.read('s'), [])
      await written(store, 's')
      same('the inbox of a session that began anew', await inbox.read('s'), [])
      same('the first number of a session that began anew', (await inbox.put('s', '{}')).message, 1)
      for (const strange of strangeIds) {
        same(`the inbox of ${shown(strange)}`, await inbox.read(strange), [])
        await refused(`a message for ${shown(strange)}`, 'unknown_session', () => inbox.put(strange, '{}'))
      }
    },
  },
  {
    name: 'the inbox takes messages of many at once, and numbers each by itself',
    needs: 'inbox',
    async run({ store }) {
      const inbox = inboxOf(store)
      await written(store, 's')
      const put = await Promise.all(Array.from({ length: 40 }, async (_, n) => inbox.put('s', `${n}`)))
      const numbers = Array.from({ length: 40 }, (_, n) => n + 1)
      same(
        'the numbers that forty at once were told',
        put.map(({ message }) => message).sort((a, b) => a - b),
        numbers,
      )
      const found = await inbox.read('s')
      same(
        'the numbers in the inbox',
        found.map(({ message }) => message),
        numbers,
      )
      for (const [n, { message }] of put.entries())
        same(`the text of message ${message}`, found[message - 1]?.text, `${n}`)
    },
  },
  {
    name: 'the inbox says which of many sessions have messages, where other processes can leave some',
    needs: 'findUnread',
    async run({ store }) {
      const inbox = inboxOf(store)
      for (const id of ['a', 'b', 'c']) await written(store, id)
      await inbox.put('a', '{}')
      await inbox.put('a', '{}')
      await inbox.put('c', '{}')
      const waiting = await inbox.findUnread?.(['a', 'b', 'nobody', '\u0000'])
      same('who waits of a, b and two that are none', waiting, [{ sessionId: 'a', inbox: 2 }])
      same('who waits of none', await inbox.findUnread?.([]), [])
    },
  },
  {
    name: 'the inbox reads what comes after a message, and tells of every session that has messages',
    needs: 'listUnread',
    async run({ store }) {
      const inbox = inboxOf(store)
      for (const id of ['a', 'b', 'c']) await written(store, id)
      for (const id of ['a', 'a', 'c', 'a']) await inbox.put(id, '{}')
      const after = (await inbox.read('a', 1)).map(({ message }) => message)
      same('the messages of 1, 2, 3 after 1', after, [2, 3])
      same('the messages after the last', await inbox.read('a', 3), [])
      const lease = await store.acquire('c', asked)
      const unheard = [...((await inbox.listUnread?.()) ?? [])].sort((a, b) =>
        a.sessionId < b.sessionId ? -1 : 1,
      )
      same('who has messages, held or not', unheard, [
        { sessionId: 'a', inbox: 3 },
        { sessionId: 'c', inbox: 1 },
      ])
      await store.release(lease)
      await inbox.remove('a', [1, 2, 3])
      same('who has messages when one has heard them', await inbox.listUnread?.(), [
        { sessionId: 'c', inbox: 1 },
      ])
    },
  },
]
