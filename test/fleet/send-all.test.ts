import { createAgent, memoryStore, type Run, runSession, type SessionStore } from '../../src/index.js'
import { sendAll } from '../../src/fleet/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'
import { longTest } from '../support/extent.js'

const acme = { tags: { tenant: 'acme' } }

const begun: Run[] = []

afterEach(() => {
  for (const run of begun.splice(0)) run.cancel()
})

/** Sessions of two tenants in every state, in one store. */
async function setUp(base: SessionStore = memoryStore()) {
  const store = base
  const begin = async (session: string, tenant: string, asks: 'work' | 'approval' | 'end') => {
    const model = new ManualModel()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const agent = createAgent({ model, store, tools: [pay] })
    const run = agent.run('Go.', { session, tags: { tenant } })
    begun.push(run as Run)
    for (let i = 0; i < 1000 && model.attempts.length === 0; i += 1) await settled()
    if (asks === 'approval')
      model.pending?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
    if (asks === 'end') model.pending?.answer({ text: 'Done.' })
    if (asks !== 'work') await run.result
    return { run, agent, model }
  }
  const working = await begin('working', 'acme', 'work')
  const waiting = await begin('waiting', 'acme', 'approval')
  await begin('ended', 'acme', 'end')
  const other = await begin('other', 'globex', 'approval')
  return { store, working, waiting, other }
}

test('a cancel ends every session of a tenant, and no others', async () => {
  const { store, working, other } = await setUp()
  const received: number[] = []
  const receipt = await sendAll(
    store,
    acme,
    { type: 'cancel', why: 'The contract has ended.' },
    {
      onProgress: ({ sessions }) => received.push(sessions),
    },
  )
  expect(receipt).toEqual({
    sessions: 2,
    sent: 1,
    waiting: 0,
    applied: 1,
    ended: 0,
    refused: 0,
    refusals: [],
  })
  expect(received).toEqual([1, 2])
  expect(await working.run.result).toMatchObject({ state: 'CANCELLED' })
  const states = async (id: string) => (await store.get(id))?.summary?.state
  expect(await states('waiting')).toBe('CANCELLED')
  expect(await states('ended')).toBe('COMPLETED')
  expect(other.run.state).toBe('WAITING_FOR_INPUT')
  const again = await sendAll(store, acme, { type: 'cancel' })
  expect(again.sessions).toBe(0)
})

test('ended and mismatched sessions are counted, and refusals have a reason', async () => {
  const { store } = await setUp()
  const all = { ...acme, state: ['RUNNING', 'WAITING_FOR_INPUT', 'COMPLETED'] } as const
  const receipt = await sendAll(store, all, { type: 'resume' })
  expect(receipt).toMatchObject({ sessions: 3, sent: 0, waiting: 0, ended: 1, refused: 2 })
  expect(receipt.refusals.map(({ code }) => code)).toEqual(['not_waiting', 'not_waiting'])
  expect(receipt.refusals.map(({ session }) => session).sort()).toEqual(['waiting', 'working'])
})

test('a session with a damaged log is refused, and the others receive the message', async () => {
  const { store, working } = await setUp()
  const read = store.read.bind(store)
  store.read = async (id, range) =>
    (await read(id, range)).map((record) => (id === 'waiting' ? { ...record, data: '{' } : record))
  const receipt = await sendAll(store, acme, { type: 'cancel' }, { concurrency: 1 })
  expect(receipt).toMatchObject({ sessions: 2, sent: 1, refused: 1 })
  expect(receipt.refusals).toMatchObject([{ session: 'waiting', code: 'corrupt_log' }])
  expect(await working.run.result).toMatchObject({ state: 'CANCELLED' })
})

test('a resume with a date puts paused runs to sleep until then', async () => {
  const { store, working } = await setUp()
  working.run.pause()
  working.model.pending?.answer({ toolCalls: [call('b', 'nothing')], finishReason: 'tool_calls' })
  await working.run.result
  const at = Date.now() + 3_600_000
  const receipt = await sendAll(store, { ...acme, state: 'PAUSED' }, { type: 'resume', at: new Date(at) })
  expect(receipt).toMatchObject({ sessions: 1, refused: 0 })
  const summaryOf = async () => (await store.get('working'))?.summary
  for (let n = 0; n < 1000 && (await summaryOf())?.wakeAt === undefined; n += 1) await settled()
  expect(await summaryOf()).toMatchObject({ state: 'PAUSED', reason: 'sleeping', wakeAt: at })
})

test('a message is sent once, however often the same call is made', async () => {
  const { store, waiting } = await setUp()
  const steer = { type: 'steer', text: 'Use euros.' } as const
  const which = { ...acme, state: 'WAITING_FOR_INPUT' } as const
  const received: string[] = []
  waiting.run.events$.subscribe(({ type }) => received.push(type))
  for (let i = 0; i < 3; i += 1) {
    const { sessions, refused } = await sendAll(store, which, steer, { key: 'notice-7' })
    expect([sessions, refused]).toEqual([1, 0])
    for (let n = 0; n < 50; n += 1) await settled()
  }
  const steered = (await store.read('waiting')).filter(({ data }) => data.includes('"STEER"'))
  expect(steered.length + ((await store.inbox?.read('waiting'))?.length ?? 0)).toBe(1)
  expect(received).not.toContain('warning')
})

test('a queued message reaches ended sessions, too, once', async () => {
  const { store } = await setUp()
  const message = { type: 'message', when: 'next', input: 'We have moved.' } as const
  const first = await sendAll(store, { ...acme, state: 'COMPLETED' }, message, { key: 'move' })
  const second = await sendAll(store, { ...acme, state: 'COMPLETED' }, message, { key: 'move' })
  expect([first.waiting, second.waiting]).toEqual([1, 1])
  expect(await store.inbox?.read('ended')).toHaveLength(1)
  const agent = createAgent({ model: answering(), store })
  expect(await runSession(agent, { session: 'ended' })).toMatchObject({ turn: 2, state: 'COMPLETED' })
})

const answering = () => {
  const model = new ManualModel()
  const { request } = model
  model.request = (...args) => {
    const answer = request(...args)
    model.pending?.answer({ text: 'Fine.' })
    return answer
  }
  return model
}

longTest(
  'more sessions than a page all receive the message, while they move in the list',
  async () => {
    const store = memoryStore()
    const agent = createAgent({ model: answering(), store, tools: [], interactive: true })
    const ids = Array.from({ length: 603 }, (_, i) => `tenant:${i}`)
    for (const session of ids) await agent.run('Go.', { session }).result
    const receipt = await sendAll(store, { prefix: 'tenant' }, { type: 'cancel' })
    expect(receipt.sessions).toBe(603)
    expect(receipt.sent + receipt.applied).toBe(603)
    await settled()
    expect(store.list({ state: 'CANCELLED' })).toHaveLength(603)
  },
  60_000,
)

test('an outage stops it with the store’s error, and the same call continues', async () => {
  const memory = memoryStore()
  const agent = createAgent({ model: answering(), store: memory, interactive: true })
  for (let i = 0; i < 40; i += 1) await agent.run('Go.', { session: `t:${i}` }).result
  let left = 17
  const put: typeof memory.inbox.put = (...args) => {
    left -= 1
    if (left < 0) throw Object.assign(new Error('away'), { code: 'store_unavailable' })
    return memory.inbox.put(...args)
  }
  const store = { ...memory, inbox: { ...memory.inbox, put } }
  const steer = { type: 'steer', text: 'Stop.' } as const
  await expect(sendAll(store, { prefix: 't' }, steer, { concurrency: 4, key: 'k' })).rejects.toThrow('away')
  const { sessions, refused } = await sendAll(memory, { prefix: 't' }, { type: 'cancel' })
  expect([sessions, refused]).toEqual([40, 0])
})

test('its signal stops it', async () => {
  const { store } = await setUp()
  const stop = new AbortController()
  stop.abort(new Error('Enough.'))
  await expect(sendAll(store, acme, { type: 'cancel' }, { signal: stop.signal })).rejects.toThrow('Enough.')
  expect((await store.get('waiting'))?.summary?.state).toBe('WAITING_FOR_INPUT')
})

test.each<[string, unknown, unknown, unknown, string]>([
  ['no selection', undefined, { type: 'cancel' }, {}, 'which'],
  ['an empty selection', {}, { type: 'cancel' }, {}, 'which'],
  ['a selection without known keys', { tenant: 'acme' }, { type: 'cancel' }, {}, 'which'],
  ['an unknown key next to others', { prefix: 'a', tenant: 'acme' }, { type: 'cancel' }, {}, 'tenant'],
  ['undefined tags', { prefix: 'a', tags: undefined }, { type: 'cancel' }, {}, 'tags'],
  ['an answer', acme, { type: 'approve', callId: 'a' }, {}, 'type'],
  ['an empty key', acme, { type: 'cancel' }, { key: '' }, 'key'],
  ['a concurrency of zero', acme, { type: 'cancel' }, { concurrency: 0 }, 'concurrency'],
  ['an unknown option', acme, { type: 'cancel' }, { all: true }, 'all'],
  ['an invalid onProgress', acme, { type: 'cancel' }, { onProgress: 1 }, 'onProgress'],
  ['an invalid signal', acme, { type: 'cancel' }, { signal: 1 }, 'signal'],
])('%s is refused, naming the key', async (_name, which, message, options, subject) => {
  const telling = sendAll(memoryStore(), which as never, message as never, options as never)
  await expect(telling).rejects.toMatchObject({ subject })
})

test('a store without an inbox is refused', async () => {
  const { store } = await setUp()
  await expect(sendAll({ ...store, inbox: undefined }, acme, { type: 'cancel' })).rejects.toMatchObject({
    code: 'no_inbox',
  })
})
