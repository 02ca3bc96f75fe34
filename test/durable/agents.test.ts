import { assign, setup } from 'xstate'
import { createAgent, memoryStore, StoreError } from '../../src/index.js'
import { durable } from '../../src/durable/index.js'
import { readSessionAt } from '../../src/core/sessions/replay-session.js'
import { createOneCallModel } from '../support/manual-model.js'
import { tool } from '../support/tools.js'
import { type Host, Hosts } from '../fleet/host-clocks.js'

const start = Date.parse('2026-05-04T06:00:00Z')

function setUp() {
  const hosts = new Hosts(start)
  const shared = memoryStore({ now: () => hosts.now })
  const executed: string[] = []
  const open = () => {
    const host: Host = hosts.start(shared)
    const errors: unknown[] = []
    const agent = createAgent({
      model: createOneCallModel('book'),
      tools: [{ ...tool('book', () => void executed.push('book')), needsApproval: true }],
      clock: host.clock,
    })
    const machine = setup({
      types: {
        input: {} as { text: string },
        context: {} as { text: string; answer: string },
        events: {} as { type: 'STOP' } | { type: 'AGAIN' } | { type: 'QUIT' },
      },
      actors: { triage: agent.machine },
    }).createMachine({
      id: 'case',
      context: ({ input }) => ({ text: input.text, answer: '' }),
      initial: 'triaging',
      states: {
        triaging: {
          invoke: {
            src: 'triage',
            input: ({ context }) => agent.createInput(context.text),
            onDone: {
              target: 'triaged',
              actions: assign({ answer: ({ event }) => `${event.output.state}: ${event.output.output}` }),
            },
            onError: 'failed',
          },
          on: { STOP: 'stopped', QUIT: 'ended' },
        },
        triaged: { on: { AGAIN: 'triaging' } },
        stopped: { on: { AGAIN: 'triaging' } },
        failed: {},
        ended: { type: 'final' },
      },
    })
    const cases = durable(machine, {
      store: host.store as never,
      clock: host.clock,
      onError: (error) => errors.push(error),
    })
    return { host, cases, errors }
  }
  const until = async <Value>(promise: Promise<Value>): Promise<Value> => hosts.until(promise)
  return { hosts, shared, executed, open, until }
}

const input = { text: 'My roof leaks.' }

test('an agent runs in a session of its own, and its call is answered through the machine', async () => {
  const { shared, executed, open, until } = setUp()
  const { cases, errors } = open()
  await until(cases.start('case-1', { input }))
  const waiting = await until(cases.settled('case-1'))
  expect(waiting).toMatchObject({
    value: 'triaging',
    pending: [{ name: 'book', session: 'case-1:triage.1' }],
  })
  expect(shared.get('case-1:triage.1')).toMatchObject({
    holder: null,
    summary: { parent: 'case-1', state: 'WAITING_FOR_INPUT' },
  })
  expect(shared.get('case-1')).toMatchObject({ holder: null })
  const [call] = waiting.pending
  if (call) await until(cases.send('case-1', { type: 'approve', ...call }))
  const done = await until(cases.settled('case-1'))
  expect(done).toMatchObject({
    value: 'triaged',
    pending: [],
    context: { answer: expect.stringMatching(/^COMPLETED: /) },
  })
  expect(executed).toEqual(['book'])
  expect(errors).toEqual([])
  expect(shared.list().map(({ id }) => id)).toEqual(['case-1'])
})

test('another process answers, and continues the agent of a dead one', async () => {
  const { hosts, executed, open, until } = setUp()
  const first = open()
  await until(first.cases.start('case-1', { input }))
  await until(first.cases.settled('case-1'))
  first.host.kill()
  const second = open()
  const [call] = (await until(second.cases.settled('case-1'))).pending
  if (call) await until(second.cases.send('case-1', { type: 'approve', ...call }))
  await hosts.settle()
  expect(await until(second.cases.settled('case-1'))).toMatchObject({ value: 'triaged' })
  expect(executed).toEqual(['book'])
  await expect(
    until(second.cases.send('case-1', { type: 'approve', callId: 'call_1' })),
  ).rejects.toMatchObject({
    code: 'unknown_call',
  })
})

test('a state that is left cancels its agent, also if the process dies in between', async () => {
  for (const dies of [false, true]) {
    const { hosts, shared, open, until } = setUp()
    const first = open()
    await until(first.cases.start('case-1', { input }))
    await until(first.cases.settled('case-1'))
    if (dies) {
      // The process stores the event, and dies before it cancels the agent.
      const put = shared.inbox.put.bind(shared.inbox)
      shared.inbox.put = (id, text) => {
        if (id !== 'case-1') {
          first.host.kill()
          return { message: 0, holder: null }
        }
        return put(id, text)
      }
      void first.cases.send('case-1', { type: 'STOP' }).catch(() => undefined)
      await hosts.pass(1000)
      shared.inbox.put = put
      expect(shared.get('case-1')?.summary?.value).toBe('stopped')
    } else await until(first.cases.send('case-1', { type: 'STOP' }))
    await hosts.pass(40_000)
    const next = dies ? open() : first
    expect(await until(next.cases.settled('case-1'))).toMatchObject({ value: 'stopped', pending: [] })
    await hosts.pass(1000)
    expect([dies, shared.get('case-1:triage.1')?.summary?.state]).toEqual([dies, 'CANCELLED'])
    await until(next.cases.send('case-1', { type: 'AGAIN' }))
    expect((await until(next.cases.settled('case-1'))).pending).toMatchObject([
      { session: 'case-1:triage.3' },
    ])
  }
})

test('a worker cancels the agent of a machine that has ended, if the process dies in between', async () => {
  const { hosts, shared, open, until } = setUp()
  const first = open()
  await until(first.cases.start('case-1', { input }))
  await until(first.cases.settled('case-1'))
  const append = shared.append.bind(shared)
  shared.append = (lease, ...more) => {
    const answer = append(lease, ...more)
    if (lease.sessionId === 'case-1') first.host.kill()
    return answer
  }
  first.cases.send('case-1', { type: 'QUIT' }).catch(() => undefined)
  await hosts.pass(1000)
  shared.append = append
  expect(shared.get('case-1')?.summary).toMatchObject({ state: 'COMPLETED' })
  expect(shared.get('case-1:triage.1')?.summary).toMatchObject({ state: 'WAITING_FOR_INPUT' })
  const second = open()
  const worker = second.cases.worker()
  await hosts.pass(65_000)
  expect(shared.get('case-1:triage.1')?.summary).toMatchObject({ state: 'CANCELLED' })
  expect([second.errors, shared.timers.list({ prefix: '', limit: 1 })]).toEqual([[], []])
  await until(worker.drain())
})

test('a failed cancel of an agent is reported, and tried again when the session opens', async () => {
  const { hosts, shared, open, until } = setUp()
  const { cases, errors } = open()
  await until(cases.start('case-1', { input }))
  await until(cases.settled('case-1'))
  const read = shared.read.bind(shared)
  shared.read = (id, ...more) => {
    const isLeft = shared.get('case-1')?.summary?.value === 'stopped'
    if (isLeft && id !== 'case-1') throw new StoreError('corrupt_log', 'The log is damaged.', id)
    return read(id, ...more)
  }
  await until(cases.send('case-1', { type: 'STOP' }))
  await hosts.pass(1000)
  expect(errors).toMatchObject([{ code: 'corrupt_log' }])
  expect(shared.get('case-1:triage.1')?.summary?.state).toBe('WAITING_FOR_INPUT')
  shared.read = read
  expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'stopped' })
  await hosts.pass(1000)
  expect(shared.get('case-1:triage.1')?.summary?.state).toBe('CANCELLED')
})

test('an agent that has ended is not cancelled', async () => {
  const { shared, open, until } = setUp()
  const { cases } = open()
  await until(cases.start('case-1', { input }))
  const [call] = (await until(cases.settled('case-1'))).pending
  if (call) await until(cases.send('case-1', { type: 'approve', ...call }))
  const reads: string[] = []
  const read = shared.read.bind(shared)
  shared.read = (id, ...more) => {
    if (JSON.stringify(shared.get('case-1')?.summary).includes('triaged')) reads.push(id)
    return read(id, ...more)
  }
  expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'triaged' })
  expect(reads).not.toContain('case-1:triage.1')
})

test('parent and child agree whenever a process dies', async () => {
  for (let at = 1; at <= 12; at += 1) {
    const { hosts, shared, executed, open, until } = setUp()
    const append = shared.append.bind(shared)
    let left = at
    const first = open()
    shared.append = (...args) => {
      const answer = append(...args)
      left -= 1
      if (left === 0) first.host.kill()
      return answer
    }
    void first.cases.start('case-1', { input }).catch(() => undefined)
    await hosts.pass(3000)
    if (!first.host.isDead) {
      const settled = first.cases
        .settled('case-1')
        .then(async ({ pending: [call] }) => call && first.cases.send('case-1', { type: 'approve', ...call }))
      settled.catch(() => undefined)
      await hosts.pass(5000)
    }
    await hosts.pass(65_000)
    const second = open()
    await until(second.cases.start('case-1', { input }))
    const [call] = (await until(second.cases.settled('case-1'))).pending
    if (call) await until(second.cases.send('case-1', { type: 'approve', ...call }))
    const { value, context } = await until(second.cases.settled('case-1'))
    const { run } = await readSessionAt(shared, 'case-1:triage.1')
    const result = run?.context
    expect([at, value, context.answer]).toEqual([at, 'triaged', `${result?.state}: ${result?.output}`])
    expect(executed.length).toBeLessThanOrEqual(1)
    expect(second.errors).toEqual([])
  }
})

test('deleting a session deletes the sessions of its agents', async () => {
  const { shared, open, until } = setUp()
  const { cases } = open()
  await until(cases.start('case-1', { input }))
  await until(cases.settled('case-1'))
  expect(await until(cases.delete('case-1'))).toBe(true)
  expect(shared.list({ children: true })).toEqual([])
})
