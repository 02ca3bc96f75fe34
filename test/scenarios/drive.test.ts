import { jest } from '@jest/globals'
import { SimulatedClock } from 'xstate'
import {
  createAgent,
  defineAgents,
  defineTool,
  runSession,
  type SessionResult,
  memoryStore,
  listStrandedSessions,
} from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { distant } from '../support/distant.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { stage } from '../support/play.js'
import { tool } from '../support/tools.js'

const toolCalls = (...calls: ReturnType<typeof call>[]) => ({
  toolCalls: calls,
  finishReason: 'tool_calls' as const,
})
const leaseOf = (store: SyncSessionStore, id: string) => store.get(id)?.holder
const types = (store: SyncSessionStore, id: string) => store.read(id).map(({ data }) => eventType(data))
const eventType = (data: string) => (JSON.parse(data) as { event?: { type: string } }).event?.type ?? '–'

/** Runs ready work until the condition holds. Some modules load on first use. */
async function until(holds: () => unknown): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i += 1) await settled()
}

/** Waits for the next request to the model. */
async function untilRequest(model: ManualModel) {
  await until(() => model.pending)
  if (model.pending === null) throw new Error('Nobody asks the model.')
  return model.pending
}

/** A separate process with a model whose answers the test controls. */
function program(
  store: SyncSessionStore,
  tools = [] as ReturnType<typeof tool>[],
  clock = new SimulatedClock(),
) {
  const model = new ManualModel()
  return { model, clock, agent: createAgent({ model, store, tools, clock }) }
}

/** A tool whose completion the test controls. */
function gate(options: Parameters<typeof tool>[2] = {}) {
  const begun: string[] = []
  const ends: (() => void)[] = []
  const pay = tool(
    'pay',
    ({ text }) => {
      begun.push(String(text))
      return new Promise<string>((resolve) => ends.push(() => resolve(`paid ${String(text)}`)))
    },
    options,
  )
  return { begun, pay, end: () => ends.shift()?.() }
}

describe('runSession', () => {
  it('writes once at the start: the first records list the run as active', async () => {
    const store = memoryStore()
    const append = jest.spyOn(store, 'append')
    const { agent, model } = program(store)
    const driving = runSession(agent, { session: 's', input: 'Go.' })
    const request = await untilRequest(model)
    const written = append.mock.calls.map(([, records, summary]) => [records.length, summary?.state])
    expect(written).toEqual([[2, 'RUNNING']])
    request.answer({ text: 'Done.' })
    expect(await driving).toMatchObject({ state: 'COMPLETED' })
    expect(append).toHaveBeenCalledTimes(2)
  })

  test.each([
    ['synchronously', () => memoryStore()],
    ['asynchronously', () => distant(memoryStore())],
  ])('starts, continues and returns the result, with a store that answers %s', async (_, open) => {
    const done: string[] = []
    const pay = tool('pay', ({ text }) => void done.push(String(text)), { needsApproval: true })
    const play = await stage(
      [{ toolCalls: [{ id: 'a', name: 'pay', arguments: { text: 'May' } }] }, { text: 'Paid.' }],
      { store: open(), tools: [pay] },
    )
    const waiting = await runSession(play.agent, { session: 's', input: 'Pay.' })
    expect(waiting).toMatchObject({ session: 's', turn: 1, state: 'WAITING_FOR_INPUT', pendingCount: 1 })
    expect(waiting.pending).toMatchObject([{ callId: 'a', name: 'pay', needs: 'approval' }])
    // An engine that calls twice starts each piece of work once.
    expect(await runSession(play.agent, { session: 's', input: 'Pay.' })).toEqual(waiting)

    const answers = [{ type: 'approve', callId: 'a' }] as const
    const ended = await runSession(play.agent, { session: 's', answers, at: waiting.head })
    expect(ended).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: 'Paid.' })
    expect(await runSession(play.agent, { session: 's', answers, at: waiting.head })).toEqual(ended)
    expect(await runSession(play.agent, { session: 's', input: 'Pay.', turn: 1 })).toEqual(ended)
    expect(done).toEqual(['May'])
    expect(play.requests).toHaveLength(2)
  })

  test('passes the context of the app to tools', async () => {
    const seen: unknown[] = []
    const look = tool('look', (_, { context }) => void seen.push(context))
    const play = await stage([{ toolCalls: [{ id: 'a', name: 'look', arguments: {} }] }, { text: 'Done.' }], {
      store: memoryStore(),
      tools: [look],
    })
    await runSession(play.agent, { session: 's', input: 'Look.', context: { user: 'ann' } })
    expect(seen).toEqual([{ user: 'ann' }])
  })

  test('repeated answers approve no other call, even if the model reuses the id', async () => {
    const store = memoryStore()
    const paid: unknown[] = []
    const pay = tool('pay', ({ amount }) => void paid.push(amount), { needsApproval: true })
    const asks = (amount: number) => ({ toolCalls: [{ id: 'call_0', name: 'pay', arguments: { amount } }] })
    const play = await stage([asks(5), asks(99_999), asks(99_999), { text: 'Paid.' }], {
      store,
      tools: [pay],
    })
    const session = 's'
    const first = await runSession(play.agent, { session, input: 'Pay.' })
    const approve = { type: 'approve', callId: 'call_0' } as const
    await expect(runSession(play.agent, { session, answers: [approve] })).rejects.toMatchObject({
      code: 'unbound_answer',
      subject: 'answers',
      message: expect.stringContaining('fingerprint'),
    })
    const bound = ({ pending: [question] = [] }: SessionResult) => ({
      session,
      answers: [{ ...approve, callId: question?.callId ?? '', fingerprint: question?.fingerprint ?? '' }],
    })
    const second = await runSession(play.agent, bound(first))
    expect(paid).toEqual([5])
    expect(await runSession(play.agent, bound(first))).toEqual(second)
    const third = await runSession(play.agent, bound(second))
    expect(await runSession(play.agent, bound(second))).toEqual(third)
    expect(await runSession(play.agent, { session, answers: [approve], at: second.head })).toEqual(third)
    expect(paid).toEqual([5, 99_999])
    expect(await runSession(play.agent, { ...bound(third), at: third.head })).toMatchObject({
      state: 'COMPLETED',
    })
    expect(paid).toEqual([5, 99_999, 99_999])
  })

  test('starts each turn of a conversation once, whenever it is called', async () => {
    const store = memoryStore()
    const play = await stage([{ text: 'One.' }, { text: 'Two.' }], { store })
    const requests: string[] = []
    const turn = (n: number) => ({
      session: 's',
      turn: n,
      input: () => {
        requests.push(`${n}`)
        return `Turn ${n}.`
      },
    })
    await expect(runSession(play.agent, turn(2))).rejects.toMatchObject({
      code: 'out_of_turn',
      retryable: true,
    })
    expect(await runSession(play.agent, turn(1))).toMatchObject({ turn: 1, output: 'One.' })
    expect(await runSession(play.agent, turn(2))).toMatchObject({ turn: 2, output: 'Two.' })
    // Too late, because the conversation has continued.
    expect(await runSession(play.agent, turn(1))).toMatchObject({ turn: 2, output: 'Two.' })
    expect(requests).toEqual(['1', '2'])
    expect(store.get('s')?.summary?.runs).toBe(2)
  })

  test('at most 1,000 bytes cross its boundary, for a session of any size', async () => {
    const store = memoryStore()
    const { agent, model } = program(store, [tool('pay', () => '', { needsApproval: true })])
    const driving = runSession(agent, { session: 's'.repeat(200), input: 'x'.repeat(100_000) })
    const calls = Array.from({ length: 40 }, (_, i) =>
      call(`call-${i}-${'é'.repeat(40)}`, 'pay', { text: `x${i}` }),
    )
    ;(await untilRequest(model)).answer(toolCalls(...calls))
    const rest = await driving
    const size = Buffer.byteLength(JSON.stringify(rest))
    expect(size).toBeLessThanOrEqual(1000)
    expect(rest.pendingCount).toBe(40)
    expect(rest.pending?.length).toBeGreaterThan(0)

    const long = runSession(agent, { session: 'long', input: 'Go.' })
    ;(await untilRequest(model)).answer({
      text: 'y'.repeat(5000),
    })
    const ended = await long
    expect(ended).toMatchObject({ state: 'COMPLETED', outputLength: 5000 })
    expect(ended).not.toHaveProperty('output')
    expect((await agent.replay('long')).run?.output).toHaveLength(5000)
  })

  test.each([
    ['synchronously', () => memoryStore(), undefined],
    ['asynchronously', () => distant(memoryStore()), undefined],
    ['synchronously, with an edit', () => memoryStore(), { text: 'June' }],
    ['asynchronously, with an edit', () => distant(memoryStore()), { text: 'June' }],
  ])('an answer survives a stop, with a store that answers %s', async (_, open, editedInput) => {
    const paid: string[] = []
    const options = { needsApproval: true, idempotent: true }
    const pay = tool('pay', ({ text }) => void paid.push(String(text)), options)
    const store = open()
    const play = await stage(
      [{ toolCalls: [{ id: 'a', name: 'pay', arguments: { text: 'May' } }] }, { text: 'Paid.' }],
      { store, tools: [pay] },
    )
    const { head } = await runSession(play.agent, { session: 's', input: 'Pay.' })
    const answers = [{ type: 'approve', callId: 'a', ...(editedInput && { editedInput }) }] as const
    // Stops the drive at each of its steps in turn.
    for (let moment = 0; ; moment += 1) {
      const stop = new AbortController()
      const driving = runSession(play.agent, { session: 's', answers, at: head, signal: stop.signal })
      for (let i = 0; i < moment % 10; i += 1) await Promise.resolve()
      for (let i = 0; i < Math.floor(moment / 10); i += 1) await settled()
      stop.abort()
      const rest = await driving
      expect((await store.get('s'))?.holder).toBeNull()
      if (rest.state === 'WAITING_FOR_INPUT')
        expect(rest).toMatchObject({ stopped: true, undelivered: true, head })
      else break
      if (moment > 500) throw new Error('It never hears the answer.')
    }
    expect(await runSession(play.agent, { session: 's', answers, at: head })).toMatchObject({
      output: 'Paid.',
    })
    expect(paid).toEqual([editedInput?.text ?? 'May'])
  })

  test('a stop during a transition frees the session and loses nothing', async () => {
    const store = memoryStore()
    const paid: string[] = []
    const pay = tool('pay', ({ text }) => void paid.push(String(text)), {
      needsApproval: true,
      idempotent: true,
    })
    const stop = new AbortController()
    const seen: string[] = []
    const play = await stage(
      [{ toolCalls: [{ id: 'a', name: 'pay', arguments: { text: 'May' } }] }, { text: 'Paid.' }],
      {
        store,
        tools: [pay],
        // Applies to every run of the agent, including driven runs.
        inspect: (event) => {
          if (event.type !== '@xstate.event') return
          seen.push(event.event.type)
          if (event.event.type === 'APPROVE') stop.abort()
        },
      },
    )
    const { head } = await runSession(play.agent, { session: 's', input: 'Pay.' })
    expect(seen).toContain('xstate.done.actor.model')
    const answers = [{ type: 'approve', callId: 'a' }] as const
    const left = await runSession(play.agent, { session: 's', answers, at: head, signal: stop.signal })
    expect(left).toMatchObject({ stopped: true, state: 'WAITING_FOR_TOOL' })
    expect(left).not.toHaveProperty('undelivered')
    expect(leaseOf(store, 's')).toBeNull()
    expect(await runSession(play.agent, { session: 's' })).toMatchObject({ output: 'Paid.' })
    expect(paid).toEqual(['May'])
  })

  test('an abort drops a request, starts nothing and frees the session', async () => {
    const store = memoryStore()
    const first = program(store)
    const stop = new AbortController()
    const driving = runSession(first.agent, { session: 's', input: 'Go.', signal: stop.signal })
    await untilRequest(first.model)
    expect(leaseOf(store, 's')).not.toBeNull()
    stop.abort()
    expect(await driving).toMatchObject({ state: 'RUNNING', stopped: true })
    expect(first.model.attempts[0]?.signal.aborted).toBe(true)
    expect(leaseOf(store, 's')).toBeNull()

    const second = program(store)
    const rest = runSession(second.agent, { session: 's', input: 'Go.' })
    ;(await untilRequest(second.model)).answer({
      text: 'Done.',
    })
    expect(await rest).toMatchObject({ state: 'COMPLETED', output: 'Done.', turn: 1 })
    expect(first.model.attempts).toHaveLength(1)
  })

  test('an abort waits for a call that must not repeat, and leaves later calls to the next drive', async () => {
    const store = memoryStore()
    const { begun, pay, end } = gate()
    const first = program(store, [pay])
    const { model, clock } = first
    const limited = createAgent({ model, clock, store, tools: [pay], toolCalls: { concurrency: 1 } })
    const stop = new AbortController()
    const driving = runSession(limited, { session: 's', input: 'Go.', signal: stop.signal })
    ;(await untilRequest(first.model)).answer(
      toolCalls(call('a', 'pay', { text: 'May' }), call('b', 'pay', { text: 'June' })),
    )
    await until(() => begun.length > 0)
    expect(begun).toEqual(['May'])
    stop.abort()
    await settled()
    expect(leaseOf(store, 's')).not.toBeNull()
    end()
    expect(await driving).toMatchObject({ state: 'WAITING_FOR_TOOL', stopped: true })
    expect(leaseOf(store, 's')).toBeNull()

    const second = program(store, [pay])
    const rest = runSession(second.agent, { session: 's' })
    await until(() => begun.length > 1)
    end()
    const results = (await untilRequest(second.model)).request.messages.filter(({ role }) => role === 'tool')
    expect(results?.map(({ content }) => content)).toEqual(['paid May', 'paid June'])
    second.model.pending?.answer({ text: 'Done.' })
    expect(await rest).toMatchObject({ state: 'COMPLETED' })
    expect(begun).toEqual(['May', 'June'])
  })

  test('an approved call that an abort prevents is executed by the next drive', async () => {
    const store = memoryStore()
    const process = () => {
      const { begun, pay, end } = gate({ needsApproval: true })
      const { model, clock } = program(store)
      const toolset = { tools: [pay], toolCalls: { concurrency: 1 } }
      return { begun, end, model, agent: createAgent({ model, clock, store, ...toolset }) }
    }
    const first = process()
    const asking = runSession(first.agent, { session: 's', input: 'Go.' })
    const wanted = ['May', 'June', 'July'].map((text, i) => call(`c${i}`, 'pay', { text }))
    ;(await untilRequest(first.model)).answer(toolCalls(...wanted))
    const { head, ...rest } = await asking
    expect(rest).toMatchObject({ state: 'WAITING_FOR_INPUT', pendingCount: 3 })

    const answers = wanted.map(({ id }) => ({ type: 'approve' as const, callId: id }))
    const stop = new AbortController()
    const driving = runSession(first.agent, { session: 's', answers, at: head, signal: stop.signal })
    await until(() => first.begun.length > 0)
    stop.abort()
    await settled()
    first.end()
    expect(await driving).toMatchObject({ state: 'WAITING_FOR_TOOL', stopped: true })
    expect(first.begun).toEqual(['May'])

    const second = process()
    const again = runSession(second.agent, { session: 's' })
    for (const at of [1, 2]) {
      await until(() => second.begun.length === at)
      second.end()
    }
    const results = (await untilRequest(second.model)).request.messages.filter(({ role }) => role === 'tool')
    expect(results.map(({ content }) => content)).toEqual(['paid May', 'paid June', 'paid July'])
    second.model.pending?.answer({ text: 'Done.' })
    expect(await again).toMatchObject({ state: 'COMPLETED' })
    expect(second.begun).toEqual(['June', 'July'])
  })

  test('an abort drops repeatable calls, and the next drive repeats them', async () => {
    const store = memoryStore()
    const { begun, pay, end } = gate({ idempotent: true })
    const first = program(store, [pay])
    const stop = new AbortController()
    const driving = runSession(first.agent, { session: 's', input: 'Go.', signal: stop.signal })
    ;(await untilRequest(first.model)).answer(toolCalls(call('a', 'pay', { text: 'May' })))
    await until(() => begun.length > 0)
    stop.abort()
    expect(await driving).toMatchObject({ state: 'WAITING_FOR_TOOL', stopped: true })

    const second = program(store, [pay])
    const rest = runSession(second.agent, { session: 's' })
    await until(() => begun.length > 1)
    end()
    end()
    ;(await untilRequest(second.model)).answer({ text: 'Done.' })
    expect(await rest).toMatchObject({ state: 'COMPLETED' })
    expect(begun).toEqual(['May', 'May'])
  })

  test('an abort leaves a sub-agent in place, and the next drive continues it', async () => {
    const store = memoryStore()
    const team = () => {
      const child = program(store)
      const model = new ManualModel()
      const tools = [child.agent.asTool({ name: 'research', description: 'Looks things up.', maxSteps: 5 })]
      return { child, model, agent: createAgent({ model, store, tools, clock: child.clock }) }
    }
    const first = team()
    const stop = new AbortController()
    const driving = runSession(first.agent, { session: 's', input: 'Go.', signal: stop.signal })
    ;(await untilRequest(first.model)).answer(toolCalls(call('a', 'research', { task: 'Find out.' })))
    await untilRequest(first.child.model)
    stop.abort()
    expect(await driving).toMatchObject({ stopped: true })
    const held = store.list({ children: true }).filter(({ holder }) => holder !== null)
    expect(held).toEqual([])

    const second = team()
    const rest = runSession(second.agent, { session: 's' })
    ;(await untilRequest(second.child.model)).answer({ text: 'Found.' })
    ;(await untilRequest(second.model)).answer({ text: 'Done.' })
    expect(await rest).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(store.list({ children: true }).map(({ summary }) => summary?.state)).toEqual([
      'COMPLETED',
      'COMPLETED',
    ])
  })

  test('a stopped drive does not count as a crash caused by the session', async () => {
    const store = memoryStore()
    const stop = async (options: object) => {
      const { agent, model } = program(store)
      const abort = new AbortController()
      const driving = runSession(agent, { session: 's', signal: abort.signal, ...options })
      await untilRequest(model)
      abort.abort()
      expect(await driving).toMatchObject({ state: 'RUNNING', stopped: true })
    }
    await stop({ input: 'Go.' })
    for (let i = 0; i < 7; i += 1) await stop({})
    const last = program(store)
    const ending = runSession(last.agent, { session: 's' })
    ;(await untilRequest(last.model)).answer({ text: 'Done.' })
    expect(await ending).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(types(store, 's').filter((type) => type === 'RELEASED')).toHaveLength(7)
  })

  test('a partial answer at a stop is paid for, by estimate', async () => {
    const store = memoryStore()
    const totals: number[] = []
    for (let i = 0; i < 3; i += 1) {
      const { agent, model } = program(store)
      const stop = new AbortController()
      const driving = runSession(agent, { session: 's', input: 'Go.', signal: stop.signal })
      ;(await untilRequest(model)).delta('Half of an answer that is long enough to be counted.')
      stop.abort()
      const rest = await driving
      expect(rest).toMatchObject({ state: 'RUNNING', stopped: true })
      totals.push(rest.totalTokens)
    }
    const [first = 0] = totals
    expect(first).toBeGreaterThan(10)
    expect(totals).toEqual([first, 2 * first, 3 * first])
    const last = program(store)
    const received: object[] = []
    const run = await last.agent.resume('s')
    run.events$.subscribe((event) => void received.push(event))
    ;(await untilRequest(last.model)).answer({ text: 'Done.' })
    const { usage, messages } = await run.result
    expect(usage).toMatchObject({ totalTokens: 3 * first + 15, estimated: true })
    expect(messages.map(({ content }) => content)).toEqual(['Go.', 'Done.'])
    const reports: { type: string; step?: { totalTokens: number } }[] = []
    for await (const event of last.agent.watch('s')) reports.push(event)
    const steps = reports.flatMap(({ type, step }) => (type === 'usage' ? [step?.totalTokens] : []))
    expect(steps).toEqual([first, first, first, 15])
  })

  test('a wait that the provider requests may be abandoned', async () => {
    const store = memoryStore()
    const first = program(store)
    const driving = runSession(first.agent, { session: 's', input: 'Go.', maxRetryWaitMs: 30_000 })
    ;(await untilRequest(first.model)).fail({
      kind: 'rate_limit',
      code: 'http_429',
      status: 429,
      retryAfterMs: 50_000,
    })
    const rest = await driving
    expect(rest).toMatchObject({ state: 'RUNNING', stopped: true, waitUntil: 50_000 })
    expect(leaseOf(store, 's')).toBeNull()
    // Too early, so it has no effect.
    expect(await runSession(first.agent, { session: 's', maxRetryWaitMs: 30_000 })).toEqual(rest)
    // A message that arrives in the meantime does not hide that the answers were not delivered.
    let arrived = 0
    const release: SyncSessionStore['release'] = (lease) => {
      arrived ||= store.inbox.put('s', '{"type":"RESUME"}').message
      return store.release(lease)
    }
    const { agent } = program({ ...store, release }, [], first.clock)
    const answers = [{ type: 'resume' }] as const
    const unheard = await runSession(agent, { session: 's', answers, maxRetryWaitMs: 30_000 })
    expect(unheard).toEqual({ ...rest, undelivered: true })
    store.inbox.remove('s', [arrived])

    const later = program(store)
    later.clock.set(50_000)
    const ending = runSession(later.agent, { session: 's', maxRetryWaitMs: 30_000 })
    await until(() => types(store, 's').at(-1) === 'RESUMED')
    later.clock.increment(1)
    ;(await untilRequest(later.model)).answer({
      text: 'Done.',
    })
    expect(await ending).toMatchObject({ state: 'COMPLETED' })
  })

  test('applies answers at a rest, and skips the others', async () => {
    const store = memoryStore()
    const look = defineTool({ name: 'look', description: 'Looks.', input: { type: 'object' }, client: true })
    const { agent, model } = program(store, [
      tool('pay', () => 'paid', { needsApproval: true }),
      tool('wait'),
      look as never,
    ])
    const begun = runSession(agent, { session: 's', input: 'Go.' })
    ;(await untilRequest(model)).answer(
      toolCalls(call('a', 'pay'), call('b', 'look'), call('c', 'look', { n: 2 })),
    )
    const { head } = await begun
    const strange = runSession(agent, { session: 's', answers: [{ type: 'bow' } as never] })
    await expect(strange).rejects.toMatchObject({ code: 'invalid_input', subject: 'answers' })
    const going = runSession(agent, {
      session: 's',
      at: head,
      answers: [
        { type: 'resume' },
        { type: 'approve', callId: 'x' },
        { type: 'reject', callId: 'a', why: 'Too much.' },
        { type: 'toolOutput', callId: 'b', value: 'a cat' },
        { type: 'toolOutput', callId: 'c', value: 'no camera', isError: true },
      ],
    })
    const { request } = await untilRequest(model)
    const results = request.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
    expect(results).toEqual([
      'Rejected by the user: Too much.',
      'a cat',
      expect.stringContaining('no camera'),
    ])
    model.pending?.answer({ text: 'Done.' })
    expect(await going).toMatchObject({ state: 'COMPLETED' })

    const pause = async () => {
      const run = agent.run('Go on.', { session: 's' })
      const request = await untilRequest(model)
      run.pause()
      request.answer(toolCalls(call('d', 'wait')))
      expect((await run.result).state).toBe('PAUSED')
    }
    await pause()
    const steered = runSession(agent, { session: 's', answers: [{ type: 'steer', text: 'Be brief.' }] })
    expect((await untilRequest(model)).request.messages.at(-1)?.content).toBe('Be brief.')
    model.pending?.answer({ text: 'Brief.' })
    expect(await steered).toMatchObject({ output: 'Brief.' })

    await pause()
    expect(await runSession(agent, { session: 's', answers: [{ type: 'cancel' }] })).toMatchObject({
      state: 'CANCELLED',
    })
    const talks = createAgent({ model, store, interactive: true })
    await expect(runSession(talks, { session: 't', input: 'Go.' })).rejects.toMatchObject({
      subject: 'interactive',
    })
    expect(leaseOf(store, 't')).toBeUndefined()
  })

  test('beats only while it drives', async () => {
    const { agent, model, clock } = program(memoryStore())
    let beats = 0
    const driving = runSession(agent, { session: 's', input: 'Go.', heartbeat: () => (beats += 1) })
    await untilRequest(model)
    expect(beats).toBe(1)
    clock.increment(10_000)
    clock.increment(10_000)
    expect(beats).toBe(3)
    model.pending?.answer({ text: 'Done.' })
    await driving
    clock.increment(60_000)
    expect(beats).toBe(3)
  })

  test('reports whether another attempt can help', async () => {
    const store = memoryStore()
    const { agent, model } = program(store)
    const begun = runSession(agent, { session: 's', input: 'Go.' })
    await untilRequest(model)
    const refusal = (options: object) =>
      runSession(agent, options as never).then(
        () => null,
        ({ code, subject, retryable }: Record<string, unknown>) => ({ code, subject, retryable }),
      )
    expect(await refusal({ session: 's' })).toEqual({ code: 'session_busy', subject: 's', retryable: true })
    const damaged = store.read('s').map((record) => ({ ...record, data: '{}' }))
    const lease = store.acquire('bad', { holder: 'x', ttlMs: 1000 })
    store.append(lease, damaged)
    store.release(lease)
    expect(await refusal({ session: 'bad' })).toMatchObject({ code: 'corrupt_log', retryable: false })
    expect(await refusal({ session: 'new' })).toMatchObject({ code: 'not_begun', retryable: false })
    expect(await refusal({ session: 'new', inputs: 1 })).toMatchObject({
      code: 'invalid_option',
      subject: 'inputs',
    })
    expect(await refusal({ session: 'new', turn: 0 })).toMatchObject({ subject: 'turn' })
    expect(await refusal({ session: '-' })).toMatchObject({ code: 'invalid_session', retryable: false })
    expect(await refusal({ session: 'new', signal: AbortSignal.abort() })).toMatchObject({
      code: 'stopped',
      retryable: true,
    })
    expect(store.get('new')).toBeNull()
    expect(await refusal({ session: 'new', input: '' })).toMatchObject({ code: 'invalid_input' })
    expect(leaseOf(store, 'new')).toBeUndefined()
    ;(await untilRequest(model)).answer({ text: 'Done.' })
    await begun
  })
})

describe('defineAgents', () => {
  test('a process drives only accepted agents, and lists the rest with their requirements', async () => {
    const store = memoryStore()
    const [old, fresh] = [program(store), program(store)]
    const before = defineAgents({ billing: { agent: old.agent, version: '2' } })
    const stop = new AbortController()
    const begun = runSession(before, { session: 's', input: 'Go.', signal: stop.signal })
    await untilRequest(old.model)
    stop.abort()
    await begun
    expect(store.get('s')?.summary).toMatchObject({ agent: 'billing', version: '2' })

    const { agent } = fresh
    const after = defineAgents({ billing: { agent, version: '4', accepts: ['3', '4'] } })
    await expect(runSession(after, { session: 's' })).rejects.toMatchObject({
      code: 'stranded',
      subject: 's',
      retryable: true,
      message: expect.stringContaining(
        'needs billing 2, but this process has billing (accepts 3, 4)',
      ) as string,
    })
    expect(await listStrandedSessions(after, store)).toMatchObject([{ session: 's', needs: 'billing 2' }])
    expect(leaseOf(store, 's')).toBeNull()
    expect(fresh.model.attempts).toEqual([])

    const both = defineAgents({ billing: { agent, version: '4', accepts: ['2', '3', '4'] } })
    expect(await listStrandedSessions(both, store)).toEqual([])
    const driving = runSession(both, { session: 's' })
    ;(await untilRequest(fresh.model)).answer({ text: 'Done.' })
    expect(await driving).toMatchObject({ state: 'COMPLETED' })
    expect(await listStrandedSessions(after, store)).toEqual([])
  })

  test('a session belongs to the agent that started it; an unlabelled log goes to the requested agent', async () => {
    const store = memoryStore()
    const [support, billing, unnamed] = [program(store), program(store), program(store)]
    const begun = unnamed.agent.run('Go.', { session: 'old' })
    ;(await untilRequest(unnamed.model)).answer({ text: 'One.' })
    await begun.result
    const agents = defineAgents({ support: support.agent, billing: billing.agent })
    await expect(runSession(agents, { session: 's', input: 'Go.' })).rejects.toMatchObject({
      code: 'invalid_option',
      subject: 'agent',
    })
    await expect(runSession(agents, { session: 's', input: 'Go.', agent: 'sales' })).rejects.toMatchObject({
      code: 'unknown_agent',
    })
    for (const [session, turn] of [
      ['s', 1],
      ['old', 2],
    ] as const) {
      const driving = runSession(agents, { session, turn, input: 'Go.', agent: 'billing' })
      ;(await untilRequest(billing.model)).answer({ text: 'Billed.' })
      expect(await driving).toMatchObject({ output: 'Billed.' })
      expect(store.get(session)?.summary?.agent).toBe('billing')
    }
    const next = runSession(agents, { session: 's', turn: 2, input: 'Go on.' })
    ;(await untilRequest(billing.model)).answer({ text: 'Again.' })
    expect(await next).toMatchObject({ turn: 2, output: 'Again.' })
    expect(support.model.attempts).toEqual([])
  })

  test('refuses ambiguous agents', () => {
    const { agent } = program(memoryStore())
    const refused = (entries: object) => {
      try {
        defineAgents(entries as never)
        return null
      } catch (error) {
        const { code, subject } = error as { code: string; subject: string }
        return `${code} ${subject}`
      }
    }
    expect(refused({})).toBe('invalid_config agents')
    expect(refused({ a: 1 })).toBe('invalid_config a')
    expect(refused({ a: { agent } })).toBe('invalid_config a.version')
    expect(refused({ a: { agent, version: '4', accepts: 3 } })).toBe('invalid_config a.accepts')
    expect(refused({ a: { agent, version: '4', accepts: ['3'] } })).toBe('invalid_config a.accepts')
    expect(refused({ 'a b': agent })).toBe('invalid_config a b')
    expect(refused({ a: agent, b: agent })).toBe('invalid_config b')
    expect(refused({ a: agent })).toBeNull()
    // From here on, its sessions use that name.
    const [first, again] = [defineAgents({ a: agent }), { a: agent }]
    expect(refused({ b: agent })).toBe('invalid_config b')
    expect(refused({ a: { agent, version: '2' } })).toBe('invalid_config a')
    expect(refused(again)).toBeNull()
    expect(first.findAgentFor({ name: 'a', hash: '' })?.agent).toBe(agent)
  })
})
