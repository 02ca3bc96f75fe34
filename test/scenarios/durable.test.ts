import { z } from 'zod'
import { type AgentOptions, createAgent, createSession, defineTool, openaiChat } from '../../src/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { distant } from '../support/distant.js'
import { stage, type Stage } from '../support/play.js'
import { tool } from '../support/tools.js'

const echo = tool('echo', ({ text }) => text, { readOnly: true })

/** Another process with the same program and the same store. */
function again(from: Stage, store: SessionStore, options: Partial<AgentOptions> = {}) {
  const model = openaiChat({ model: 'gpt-test', baseURL: from.rehearsal.url, apiKey: 'none' })
  return createAgent({ model, store, clock: from.clock, ...options })
}

const transfer = (done: string[] = []) =>
  defineTool({
    name: 'transfer',
    description: 'Moves money.',
    input: z.object({ amount: z.number() }),
    needsApproval: ({ amount }) => amount > 10,
    execute: ({ amount }) => {
      done.push(`${amount}`)
      return `moved ${amount}`
    },
  })

const ask = (id: string, amount: number) => ({
  id,
  name: 'transfer',
  arguments: { amount },
})

test('a session continues in another process from the end of the last run', async () => {
  const store = memoryStore()
  const play = await stage([{ text: 'One.' }, { text: 'Two.' }], { store })
  const first = await play.agent.run('Count.', { session: 's' }).result
  expect(first).toMatchObject({ state: 'COMPLETED', output: 'One.', sessionId: 's' })

  const second = await again(play, store).run('Go on.', { session: 's' }).result
  expect(second.messages.map(({ content }) => content)).toEqual(['Count.', 'One.', 'Go on.', 'Two.'])
  expect(play.wire(-1).map(({ content }) => content)).toEqual(['Count.', 'One.', 'Go on.'])
  expect(store.list()).toMatchObject([
    { id: 's', holder: null, summary: { title: 'Count.', state: 'COMPLETED', runs: 2, messages: 4 } },
  ])
})

test('a named session that was stored elsewhere brings its history into the store', async () => {
  const store = memoryStore()
  const play = await stage([{ text: 'One.' }, { text: 'Two.' }])
  const session = createSession('Counting')
  await play.agent.run('Count.', { session }).result
  const agent = again(play, store)
  await agent.run('Go on.', { session }).result
  expect(session.messages).toHaveLength(4)
  const { name, messages } = await agent.replay(session.id)
  expect(name).toBe('Counting')
  expect(messages).toEqual(session.messages)
})

test('approvals can be answered in another process, in any order, by another handle', async () => {
  const store = memoryStore()
  const done: string[] = []
  const tools = [transfer(done), echo]
  const play = await stage([{ toolCalls: [ask('a', 20), ask('b', 30), ask('c', 5)] }, { text: 'Done.' }], {
    store,
    tools,
  })
  const waiting = await play.agent.run('Pay.', { session: 's' }).result
  expect(waiting).toMatchObject({ state: 'WAITING_FOR_INPUT', reason: 'approval' })
  expect(done).toEqual(['5'])

  const days = await again(play, store, { tools }).resume('s')
  const shown = await days.result
  expect(shown.pending?.map(({ callId }) => callId)).toEqual(['a', 'b'])
  days.approve('b', { amount: 31 })
  expect((await days.result).pending?.map(({ callId }) => callId)).toEqual(['a'])
  const later = await again(play, store, { tools }).resume('s')
  later.reject('a', 'Too much.')
  const result = await later.result
  expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(done).toEqual(['5', '31'])
  expect(result.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)).toEqual([
    'Rejected by the user: Too much.',
    'The user changed the arguments to {"amount":31} before approving.\n\nmoved 31',
    'moved 5',
  ])
})

test.each([
  ['synchronously', memoryStore],
  ['asynchronously', () => distant(memoryStore())],
])('an answer counts at any time, with a store that answers %s', async (_, open) => {
  const store = open()
  const done: string[] = []
  const tools = [transfer(done)]
  const play = await stage(
    [
      { toolCalls: [ask('a', 20)] },
      { toolCalls: [ask('b', 30)] },
      { toolCalls: [ask('c', 40)] },
      { text: 'Done.' },
    ],
    { store, tools },
  )
  const run = play.agent.run('Pay.', { session: 's' })
  // While the question event is being emitted.
  run.events$.subscribe((event) => {
    if (event.type === 'approval_requested' && event.callId === 'a') run.approve('a')
  })
  let result = await run.result
  while (result.pending?.[0]?.callId !== 'b') result = await run.result
  // Right after the settled event.
  run.approve('b')
  expect((await run.result).pending?.[0]?.callId).toBe('c')
  // Through another handle, right after it has read the session.
  const other = await again(play, store, { tools }).resume('s')
  other.approve('c')
  result = await other.result
  expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(done).toEqual(['20', '30', '40'])
  expect((await play.agent.replay('s')).run).toEqual(result)
})

test('of two concurrent approvals, one is refused and does nothing', async () => {
  const store = memoryStore()
  const done: string[] = []
  const tools = [transfer(done)]
  const play = await stage([{ toolCalls: [ask('a', 20)] }, { text: 'Done.' }], { store, tools })
  await play.agent.run('Pay.', { session: 's' }).result
  const runs = [await again(play, store, { tools }).resume('s')]
  await runs[0]?.result
  runs.push(await again(play, store, { tools }).resume('s'))
  await runs[1]?.result
  for (const run of runs) run.approve('a')
  const results = await Promise.all(runs.map((run) => run.result))
  expect(results.filter(({ state }) => state === 'COMPLETED')).toHaveLength(1)
  for (const { state, reason } of results) {
    if (state !== 'COMPLETED') expect([state, reason]).toEqual(['ERROR', 'store_error'])
  }
  expect(done).toEqual(['20'])
})

test('an approval is bound to its question: a call with a repeated id gets a new id and needs its own answer', async () => {
  const store = memoryStore()
  const tools = [transfer()]
  const play = await stage([{ toolCalls: [ask('call_0', 20)] }, { toolCalls: [ask('call_0', 999)] }], {
    store,
    tools,
  })
  const run = play.agent.run('Pay.', { session: 's' })
  const first = (await run.result).pending?.[0]
  run.approve('call_0')
  const second = (await run.result).pending?.[0]
  expect(second).toMatchObject({ callId: 'call_0_4', arguments: '{"amount":999}' })
  expect(() => {
    run.approve('call_0')
  }).toThrow(expect.objectContaining({ code: 'unknown_call' }))
  expect(() => {
    run.approve('call_0_4', undefined, { fingerprint: first?.fingerprint })
  }).toThrow(/is for outdated arguments/)
  run.cancel()
  expect((await run.result).state).toBe('CANCELLED')
  expect(() => {
    run.approve('call_0')
  }).toThrow(/no call is waiting/)
})

test('a waiting run releases its session, and an ended run is returned unchanged', async () => {
  const store = memoryStore()
  const play = await stage([{ text: 'Done.' }], { store })
  const done = await play.agent.run('Go.', { session: 's' }).result
  const stored = await (await again(play, store).resume('s')).result
  expect(stored).toEqual(done)
  expect(play.requests).toHaveLength(1)
})

test('a session with an unfinished run accepts no other', async () => {
  const store = memoryStore()
  const tools = [transfer()]
  const play = await stage([{ toolCalls: [ask('a', 20)] }], { store, tools })
  await play.agent.run('Pay.', { session: 's' }).result
  await expect(play.agent.run('And?', { session: 's' }).result).rejects.toMatchObject({
    code: 'unfinished_run',
    message: expect.stringContaining("agent.resume('s')") as string,
  })
})

test('of two concurrent runs of one session, the second is refused with the lease owner', async () => {
  const store = memoryStore()
  const play = await stage([{ text: 'One.' }], { store })
  const first = play.agent.run('Go.', { session: 's' })
  await expect(play.agent.run('Go.', { session: 's' }).result).rejects.toMatchObject({
    name: 'StoreError',
    code: 'session_busy',
    message: expect.stringContaining(`run ${first.id}`) as string,
  })
  expect((await first.result).state).toBe('COMPLETED')
})

/** Three seconds in small steps, longer than a run waits for its session. */
async function passSeconds({ clock }: Stage): Promise<void> {
  for (let i = 0; i < 150; i += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    clock.increment(20)
  }
}

test.each([
  ['synchronously', (near: SessionStore) => near],
  ['asynchronously', (near: SessionStore) => distant(near)],
])(
  'an answer waits for the session while another run that is refused has it: a store that answers %s',
  async (_, toStore) => {
    const near = memoryStore()
    let onTaken = (): void => undefined
    const acquire: typeof near.acquire = (...args) => {
      const lease = near.acquire(...args)
      onTaken()
      return lease
    }
    const store = toStore({ ...near, acquire })
    const done: string[] = []
    const tools = [transfer(done)]
    const play = await stage([{ toolCalls: [ask('a', 20)] }, { text: 'Paid.' }], { store, tools })
    const first = play.agent.run('Pay.', { session: 's' })
    await first.result
    onTaken = () => {
      onTaken = () => undefined
      first.approve('a')
    }
    const second = again(play, store, { tools }).run('And?', { session: 's' })
    await expect(second.result).rejects.toMatchObject({ code: 'unfinished_run' })
    await passSeconds(play)
    expect(await first.result).toMatchObject({ state: 'COMPLETED', output: 'Paid.' })
    expect(done).toEqual(['20'])
  },
)

test('an answer at a rest ends the run if another run keeps the session, and the log continues it', async () => {
  const store = memoryStore()
  const done: string[] = []
  const tools = [transfer(done)]
  const play = await stage([{ toolCalls: [ask('a', 20)] }, { text: 'Paid.' }], { store, tools })
  const first = play.agent.run('Pay.', { session: 's' })
  await first.result
  const other = store.acquire('s', { holder: 'run other', ttlMs: 60_000 })
  first.approve('a')
  await passSeconds(play)
  expect(await first.result).toMatchObject({
    state: 'ERROR',
    reason: 'store_error',
    error: { code: 'session_busy' },
    resumable: true,
  })
  expect(done).toEqual([])

  store.release(other)
  const resumed = await play.agent.resume('s')
  resumed.approve('a')
  expect(await resumed.result).toMatchObject({ state: 'COMPLETED', output: 'Paid.' })
  expect(done).toEqual(['20'])
})

test('unknown, empty and impossible input is a typed error', async () => {
  const store = memoryStore()
  const play = await stage([{ text: 'Hi.' }], { store })
  const bare = await stage([{ text: 'Hi.' }])
  await expect(play.agent.resume('nobody')).rejects.toMatchObject({ code: 'unknown_session' })
  await expect(play.agent.replay('nobody')).rejects.toMatchObject({ code: 'unknown_session' })
  await expect(play.agent.resume('../etc')).rejects.toMatchObject({ code: 'invalid_session' })
  await expect(bare.agent.resume('s')).rejects.toMatchObject({ code: 'no_store' })
  expect(() => bare.agent.run('Go.', { session: 'a/b' })).toThrow(/not a valid session id/)
  expect(() => createAgent({ model: openaiChat({ model: 'm', apiKey: 'k' }), store: {} as never })).toThrow(
    /store must be a SessionStore/,
  )
})

test('a log can be replayed to any of its events, and forked there', async () => {
  const store = memoryStore()
  const tools = [echo]
  const play = await stage(
    [
      { toolCalls: [{ id: 'a', name: 'echo', arguments: { text: 'x' } }] },
      { text: 'One.' },
      { text: 'Another.' },
    ],
    { store, tools },
  )
  const done = await play.agent.run('Go.', { session: 's' }).result
  const records = store.read('s')
  const states = await Promise.all(
    records.slice(1).map(async ({ seq }) => (await play.agent.replay('s', { to: seq })).run?.state),
  )
  expect(states[0]).toBe('RUNNING')
  expect(states).toContain('WAITING_FOR_TOOL')
  expect(states.at(-1)).toBe('COMPLETED')
  expect((await play.agent.replay('s')).run).toEqual(done)

  const beforeAnswer = states.lastIndexOf('RUNNING') + 2
  const forked = await play.agent.fork('s', beforeAnswer)
  const other = await (await play.agent.resume(forked)).result
  expect(other).toMatchObject({ state: 'COMPLETED', output: 'Another.', sessionId: forked })
  expect(other.runId).not.toBe(done.runId)
  expect((await play.agent.replay('s')).run).toEqual(done)
  await expect(play.agent.replay('s', { to: 999 })).rejects.toMatchObject({ code: 'invalid_option' })
})

test('a log that is damaged in the middle is refused with the last intact record', async () => {
  const store = memoryStore()
  const play = await stage([{ text: 'One.' }], { store })
  await play.agent.run('Go.', { session: 's' }).result
  const [, , third] = store.read('s')
  if (third) third.data = third.data.replace('One', 'Two')
  await expect(play.agent.resume('s')).rejects.toMatchObject({
    code: 'corrupt_log',
    message: expect.stringMatching(/record 3 is damaged.*fork\('s', 2\)/) as string,
  })
})

test('a failing store ends the run with the reason, and stored records stay', async () => {
  const inner = memoryStore()
  let writes = 0
  const store: SessionStore = {
    ...inner,
    append: (lease, records, summary) => {
      writes += 1
      if (writes > 1) throw new Error('no space left on device')
      return inner.append(lease, records, summary)
    },
  }
  const play = await stage([{ toolCalls: [{ id: 'a', name: 'echo', arguments: { text: 'x' } }] }], {
    store,
    tools: [echo],
  })
  const result = await play.agent.run('Go.', { session: 's' }).result
  expect(result).toMatchObject({
    state: 'ERROR',
    reason: 'store_error',
    error: { code: 'store_unavailable', message: expect.stringContaining('no space left') as string },
  })
  expect(inner.read('s').map(({ type }) => type)).toEqual(['opened', 'start'])
})
