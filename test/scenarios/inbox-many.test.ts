import type { SessionMessage } from '../../src/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { sendToStoredSession } from '../../src/core/run/send-to-stored-session.js'
import { systemClock } from '../../src/core/base/clock.js'
import { again, stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

const pay = (done: unknown[] = []) =>
  tool('pay', ({ amount }) => `paid ${String(done.push(amount) && amount)}`, { needsApproval: true })

/** A store that counts the messages read from its inboxes. */
function counting() {
  const store = memoryStore()
  const count = { read: 0 }
  const read: typeof store.inbox.read = (...args) => {
    const messages = store.inbox.read(...args)
    count.read += messages.length
    return messages
  }
  return { store: { ...store, inbox: { ...store.inbox, read } }, count }
}

async function restingIn(store: SessionStore) {
  const play = await stage([call('pay', { amount: 1 }), text('Done.'), text('Done.')], {
    store,
    tools: [pay()],
  })
  const { pending = [] } = await play.agent.run('Go.', { session: 's' }).result
  return Object.assign(play, { question: pending[0] })
}

describe('many messages', () => {
  it('are each read once, in sequence and in parallel', async () => {
    const reads = async (n: number, atOnce: boolean) => {
      const { store, count } = counting()
      const { agent } = await restingIn(store)
      count.read = 0
      const say = (i: number) => agent.send('s', { type: 'steer', text: `${i}` })
      const all = Array.from({ length: n }, (_, i) => i)
      if (atOnce) await Promise.all(all.map(say))
      else for (const i of all) await say(i)
      expect(store.inbox.read('s')).toHaveLength(n)
      return count.read - n
    }
    for (const n of [20, 40, 80]) {
      expect(await reads(n, false)).toBeLessThanOrEqual(2 * n)
    }
    for (const n of [20, 40]) expect(await reads(n, true)).toBeLessThanOrEqual(2 * n)
  })
})

describe('a message with an idempotency key', () => {
  const send = (store: SessionStore, message: SessionMessage, key: string) =>
    sendToStoredSession({ store, clock: systemClock }, 's', message, { key })

  it('counts once, before and after delivery, and after a snapshot', async () => {
    const store = memoryStore()
    const { agent, question } = await restingIn(store)
    const steer: SessionMessage = { type: 'steer', text: 'Hurry.' }
    const waiting = { message: 1, status: 'waiting' }
    expect(await send(store, steer, 'k')).toEqual(waiting)
    expect(await send(store, steer, 'k')).toEqual(waiting)
    // Two senders that did not know of each other.
    store.inbox.put('s', JSON.stringify({ type: 'STEER', text: 'Hurry.', key: 'k' }))
    if (!question) throw new Error('A call waits.')
    await agent.send('s', { type: 'approve', ...question })
    expect(await (await agent.resume('s')).result).toMatchObject({ state: 'COMPLETED' })
    const received = async () =>
      (await agent.replay('s')).messages.filter(({ content }) => content === 'Hurry.').length
    expect(await received()).toBe(1)
    expect(store.inbox.read('s')).toEqual([])
    expect(await send(store, steer, 'k')).toMatchObject({ status: 'applied' })
    expect(await received()).toBe(1)
  })

  it('is remembered by the snapshot of a grown log', async () => {
    const store = memoryStore()
    const play = await stage(
      [
        call('pay', { amount: 1 }),
        call('look', { n: 1 }),
        call('look', { n: 2 }),
        call('pay', { amount: 2 }),
      ],
      {
        store,
        tools: [pay(), tool('look', ({ n }) => `${String(n)}${'x'.repeat(40_000)}`)],
      },
    )
    const { pending = [] } = await play.agent.run('Go.', { session: 's' }).result
    await send(store, { type: 'approve', ...(pending[0] ?? { callId: '' }) }, 'k')
    await (await play.agent.resume('s')).result
    const last = store.read('s', { from: 'snapshot' })
    expect(last[0]).toMatchObject({ type: 'snapshot', data: expect.stringContaining('"keys":["k"]') })
    expect(await send(store, { type: 'steer', text: 'Hurry.' }, 'k')).toMatchObject({ status: 'applied' })
  })

  it('is removed by the next process if a killed process had applied it', async () => {
    const store = memoryStore()
    const play = await restingIn(store)
    await send(store, { type: 'steer', text: 'Hurry.' }, 'k')
    const inner: SessionStore = { ...store, inbox: { ...store.inbox, remove: () => undefined } }
    await (await again(play, { store: inner, tools: [pay()] }).resume('s')).result
    expect(store.inbox.read('s')).toHaveLength(1)
    await (await play.agent.resume('s')).result
    expect(store.inbox.read('s')).toEqual([])
  })
})
