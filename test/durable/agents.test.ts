import fc from 'fast-check'
import { assign, fromPromise, setup } from 'xstate'
import { type AgentOptions, createAgent, memoryStore, StoreError } from '../../src/index.js'
import { durable } from '../../src/durable/index.js'
import { readSessionAt } from '../../src/core/sessions/replay-session.js'
import { createOneCallModel } from '../support/manual-model.js'
import { sampled } from '../support/extent.js'
import { tool } from '../support/tools.js'
import { type Host, Hosts } from '../fleet/host-clocks.js'

const start = Date.parse('2026-05-04T06:00:00Z')

function setUp(options: Pick<AgentOptions, 'approvals'> = {}) {
  const hosts = new Hosts(start)
  const shared = memoryStore({ now: () => hosts.now })
  const executed: string[] = []
  const open = (skew = 0) => {
    const host: Host = hosts.start(shared, () => skew)
    const errors: unknown[] = []
    const agent = createAgent({
      model: createOneCallModel('book'),
      tools: [{ ...tool('book', () => void executed.push('book')), needsApproval: true }],
      clock: host.clock,
      ...options,
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

test('an agent runs in a separate session, and its call is answered through the machine', async () => {
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

test('grants of an agent are given and revoked through the machine', async () => {
  const { shared, open, until } = setUp()
  const { cases } = open()
  await until(cases.start('case-1', { input }))
  await until(cases.settled('case-1'))
  const readGrants = async () => (await readSessionAt(shared, 'case-1:triage.1')).run?.context.grants ?? []
  await until(cases.send('case-1', { type: 'grant', tool: 'book', when: { year: 2027 } }))
  await until(cases.settled('case-1'))
  const [grant] = await readGrants()
  expect(grant).toMatchObject({ tool: 'book', when: { year: 2027 } })
  await until(cases.send('case-1', { type: 'revoke', grant: grant?.id ?? '' }))
  await until(cases.settled('case-1'))
  expect(await readGrants()).toEqual([])
  expect((await until(cases.settled('case-1'))).pending).toMatchObject([{ name: 'book' }])
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

test('an answer with a key is accepted once, also after the end of its agent and of its session', async () => {
  const { hosts, executed, open, until } = setUp()
  const { cases } = open()
  await until(cases.start('case-1', { input }))
  const answer = async (process = cases) => {
    const sent = process.send('case-1', { type: 'approve', callId: 'a' }, { key: 'first' })
    return until(sent.then(() => 'sent'))
  }
  const { pending } = await until(cases.settled('case-1'))
  expect(pending).toMatchObject([{ callId: 'a' }])
  await answer()
  expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'triaged' })
  expect(await answer(open().cases)).toBe('sent')
  await until(cases.send('case-1', { type: 'AGAIN' }))
  expect((await until(cases.settled('case-1'))).pending).toMatchObject([{ callId: 'a' }])
  expect(await answer()).toBe('sent')
  await hosts.settle()
  expect((await until(cases.settled('case-1'))).pending).toMatchObject([{ callId: 'a' }])
  await until(cases.send('case-1', { type: 'QUIT' }))
  expect(await until(cases.settled('case-1'))).toMatchObject({ status: 'done' })
  expect([await answer(), executed]).toEqual(['sent', ['book']])
  const other = cases.send('case-1', { type: 'approve', callId: 'a' }, { key: 'second' })
  await expect(until(other)).rejects.toMatchObject({ code: 'unknown_call' })
})

test('a session has the keys of its agents, also if their state is left by another process', async () => {
  for (const dies of [false, true]) {
    const { hosts, shared, open, until } = setUp()
    const first = open()
    await until(first.cases.start('case-1', { input }))
    await until(first.cases.settled('case-1'))
    const steer = { type: 'steer', text: 'Ask for the year.' } as const
    await until(first.cases.send('case-1', steer, { key: 'year' }))
    await until(first.cases.settled('case-1'))
    if (dies) first.host.kill()
    const { cases } = dies ? open() : first
    await until(cases.send('case-1', { type: 'STOP' }))
    expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'stopped' })
    await until(cases.send('case-1', { type: 'AGAIN' }))
    const { pending } = await until(cases.settled('case-1'))
    await until(cases.send('case-1', { type: 'approve', callId: 'a' }, { key: 'yes' }))
    expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'triaged' })
    const [left, ended] = ['case-1:triage.1', pending[0]?.session ?? '']
    const heads = [left, ended].map((id) => shared.get(id)?.head)
    const read = shared.read.bind(shared)
    shared.read = (id, ...more) => {
      if (id !== 'case-1') throw new StoreError('corrupt_log', 'The log is damaged.', id)
      return read(id, ...more)
    }
    for (const key of ['year', 'yes']) await until(cases.send('case-1', steer, { key }))
    await hosts.settle()
    expect([left, ended].map((id) => shared.get(id)?.head)).toEqual(heads)
    const other = cases.send('case-1', steer, { key: 'other' })
    await expect(until(other)).rejects.toMatchObject({ code: 'unknown_call' })
  }
})

test('leaving a state cancels its agent, also if the process dies in between', async () => {
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
  expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'stopped' })
  expect(errors).toMatchObject([{ code: 'corrupt_log' }, { code: 'corrupt_log' }])
  shared.read = read
  expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'stopped' })
  await hosts.pass(1000)
  expect(shared.get('case-1:triage.1')?.summary?.state).toBe('CANCELLED')
})

/** A write at which the working process dies, before the store has it or before it learns of it. */
interface Kill {
  at: number
  isWritten: boolean
}

/** Plays a case whose processes die after some writes. Each next process restores it. The last one survives. */
async function playKills(kills: readonly Kill[], ending: 'approve' | 'STOP') {
  const { hosts, shared, executed, open, until } = setUp()
  const append = shared.append.bind(shared)
  let current = open()
  let [plan, ...later] = kills
  let writes = 0
  shared.append = (...args) => {
    writes += 1
    if (plan === undefined || writes < plan.at) return append(...args)
    const { isWritten } = plan
    ;[plan, ...later] = later
    writes = 0
    current.host.kill()
    return isWritten ? append(...args) : undefined
  }
  /** Repeats the work in the next process, if its process dies. */
  const survive = async <Value>(work: (cases: typeof current.cases) => Promise<Value>): Promise<Value> => {
    for (;;) {
      const outcome = { is: false }
      const end = (): void => void (outcome.is = true)
      const { cases, host } = current
      const result = cases.start('case-1', { input }).then(async () => work(cases))
      result.then(end, end)
      while (!outcome.is && !host.isDead) await hosts.pass(1000)
      if (outcome.is) return result
      current = open()
    }
  }
  await survive(async (cases) => {
    const { pending, value } = await cases.settled('case-1')
    const [call] = pending
    if (ending === 'STOP') {
      if (value === 'triaging') await cases.send('case-1', { type: 'STOP' }, { key: 'stop' })
    } else if (call) await cases.send('case-1', { type: 'approve', ...call }, { key: 'approve' })
    await cases.settled('case-1')
  })
  const settled = await survive(async (cases) => cases.settled('case-1'))
  // The process may still die while it cancels the agent.
  await hosts.pass(1000)
  plan = undefined
  const worker = open().cases.worker()
  await hosts.pass(65_000)
  await until(worker.drain())
  const { run } = await until(readSessionAt(shared, 'case-1:triage.1'))
  return { settled, child: run?.context, executed, errors: current.errors }
}

test('parent and child agree after every series of crashes', async () => {
  const kill = fc.record({ at: fc.integer({ min: 1, max: 8 }), isWritten: fc.boolean() })
  const plans = fc.record({
    kills: fc.array(kill, { maxLength: 4 }),
    ending: fc.constantFrom('approve' as const, 'STOP' as const),
  })
  await fc.assert(
    fc.asyncProperty(plans, async ({ kills, ending }) => {
      const { settled, child, executed, errors } = await playKills(kills, ending)
      expect([settled.value, settled.pending, errors]).toEqual([
        ending === 'STOP' ? 'stopped' : 'triaged',
        [],
        [],
      ])
      if (ending === 'STOP') expect([child?.state, executed]).toEqual(['CANCELLED', []])
      else expect(settled.context.answer).toBe(`${child?.state}: ${child?.output}`)
      expect(executed.length).toBeLessThanOrEqual(1)
    }),
    {
      numRuns: sampled(200),
      // The process dies with an unread cancel in the inbox of the agent.
      examples: [[{ kills: [1, 3, 3].map((at, i) => ({ at, isWritten: i === 0 })), ending: 'STOP' }]],
    },
  )
})

test('a fork at the last record continues from a copy of the running agent', async () => {
  const { hosts, shared, executed, open, until } = setUp()
  const { cases, errors } = open()
  await until(cases.start('case-1', { input }))
  await until(cases.settled('case-1'))
  await hosts.pass(1000)
  const fork = await until(cases.fork('case-1'))
  const { pending, value } = await until(cases.settled(fork))
  const [call] = pending
  expect([value, call?.session]).toEqual(['triaging', `${fork}:triage.1.1`])
  expect(shared.get(`${fork}:triage.1.1`)?.summary?.parent).toBe(fork)
  if (call) await until(cases.send(fork, { type: 'approve', ...call }))
  expect(await until(cases.settled(fork))).toMatchObject({ value: 'triaged', pending: [] })
  expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'triaging', pending: [{}] })
  const [own] = (await until(cases.settled('case-1'))).pending
  if (own) await until(cases.send('case-1', { type: 'approve', ...own }))
  expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'triaged' })
  expect(executed).toEqual(['book', 'book'])
  // The session of the agent contains an answer that came later than this record.
  await expect(until(cases.fork('case-1', { at: 1 }))).rejects.toMatchObject({ code: 'unsupported_fork' })
  expect([executed.length, errors]).toEqual([2, []])
})

test('a fork does not share the agent of its source, and its actor in once is in doubt', async () => {
  const { hosts, shared } = setUp()
  const { store, clock } = hosts.start(shared)
  const until = async <Value>(promise: Promise<Value>): Promise<Value> => hosts.until(promise)
  const agent = createAgent({
    model: createOneCallModel('book'),
    tools: [{ ...tool('book', () => undefined), needsApproval: true }],
    clock,
  })
  let paid = 0
  const machine = setup({
    types: { context: {} as { answer: string; code: string } },
    actors: { triage: agent.machine, pay: fromPromise(() => new Promise(() => (paid += 1))) },
  }).createMachine({
    id: 'both',
    type: 'parallel',
    context: { answer: '', code: '' },
    states: {
      desk: {
        initial: 'calm',
        states: {
          calm: { on: { ASK: 'triaging' } },
          triaging: {
            invoke: {
              src: 'triage',
              input: () => agent.createInput('My roof leaks.'),
              onDone: { target: 'triaged', actions: assign({ answer: ({ event }) => event.output.state }) },
            },
          },
          triaged: {},
        },
      },
      bank: {
        initial: 'paying',
        states: {
          paying: {
            invoke: {
              src: 'pay',
              onError: {
                target: 'doubtful',
                actions: assign({ code: ({ event }) => (event.error as { code: string }).code }),
              },
            },
          },
          doubtful: {},
        },
      },
    },
  })
  const cases = durable(machine, { store: store as never, clock, once: ['pay'] })
  await until(cases.start('b'))
  await until(cases.send('b', { type: 'ASK' }))
  await hosts.pass(5000)
  const output = { state: 'COMPLETED' }
  const answered = await until(cases.fork('b', { with: { actor: 'triage', output } }))
  expect(await until(cases.settled(answered))).toMatchObject({
    value: { desk: 'triaged', bank: 'doubtful' },
    context: { answer: 'COMPLETED', code: 'in_doubt' },
  })
  const earlier = await until(cases.fork('b', { at: 1, with: { type: 'ASK' } }))
  const { pending } = await until(cases.settled(earlier))
  expect(pending).toMatchObject([{ name: 'book', session: `${earlier}:triage.3` }])
  const children = shared.list({ children: true }).filter(({ summary }) => summary?.parent !== undefined)
  expect(children.map(({ id, summary }) => [id, summary?.parent])).toEqual(
    expect.arrayContaining([
      ['b:triage.2', 'b'],
      [`${earlier}:triage.3`, earlier],
    ]),
  )
  expect([children.length, paid]).toEqual([2, 1])
})

test('deleting a session deletes the sessions of its agents', async () => {
  const { shared, open, until } = setUp()
  const { cases } = open()
  await until(cases.start('case-1', { input }))
  await until(cases.settled('case-1'))
  expect(await until(cases.delete('case-1'))).toBe(true)
  expect(shared.list({ children: true })).toEqual([])
})

describe('a question that expires', () => {
  const minute = 60_000
  const approvals = { expiresMs: 15 * minute }

  it.each([
    ['an hour ahead', 60 * minute],
    ['an hour behind', -60 * minute],
  ])('ends in time in another process, whose clock is %s', async (_, skew) => {
    const { hosts, executed, open, until } = setUp({ approvals })
    const first = open()
    await until(first.cases.start('case-1', { input }))
    await until(first.cases.settled('case-1'))
    first.host.kill()
    const { cases, errors } = open(skew)
    await hosts.pass(10 * minute)
    expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'triaging', pending: [{}] })
    await hosts.pass(6 * minute)
    expect(await until(cases.settled('case-1'))).toMatchObject({ value: 'triaged', pending: [] })
    expect([executed, errors]).toEqual([[], []])
  })
})

test('a fork that fails leaves no copy of an agent', async () => {
  const { hosts, shared } = setUp()
  const { store, clock } = hosts.start(shared)
  const until = async <Value>(promise: Promise<Value>): Promise<Value> => hosts.until(promise)
  const createDesk = () =>
    createAgent({
      model: createOneCallModel('book'),
      tools: [{ ...tool('book', () => undefined), needsApproval: true }],
      clock,
    })
  const [one, two] = [createDesk(), createDesk()]
  const machine = setup({ actors: { one: one.machine, two: two.machine } }).createMachine({
    id: 'desks',
    type: 'parallel',
    states: {
      left: { invoke: { id: 'left', src: 'one', input: () => one.createInput('Go.') } },
      right: { invoke: { id: 'right', src: 'two', input: () => two.createInput('Go.') } },
    },
  })
  const copies: string[] = []
  let fails = false
  const inner = store as never as typeof shared
  const append = ((lease: { sessionId: string }, ...rest: never[]) => {
    if (fails && copies.length > 0) throw new StoreError('store_unavailable', 'The disk is full.', 'append')
    if (fails) copies.push(lease.sessionId)
    return (inner.append as (...args: unknown[]) => unknown)(lease, ...rest)
  }) as never
  const sessions = durable(machine, { store: { ...inner, append } as never, clock })
  await until(sessions.start('d'))
  expect((await until(sessions.settled('d'))).pending).toHaveLength(2)
  const before = shared.list({ children: true }).length
  fails = true
  await expect(until(sessions.fork('d'))).rejects.toMatchObject({ code: 'store_unavailable' })
  expect(copies).toHaveLength(1)
  expect(shared.list({ children: true })).toHaveLength(before)
})
