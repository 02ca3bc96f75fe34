import type { SessionTimers, StoredTimer } from '../../core/sessions/store/timers.js'
import * as t from './store-scene.js'

export const inboxChecks: t.StoreChecks = {
  'the inbox keeps numbered messages in order until they are removed and never reuses a number': async (
    scene,
  ) => {
    const { store, inbox, time } = scene
    await t.write(store, 's')
    await t.write(store, 'other')
    t.same('a new inbox', await inbox.read('s'), [])
    const texts = ['{"type":"PAUSE"}', '{"text":"Grüße \\u0000 \u{1F600} \' \\" \\\\"}', '{}']
    const times: number[] = []
    for (const [index, text] of texts.entries()) {
      await time.pass(5)
      times.push(time.now())
      t.same('the result of put', await inbox.put('s', text), { message: index + 1, holder: null })
    }
    t.same('the first number of another session', (await inbox.put('other', '{}')).message, 1)
    const found = await inbox.read('s')
    const plain = found.map(({ message, text }) => ({ message, text }))
    t.same(
      'the messages',
      plain,
      texts.map((text, index) => ({ message: index + 1, text })),
    )
    for (const [index, { at }] of found.entries())
      time.same(`the time of message ${index + 1}`, at, times[index] ?? Number.NaN)
    await inbox.remove('s', [1, 3])
    await inbox.remove('s', [1, 9])
    t.same('the remaining messages after 1 and 3 are removed', t.numbers(await inbox.read('s')), [2])
    await inbox.remove('s', [2])
    t.same('an inbox after all its messages have been removed', await inbox.read('s'), [])
    const next = await inbox.put('s', '{}')
    t.same('the number of the message that follows three removed messages', next.message, 4)
    t.same('the number of messages of another session', (await inbox.read('other')).length, 1)
  },
  "put returns the lease owner, and the owner's next write returns the last message number": async (
    scene,
  ) => {
    const { store, inbox, time } = scene
    const lease = await t.hold(store, 's', { holder: 'run 4f2a' })
    t.same("a new lease's inbox", lease.inbox ?? 0, 0)
    const without = await store.append(lease, t.records(1, 2))
    t.same('the result of append without messages', without, { inbox: 0 })
    const { holder } = await inbox.put('s', '{}')
    const words = `put should name the lease owner, 'run 4f2a', but returned ${t.show(holder)}`
    t.ok(holder?.includes('run 4f2a') === true, words)
    t.same('the result of append with one message', await t.add(store, lease, 3), { inbox: 1 })
    t.same("the next append's result", await store.append(lease, [t.record(4)], t.summary('s')), { inbox: 1 })
    await inbox.put('s', '{}')
    const summary = await store.append(lease, [], t.summary('s'))
    t.same('the result of writing only a summary', summary, { inbox: 2 })
    await inbox.remove('s', [1, 2])
    const emptied = await t.add(store, lease, 5)
    t.same('the result of append after everything has been removed', emptied, { inbox: 0 })
    await inbox.put('s', '{}')
    t.same('the result of release', await store.release(lease), { inbox: 3 })
    t.same("a released session's owner", (await inbox.put('s', '{}')).holder, null)
    const next = await store.acquire('s', { holder: 'run 5', ttlMs: time.ms(100) })
    t.same("the next lease's inbox", next.inbox, 4)
    await time.pass(100)
    t.same('the owner of a session with an expired lease', (await inbox.put('s', '{}')).holder, null)
  },
  'only sessions with records have an inbox, and it is deleted with them': async ({ store, inbox }) => {
    const expectUnknown = (whose: string, id: string) =>
      t.refused(`a message for ${whose}`, 'unknown_session', () => inbox.put(id, '{}'))
    await expectUnknown('an unknown session', 'nobody')
    const lease = await t.hold(store)
    await expectUnknown('a session that was only acquired', 's')
    await t.add(store, lease, 1)
    await inbox.put('s', '{}')
    await store.release(lease)
    await store.delete('s')
    t.same('the inbox of a deleted session', await inbox.read('s'), [])
    await t.write(store, 's')
    t.same('the inbox of a recreated session', await inbox.read('s'), [])
    t.same('the first number of a recreated session', (await inbox.put('s', '{}')).message, 1)
    for (const strange of t.strangeIds) {
      t.same(`the inbox of ${t.show(strange)}`, await inbox.read(strange), [])
      await expectUnknown(t.show(strange), strange)
    }
  },
  'concurrent messages get unique numbers': async ({ store, inbox }) => {
    await t.write(store, 's')
    const put = await Promise.all(Array.from({ length: 40 }, async (_, n) => inbox.put('s', `${n}`)))
    const numbers = Array.from({ length: 40 }, (_, n) => n + 1)
    const given = t.numbers(put).sort((a, b) => a - b)
    t.same('the numbers of forty concurrent messages', given, numbers)
    const found = await inbox.read('s')
    t.same('the numbers in the inbox', t.numbers(found), numbers)
    for (const [n, { message }] of put.entries())
      t.same(`the text of message ${message}`, found[message - 1]?.text, `${n}`)
  },
}

export const findUnreadChecks: t.StoreChecks = {
  'findUnread returns the sessions with messages': async ({ store, inbox }) => {
    for (const id of ['a', 'b', 'c']) await t.write(store, id)
    await inbox.put('a', '{}')
    await inbox.put('a', '{}')
    await inbox.put('c', '{}')
    const waiting = await inbox.findUnread?.(['a', 'b', 'nobody', '\u0000'])
    const wanted = [{ sessionId: 'a', inbox: 2 }]
    t.same('the sessions with messages among a, b and two unknown ids', waiting, wanted)
    t.same('the sessions with messages in an empty list', await inbox.findUnread?.([]), [])
  },
}

export const listUnreadChecks: t.StoreChecks = {
  'the inbox returns the messages after a given number, and listUnread returns every session with messages':
    async ({ store, inbox }) => {
      for (const id of ['a', 'b', 'c']) await t.write(store, id)
      for (const id of ['a', 'a', 'c', 'a']) await inbox.put(id, '{}')
      t.same('the list of messages after message 1', t.numbers(await inbox.read('a', 1)), [2, 3])
      t.same('the list of messages after the last one', await inbox.read('a', 3), [])
      const lease = await t.hold(store, 'c')
      const unheard = [...((await inbox.listUnread?.()) ?? [])].sort((a, b) =>
        a.sessionId < b.sessionId ? -1 : 1,
      )
      const [ofA, ofC] = [
        { sessionId: 'a', inbox: 3 },
        { sessionId: 'c', inbox: 1 },
      ]
      t.same('the list of leased and unleased sessions with messages', unheard, [ofA, ofC])
      await store.release(lease)
      await inbox.remove('a', [1, 2, 3])
      t.same('the sessions with messages after one inbox is emptied', await inbox.listUnread?.(), [ofC])
    },
}

const createTimer = (id: string, at: number, data = '{}'): StoredTimer => ({ id, at, data })

export const timerChecks: t.StoreChecks = {
  'timers are read back unchanged and replaced by id': async ({ timers, time }) => {
    t.same('a missing timer', await timers.get('a'), null)
    const strange = '{"text":"Grüße \u{1F600} \' \\" \\\\"}'
    await timers.set([createTimer('a', time.now(), strange), createTimer('b', time.now() + 60_000)])
    t.same('a timer', (await timers.get('a'))?.data, strange)
    await timers.set([createTimer('a', 1_700_000_000_123, '{"v":2}')])
    t.same('a replaced timer', await timers.get('a'), createTimer('a', 1_700_000_000_123, '{"v":2}'))
    await timers.set([])
  },
  "due timers follow the store's clock and are listed in order, page by page": async ({ timers, time }) => {
    const start = time.now()
    const far = start + 10_000_000
    await timers.set([
      createTimer('later', far),
      createTimer('c', start - 1000),
      createTimer('b', start - 1000),
      createTimer('a', start - 500),
    ])
    const due = await timers.listDue({ limit: 10 })
    time.same("the store's time", due.now, time.now())
    t.same('the due timers', t.ids(due.timers), ['b', 'c', 'a'])
    const first = await timers.listDue({ limit: 2 })
    t.same('a page of two', t.ids(first.timers), ['b', 'c'])
    const rest = await timers.listDue({ limit: 2, after: first.timers.at(-1) })
    t.same('the next page', t.ids(rest.timers), ['a'])
    await timers.set([createTimer('soon', (await timers.listDue({ limit: 1 })).now + time.ms(100))])
    const listDue = async () => t.ids((await timers.listDue({ limit: 10 })).timers)
    t.same('the due timers before their time', await listDue(), ['b', 'c', 'a'])
    await time.pass(100)
    t.same('the due timers at their time', await listDue(), ['b', 'c', 'a', 'soon'])
  },
  'timers are listed by id prefix, page by page': async ({ timers }) => {
    await timers.set(['x:b', 'x:a', 'x%c', 'y:a', 'x:_'].map((id) => createTimer(id, 1)))
    t.same('the list', t.ids(await timers.list({ prefix: 'x:', limit: 10 })), ['x:_', 'x:a', 'x:b'])
    t.same('a page', t.ids(await timers.list({ prefix: 'x:', limit: 2 })), ['x:_', 'x:a'])
    t.same('the next page', t.ids(await timers.list({ prefix: 'x:', limit: 2, after: 'x:a' })), ['x:b'])
  },
  'a timer moves only from its current time': async ({ timers }) => {
    await timers.set([createTimer('a', 1000)])
    t.same('a move from another time', await timers.move({ id: 'a', from: 999, to: 2000 }), false)
    const isMoved = await timers.move({ id: 'none', from: 1000, to: 2000 })
    t.same('moving a timer that does not exist', isMoved, false)
    t.same('a move', await timers.move({ id: 'a', from: 1000, to: 2000 }), true)
    t.same("the timer's time after the move", (await timers.get('a'))?.at, 2000)
    t.same('a removal from another time', await timers.move({ id: 'a', from: 1000, to: null }), false)
    t.same('a removal', await timers.move({ id: 'a', from: 2000, to: null }), true)
    t.same('a removed timer', await timers.get('a'), null)
  },
  'one of twenty concurrent moves of a timer succeeds': async ({ timers, open }) => {
    await timers.set([createTimer('a', 1000)])
    // If stores do not share sessions, the other store has no such timer.
    const others = [timers, (await open()).timers as SessionTimers]
    const moved = await Promise.all(
      Array.from({ length: 20 }, async (_, i) =>
        (others[i % 2] as SessionTimers).move({ id: 'a', from: 1000, to: 2000 + i }),
      ),
    )
    t.same('the number of successful moves', moved.filter(Boolean).length, 1)
    const timer = await timers.get('a')
    t.same("the timer's time after the move", timer?.at, 2000 + moved.indexOf(true))
  },
}
