import { SimulatedClock } from 'xstate'
import { z } from 'zod'
import { createAgent, defineShield, defineTool, type SessionMessage, UsageError } from '../../src/index.js'
import { systemClock } from '../../src/core/base/clock.js'
import { openSession } from '../../src/core/sessions/open-session.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import type { Lease, SessionStore } from '../../src/core/sessions/store/store.js'
import { StoreError } from '../../src/core/sessions/store/store-error.js'
import { distant } from '../support/distant.js'
import { ManualModel, call as callOf, settled } from '../support/manual-model.js'
import { again, stage, tick, until } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'
import { filePlace } from '../stores/folder.js'
import { sampledKinds } from '../support/extent.js'

const kinds: [string, () => SessionStore][] = [
  ['synchronously', memoryStore],
  ['asynchronously', () => distant(memoryStore())],
]

async function refused(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof UsageError || error instanceof StoreError) return error
  throw new Error(`It was not refused: ${String(error)}`)
}

/** The log events that came from the inbox. */
async function toldIn(store: SessionStore, id: string) {
  const records = await store.read(id)
  return records
    .map(({ data }) => (JSON.parse(data) as { event?: { type: string; inbox?: number } }).event)
    .filter((event) => event?.inbox !== undefined)
    .map((event) => [event?.type, event?.inbox])
}

const inboxOf = async (store: SessionStore, id: string) => (await store.inbox?.read(id)) ?? []
const pay = (done: unknown[] = []) =>
  tool('pay', ({ amount }) => `paid ${String(done.push(amount) && amount)}`, { needsApproval: true })

describe.each(sampledKinds(kinds))('a session of a store that answers %s', (_, open) => {
  it('is cancelled from another process during a silent model call', async () => {
    const store = open()
    const model = new ManualModel()
    const agent = createAgent({ model, store, clock: new SimulatedClock() })
    const run = agent.run('Go.', { session: 's' })
    await until(() => model.pending !== null)
    const other = createAgent({ model: new ManualModel(), store, clock: new SimulatedClock() })
    expect(await other.send('s', { type: 'cancel', why: 'Enough.' })).toEqual({ message: 1, status: 'sent' })
    expect(await run.result).toMatchObject({ state: 'CANCELLED' })
    expect(model.attempts[0]?.signal.aborted).toBe(true)
    expect(await toldIn(store, 's')).toEqual([['CANCEL', 1]])
    await settled()
    expect(await inboxOf(store, 's')).toEqual([])
    expect((await agent.replay('s')).run).toMatchObject({ state: 'CANCELLED' })
  })

  it('withdraws a requested pause while a person is asked', async () => {
    const store = open()
    const done: unknown[] = []
    const [first, second] = [new ManualModel(), new ManualModel()]
    const agent = createAgent({ model: first, store, tools: [pay(done)], clock: new SimulatedClock() })
    const run = agent.run('Pay.', { session: 's' })
    await until(() => first.pending !== null)
    first.pending?.answer({ toolCalls: [callOf('a', 'pay', { amount: 1 })] })
    expect(await run.result).toMatchObject({ reason: 'approval' })
    const other = createAgent({ model: second, store, tools: [pay(done)], clock: new SimulatedClock() })
    expect(await refused(other.send('s', { type: 'resume' }))).toMatchObject({ code: 'not_waiting' })
    run.pause()
    await run.result
    expect(await other.send('s', { type: 'resume' })).toMatchObject({ status: 'waiting' })
    const resumed = await other.resume('s')
    resumed.approve('a')
    await until(() => second.pending !== null)
    second.pending?.answer({ text: 'Done.' })
    expect(await resumed.result).toMatchObject({ state: 'COMPLETED' })
    expect(done).toEqual([1])
  })

  it('receives messages in order: steering, pause, resume, steering', async () => {
    const store = open()
    const model = new ManualModel()
    const agent = createAgent({ model, store, tools: [tool('look')], clock: new SimulatedClock() })
    const run = agent.run('Go.', { session: 's' })
    await until(() => model.pending !== null)
    await agent.send('s', { type: 'steer', text: 'Mind the gap.' })
    await agent.send('s', { type: 'pause' })
    model.pending?.answer({ toolCalls: [callOf('a', 'look')] })
    expect(await run.result).toMatchObject({ state: 'PAUSED' })
    expect(await toldIn(store, 's')).toEqual([
      ['STEER', 1],
      ['PAUSE', 2],
    ])
    expect(await agent.send('s', { type: 'resume' })).toEqual({ message: 3, status: 'waiting' })
    expect(await agent.send('s', { type: 'steer', text: 'And the door.' })).toMatchObject({
      status: 'waiting',
    })
    const resumed = await agent.resume('s')
    await until(() => model.attempts.length === 2)
    model.pending?.answer({ text: 'Not yet.' })
    await until(() => model.attempts.length === 3)
    model.pending?.answer({ text: 'Done.' })
    const result = await resumed.result
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    const texts = result.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []))
    expect(texts.map(String).join('\n')).toContain('Mind the gap.')
    expect(texts.map(String).join('\n')).toContain('And the door.')
    expect(await inboxOf(store, 's')).toEqual([])
  })

  it('continues with answers that came while no process held it, and the next rest is the result', async () => {
    const store = open()
    const done: unknown[] = []
    const tools = [pay(done), clientTool('sign')]
    const play = await stage(
      [
        calls([
          ['pay', { amount: 1 }],
          ['pay', { amount: 2 }],
          ['sign', {}],
        ]),
        text('Done.'),
      ],
      { store, tools },
    )
    const { pending = [] } = await play.agent.run('Go.', { session: 's' }).result
    const [first, second, sign] = pending
    if (!first || !second || !sign) throw new Error('Three calls wait.')
    expect(await play.agent.send('s', { type: 'approve', ...first })).toEqual({
      message: 1,
      status: 'waiting',
    })
    const { callId } = second
    await play.agent.send('s', { type: 'reject', callId, why: 'Not today.' })
    await play.agent.send('s', { type: 'toolOutput', ...sign, value: { signed: true } })
    expect(done).toEqual([])
    const resumed = await again(play, { store, tools }).resume('s')
    const result = await resumed.result
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(done).toEqual([1])
    expect(await toldIn(store, 's')).toEqual([
      ['APPROVE', 1],
      ['REJECT', 2],
      ['TOOL_OUTPUT', 3],
    ])
    expect(play.wire(-1).flatMap(({ role, content }) => (role === 'tool' ? [content] : []))).toEqual([
      'paid 1',
      'Rejected by the user: Not today.',
      '{"signed":true}',
    ])
  })

  it('refuses a second, outdated or misdirected answer, wherever the first one is', async () => {
    const store = open()
    const tools = [pay()]
    const play = await stage([call('pay', { amount: 1 }), text('Done.')], { store, tools })
    const { pending = [] } = await play.agent.run('Go.', { session: 's' }).result
    const [question] = pending
    if (!question) throw new Error('A call waits.')
    const tell = (message: SessionMessage) => play.agent.send('s', message)
    expect(
      await refused(tell({ type: 'approve', callId: question.callId, fingerprint: 'ffff' })),
    ).toMatchObject({
      code: 'stale_answer',
    })
    expect(await refused(tell({ type: 'approve', callId: 'nobody' }))).toMatchObject({ code: 'unknown_call' })
    expect(await refused(tell({ type: 'toolOutput', ...question, value: 1 }))).toMatchObject({
      code: 'unknown_call',
    })
    await tell({ type: 'approve', ...question })
    expect(await refused(tell({ type: 'reject', ...question }))).toMatchObject({ code: 'already_answered' })
    // Two pages with no knowledge of each other.
    await store.inbox?.put('s', JSON.stringify({ type: 'REJECT', callId: question.callId, why: 'No.' }))
    const resumed = await play.agent.resume('s')
    expect(await resumed.result).toMatchObject({ state: 'COMPLETED' })
    expect(await toldIn(store, 's')).toEqual([['APPROVE', 1]])
    await settled()
    expect(await inboxOf(store, 's')).toEqual([])
    expect(await refused(tell({ type: 'approve', ...question }))).toMatchObject({ code: 'run_ended' })
  })

  it('can be cancelled by anyone if it waits without a lease', async () => {
    const store = open()
    const tools = [pay()]
    const play = await stage([call('pay', { amount: 1 }), text('Done.')], { store, tools })
    await play.agent.run('Go.', { session: 's' }).result
    const bare = createAgent({ model: new ManualModel(), store, clock: new SimulatedClock() })
    expect(await bare.send('s', { type: 'cancel' })).toEqual({ message: 1, status: 'applied' })
    expect(await store.get('s')).toMatchObject({ holder: null, summary: { state: 'CANCELLED' } })
    const { run, messages } = await bare.replay('s')
    expect(run).toMatchObject({ state: 'CANCELLED', reason: 'cancelled' })
    expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(1)
    expect(await inboxOf(store, 's')).toEqual([])
    expect(await refused(bare.send('s', { type: 'cancel' }))).toMatchObject({ code: 'run_ended' })
    // The session starts another run.
    expect(await again(play, { store }).run('And now?', { session: 's' }).result).toMatchObject({
      state: 'COMPLETED',
    })
  })

  it('can be cancelled if it was interrupted, and must be resumed for any other message', async () => {
    const inner = open()
    const model = new ManualModel()
    const agent = createAgent({ model, store: inner, clock: new SimulatedClock() })
    void agent.run('Go.', { session: 's' })
    await until(() => model.pending !== null)
    // The process is gone. Another store holds an unchanged copy of the log.
    const store = open()
    const lease = await store.acquire('s', { holder: 'gone', ttlMs: 1000 })
    await store.append(lease, await inner.read('s'), (await inner.get('s'))?.summary ?? undefined)
    await store.release(lease)
    const other = createAgent({ model: new ManualModel(), store, clock: new SimulatedClock() })
    for (const message of [{ type: 'pause' }, { type: 'steer', text: 'Hm.' }] as const) {
      expect(await refused(other.send('s', message))).toMatchObject({ code: 'not_waiting' })
    }
    expect(await inboxOf(store, 's')).toEqual([])
    expect(await other.send('s', { type: 'cancel' })).toMatchObject({ status: 'applied' })
    expect((await other.replay('s')).run).toMatchObject({ state: 'CANCELLED' })
  })

  it('discards undelivered messages at its end, and the next run does not receive them', async () => {
    const store = open()
    const play = await stage([text('One.'), text('Two.')], { store })
    await play.agent.run('Go.', { session: 's' }).result
    await store.inbox?.put('s', JSON.stringify({ type: 'CANCEL' }))
    expect(await play.agent.run('Again.', { session: 's' }).result).toMatchObject({
      state: 'COMPLETED',
      output: 'Two.',
    })
    expect(await toldIn(store, 's')).toEqual([])
    expect(await inboxOf(store, 's')).toEqual([])
  })

  it('receives a message once that a dead process had applied, but not removed', async () => {
    const store = open()
    const done: unknown[] = []
    const tools = [pay(done)]
    const play = await stage([call('pay', { amount: 1 }), call('pay', { amount: 2 })], { store, tools })
    const { pending = [] } = await play.agent.run('Go.', { session: 's' }).result
    const [question] = pending
    if (!question || !store.inbox) throw new Error('A call waits.')
    await play.agent.send('s', { type: 'approve', ...question })
    const { inbox } = store
    const keeping: SessionStore = { ...store, inbox: { ...inbox, remove: () => undefined } }
    const run = await again(play, { store: keeping, tools }).resume('s')
    expect(await run.result).toMatchObject({ state: 'WAITING_FOR_INPUT' })
    expect(await inboxOf(store, 's')).toHaveLength(1)
    const later = await again(play, { store, tools }).resume('s')
    expect(await later.result).toMatchObject({ state: 'WAITING_FOR_INPUT' })
    expect(done).toEqual([1])
    expect(await toldIn(store, 's')).toEqual([['APPROVE', 1]])
  })

  it('answers a sub-agent through its call, and ends it with the session', async () => {
    const store = open()
    const done: unknown[] = []
    const play = await stage([
      call('clerk', { task: 'Pay.' }),
      call('pay', { amount: 1 }),
      text('Paid.'),
      text('Done.'),
      call('clerk', { task: 'Pay.' }),
      call('pay', { amount: 2 }),
    ])
    const build = () => {
      const clerk = again(play, { tools: [pay(done)] })
      return again(play, { store, tools: [clerk.asTool({ name: 'clerk', description: 'Pays.' })] })
    }
    const agent = build()
    const { pending = [] } = await agent.run('Go.', { session: 's' }).result
    const [question] = pending
    if (!question) throw new Error('A call waits.')
    expect(question).toMatchObject({ path: ['clerk'] })
    expect(await agent.send('s', { type: 'approve', ...question })).toMatchObject({ status: 'waiting' })
    expect(await refused(agent.send('s', { type: 'approve', ...question }))).toMatchObject({
      code: 'already_answered',
    })
    expect(await (await build().resume('s')).result).toMatchObject({ output: 'Done.' })
    expect(done).toEqual([1])

    await agent.run('Again.', { session: 's' }).result
    expect(await agent.send('s', { type: 'cancel' })).toMatchObject({ status: 'applied' })
    await tick()
    const states = (await store.list({ children: true })).map(({ summary }) => summary?.state)
    expect(states.sort((a, b) => String(a).localeCompare(String(b)))).toEqual([
      'CANCELLED',
      'CANCELLED',
      'COMPLETED',
    ])
  })
})

describe('a queued message', () => {
  it('replies to an interactive run without a lease', async () => {
    const store = memoryStore()
    const interactive = { store, interactive: true }
    const play = await stage([text('One.'), text('Two.')], interactive)
    const run = play.run('Go.', { session: 's' })
    await run.event('state_changed', ({ to }) => to === 'WAITING_FOR_INPUT')
    expect(await play.agent.send('s', { type: 'reply', input: 'And in June?' })).toMatchObject({
      status: 'waiting',
    })
    const resumed = await again(play, interactive).resume('s')
    await until(() => play.requests.length === 2 && resumed.state === 'WAITING_FOR_INPUT')
    expect(play.wire(1).map(({ content }) => content)).toEqual(['Go.', 'One.', 'And in June?'])
    resumed.cancel()
    expect(await resumed.result).toMatchObject({ state: 'CANCELLED', output: 'Two.' })
  })

  it('replaces arguments only with valid ones', async () => {
    const store = memoryStore()
    const done: number[] = []
    const transfer = defineTool({
      name: 'transfer',
      description: 'Moves money.',
      input: z.object({ amount: z.number() }),
      needsApproval: true,
      execute: ({ amount }) => `moved ${String(done.push(amount) && amount)}`,
    })
    const play = await stage([call('transfer', { amount: 20 }), text('Done.')], { store, tools: [transfer] })
    const { pending = [] } = await play.agent.run('Go.', { session: 's' }).result
    const [question] = pending
    if (!question) throw new Error('A call waits.')
    const wrong: SessionMessage = { type: 'approve', ...question, editedInput: { amount: 'much' } }
    expect(await refused(play.agent.send('s', wrong))).toMatchObject({ code: 'invalid_input' })
    await play.agent.send('s', { type: 'approve', ...question, editedInput: { amount: 5 } })
    expect(await (await play.agent.resume('s')).result).toMatchObject({ state: 'COMPLETED' })
    expect(done).toEqual([5])
  })

  it('is dropped with a warning if it is too late', async () => {
    const store = memoryStore()
    const model = new ManualModel()
    const agent = createAgent({ model, store, clock: new SimulatedClock() })
    const run = agent.run('Go.', { session: 's' })
    const warnings: string[] = []
    run.events$.subscribe((event) => {
      if (event.type === 'warning') warnings.push(event.code)
    })
    await until(() => model.pending !== null)
    store.inbox.put('s', '{"type":"APPROVE","callId":"gone"}')
    store.inbox.put('s', 'no JSON')
    store.inbox.put('s', '{"type":"STORE_FAILED"}')
    await agent.send('s', { type: 'pause' })
    expect(warnings).toEqual(['message_refused'])
    expect(await toldIn(store, 's')).toEqual([['PAUSE', 4]])
    model.pending?.answer({ text: 'Done.' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    expect(store.inbox.read('s')).toEqual([])
  })

  it('that an input shield blocked is removed from the inbox, and withheld in the log', async () => {
    const store = memoryStore()
    const secret = 'xyzzy-4711'
    const block = defineShield({
      name: 'no-secrets',
      check: (text) => (text.includes(secret) ? { action: 'block', message: 'No.' } : { action: 'allow' }),
    })
    const model = new ManualModel()
    const agent = createAgent({
      model,
      store,
      tools: [tool('look')],
      shields: { input: [block] },
      clock: new SimulatedClock(),
    })
    const run = agent.run('Go.', { session: 's' })
    await until(() => model.pending !== null)
    await agent.send('s', { type: 'steer', text: `The word is ${secret}.` })
    model.pending?.answer({ toolCalls: [callOf('a', 'look')] })
    const result = await run.result
    expect(result).toMatchObject({ state: 'BLOCKED', reason: 'shield' })
    expect(JSON.stringify([result, store.inbox.read('s'), store.list({ children: true })])).not.toContain(
      secret,
    )
    const records = store.read('s').filter(({ data }) => data.includes(secret))
    expect(records.map(({ data }) => JSON.parse(data) as object)).toEqual([
      expect.objectContaining({
        event: expect.objectContaining({ type: 'STEER', inbox: 1, withheld: true }),
      }),
    ])
    expect(JSON.stringify(await agent.replay('s').then(({ messages }) => messages))).not.toContain(secret)
  })
})

describe('an invalid message', () => {
  it('is refused by name', async () => {
    const store = memoryStore()
    const play = await stage([text('Done.')], { store })
    const { agent } = play
    const tell = (message: unknown, id = 's') => agent.send(id, message as SessionMessage)
    expect(await refused(tell({ type: 'pause' }))).toMatchObject({ code: 'unknown_session' })
    await agent.run('Go.', { session: 's' }).result
    for (const [message, key] of [
      [null, 'type'],
      [{}, 'type'],
      [{ type: 'stop' }, 'type'],
      [{ type: 'constructor' }, 'type'],
      [{ type: 'cancel', reason: 'x' }, 'reason'],
      [{ type: 'cancel', why: 7 }, 'why'],
      [{ type: 'steer' }, 'text'],
      [{ type: 'approve' }, 'callId'],
      [{ type: 'approve', callId: 'a', fingerPrint: 'x' }, 'fingerPrint'],
      [{ type: 'reject', callId: 'a', fingerprint: 7 }, 'fingerprint'],
    ] as const) {
      expect(await refused(tell(message))).toMatchObject({ code: 'invalid_input', subject: key })
    }
    expect(await refused(tell({ type: 'pause' }, '../s'))).toMatchObject({ code: 'invalid_session' })
    for (const message of [{ type: 'pause' }, { type: 'cancel' }, { type: 'reply', input: 'And?' }]) {
      expect(await refused(tell(message))).toMatchObject({ code: 'run_ended' })
    }
    const { inbox: _inbox, ...bare } = memoryStore()
    expect(await refused(again(play, { store: bare }).send('s', { type: 'pause' }))).toMatchObject({
      code: 'no_inbox',
    })
    expect(await refused(again(play).send('s', { type: 'pause' }))).toMatchObject({ code: 'no_store' })
  })

  it('is refused by a session that waits for something else', async () => {
    const store = memoryStore()
    const play = await stage([call('pay', { amount: 1 })], { store, tools: [pay()] })
    await play.agent.run('Go.', { session: 's' }).result
    for (const message of [
      { type: 'reply', input: 'And?' },
      { type: 'resume' },
      { type: 'pause' },
    ] as const) {
      expect(await refused(play.agent.send('s', message))).toMatchObject({ code: 'not_waiting' })
    }
    expect(store.inbox.read('s')).toEqual([])
  })
})

describe('a session with a lease of another connection', () => {
  it('is polled together with the other sessions of its process, once a second', async () => {
    const place = filePlace()
    const [here, there] = [place.open(), place.open()]
    let queries: (readonly string[])[] = []
    const { inbox } = here
    if (!inbox?.findUnread) throw new Error('The store has an inbox.')
    const counting: SessionStore = {
      ...here,
      inbox: { ...inbox, findUnread: (ids) => (queries.push(ids), inbox.findUnread?.(ids) ?? []) },
    }
    const clock = new SimulatedClock()
    const model = new ManualModel()
    const agent = createAgent({ model, store: counting, tools: [tool('look')], clock })
    const runs = ['a', 'b'].map((session) => agent.run('Go.', { session }))
    await until(() => model.attempts.length === 2)
    const other = createAgent({ model: new ManualModel(), store: there, clock: new SimulatedClock() })
    expect(await other.send('a', { type: 'cancel' })).toMatchObject({ status: 'sent' })
    clock.increment(999)
    await settled()
    expect(queries).toEqual([])
    clock.increment(1)
    expect(await runs[0]?.result).toMatchObject({ state: 'CANCELLED' })
    expect(queries).toEqual([['a', 'b']])
    clock.increment(1000)
    await settled()
    expect(queries).toEqual([['a', 'b'], ['b']])
    // The write's response reports the message before any query.
    await other.send('b', { type: 'steer', text: 'Mind the gap.' })
    model.pending?.answer({ toolCalls: [callOf('x', 'look')] })
    await until(() => model.attempts.length === 3)
    expect(JSON.stringify(model.pending?.request.messages)).toContain('Mind the gap.')
    runs[1]?.cancel()
    await runs[1]?.result
    queries = []
    clock.increment(10_000)
    await settled()
    expect(queries).toEqual([])
    await here.close()
    await there.close()
    await place.remove()
  })

  it('is renewed by one heartbeat for all sessions of a process', async () => {
    const place = filePlace()
    const inner = place.open()
    const beats: string[][] = []
    const store: SessionStore = {
      ...inner,
      renew: () => {
        throw new Error('One by one.')
      },
      renewAll: (leases, ttlMs) => {
        beats.push(leases.map(({ sessionId }) => sessionId))
        return (inner.renewAll?.(leases, ttlMs) ?? []) as Lease[]
      },
    }
    const clock = new SimulatedClock()
    const model = new ManualModel()
    const agent = createAgent({ model, store, clock })
    const runs = ['a', 'b', 'c'].map((session) => agent.run('Go.', { session }))
    await until(() => model.attempts.length === 3)
    for (let n = 0; n < 3; n += 1) {
      clock.increment(10_000)
      await settled()
    }
    expect(beats).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
    ])
    for (const run of runs) run.cancel()
    await Promise.all(runs.map((run) => run.result))
    clock.increment(60_000)
    await settled()
    expect(beats).toHaveLength(3)
    await inner.close()
    await place.remove()
  })

  it('survives a restart with its messages', async () => {
    const place = filePlace()
    const play = await stage([call('pay', { amount: 1 }), text('Done.')])
    const dir = place.open()
    const tools = [pay()]
    const { pending = [] } = await again(play, { store: dir, tools }).run('Go.', { session: 's' }).result
    const [question] = pending
    if (!question) throw new Error('A call waits.')
    await again(play, { store: dir, tools }).send('s', { type: 'approve', ...question })
    await dir.close()
    const later = place.open()
    const run = await again(play, { store: later, tools }).resume('s')
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    await later.close()
    await place.remove()
  })
})

test('a cancel that arrives after the session was acquired with an empty inbox is kept for the run that begins', async () => {
  const store = memoryStore()
  const model = new ManualModel()
  const agent = createAgent({ model, store })
  const first = agent.run('Go.', { session: 's' })
  await until(() => model.pending !== null)
  model.pending?.answer({ text: 'Done.' })
  await first.result
  const { log } = await openSession(store, 's', { clock: systemClock, holder: 'a run that begins' })
  expect(await agent.send('s', { type: 'cancel' })).toMatchObject({ status: 'sent' })
  await log.inbox.discard()
  expect(await inboxOf(store, 's')).toHaveLength(1)
  await log.close()
})
