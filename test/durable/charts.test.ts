import { type AnyStateMachine, assign, createMachine, fromPromise, raise, sendTo, setup } from 'xstate'
import { type Agent, createAgent, memoryStore } from '../../src/index.js'
import { durable, type DurableMachine, type DurableOptions } from '../../src/durable/index.js'
import { createOneCallModel } from '../support/manual-model.js'
import { tool } from '../support/tools.js'
import { Hosts } from '../fleet/host-clocks.js'

function setUp() {
  const hosts = new Hosts(Date.parse('2026-05-04T06:00:00Z'))
  const shared = memoryStore({ now: () => hosts.now })
  const open = <Machine extends AnyStateMachine>(
    machine: Machine,
    options: Omit<DurableOptions<Machine>, 'store'> = {},
  ): DurableMachine<Machine> => {
    const { store, clock } = hosts.start(shared)
    return durable(machine, { store: store as never, clock, onError: () => undefined, ...options })
  }
  /** A session that its process leaves while an actor runs. */
  const leave = async (machine: AnyStateMachine, id: string): Promise<void> => {
    const host = hosts.start(shared)
    const first = durable(machine, { store: host.store as never, clock: host.clock })
    await hosts.until(first.start(id))
    host.kill()
    await hosts.pass(31_000)
  }
  const until = async <Value>(promise: Promise<Value>): Promise<Value> => hosts.until(promise)
  return { hosts, shared, open, until, leave }
}

test('a history state returns to its last state, also if ids contain dots', async () => {
  const { open, until } = setUp()
  const machine = createMachine({
    id: 'shop.order',
    initial: 'cart',
    states: {
      cart: {
        initial: 'empty',
        states: { empty: { on: { ADD: 'full' } }, full: { id: 'full.cart' }, last: { type: 'history' } },
        on: { LEAVE: 'away' },
      },
      away: { on: { RETURN: 'cart.last' } },
    },
  })
  const orders = open(machine)
  await until(orders.start('o'))
  for (const type of ['ADD', 'LEAVE', 'RETURN']) await until(orders.send('o', { type }))
  expect(await until(orders.settled('o'))).toMatchObject({ value: { cart: 'full' } })
})

test('a context that looks like an actor of XState stays data', async () => {
  const { open, until } = setUp()
  const machine = setup({ types: { context: {} as { data: unknown[] } } }).createMachine({
    id: 'box',
    context: { data: [] },
    on: { PUT: { actions: assign({ data: ({ context, event }) => [...context.data, event['data']] }) } },
  })
  const boxes = open(machine)
  const data = { xstate$$type: 1, id: 'nobody' }
  await until(boxes.start('b'))
  for (const more of [data, 2]) await until(boxes.send('b', { type: 'PUT', data: more }))
  expect(await until(boxes.settled('b'))).toMatchObject({ context: { data: [data, 2] } })
})

test('a record has the event as it was sent, also if the chart modifies it', async () => {
  const { open, until } = setUp()
  const machine = createMachine({
    id: 'box',
    on: { PUT: { actions: assign(({ event }) => void (event['list'] as string[]).push('b')) } },
  })
  const boxes = open(machine)
  await until(boxes.start('b'))
  await until(boxes.send('b', { type: 'PUT', list: ['a'] }))
  await until(boxes.settled('b'))
  expect(await until(boxes.replay('b'))).toMatchObject({ event: { list: ['a'] } })
})

test('a delay that is not a number raises the event once, and NaN is refused', async () => {
  const { hosts, open, until, shared } = setUp()
  const create = (delay: unknown) =>
    setup({
      types: { context: {} as { rings: number } },
      delays: { pause: () => delay as number },
    }).createMachine({
      id: 'bell',
      context: { rings: 0 },
      entry: raise({ type: 'RING' }, { delay: 'pause' }),
      on: { RING: { actions: assign({ rings: ({ context }) => context.rings + 1 }) } },
    })
  const countRings = async (delay: unknown): Promise<number> => {
    const bells = open(create(delay))
    const id = `b${String(delay)}`
    await until(bells.start(id))
    await hosts.pass(2000)
    return (await until(bells.settled(id))).context.rings
  }
  for (const delay of ['1000', null, -5, 1000]) expect([delay, await countRings(delay)]).toEqual([delay, 1])
  await expect(until(open(create(NaN)).start('b'))).rejects.toMatchObject({
    code: 'transition_failed',
    message: expect.stringContaining('NaN'),
  })
  expect(shared.get('b')).toBeNull()
})

test('two actors with one id are refused if they can run at the same time', async () => {
  const { open, until } = setUp()
  const ask = fromPromise(async () => 1)
  const asks = { initial: 'a', states: { a: { invoke: { id: 'ask', src: 'ask', onDone: 'b' } }, b: {} } }
  const twice = [
    { id: 'm', type: 'parallel', states: { one: asks, two: asks } },
    { id: 'm', ...asks, invoke: { id: 'ask', src: 'ask' } },
    { id: 'm', invoke: [1, 2].map(() => ({ id: 'ask', src: 'ask' })) },
  ] as const
  for (const config of twice)
    expect(() => open(createMachine(config as never), { actors: { ask } })).toThrow(
      expect.objectContaining({ code: 'unsupported_actor', subject: 'ask' }),
    )
  const inTurn = setup({ actors: { ask } }).createMachine({
    id: 'turns',
    initial: 'a',
    states: {
      a: { invoke: { id: 'ask', src: 'ask', onDone: 'b' } },
      b: { invoke: { id: 'ask', src: 'ask', onDone: 'c' } },
      c: {},
    },
  })
  const turns = open(inTurn)
  await until(turns.start('t'))
  expect(await until(turns.settled('t'))).toMatchObject({ value: 'c' })
})

test('an actor receives its input as it is stored', async () => {
  const { open, until } = setUp()
  const seen: unknown[] = []
  const machine = setup({
    actors: { count: fromPromise<void, unknown>(async ({ input }) => void seen.push(input)) },
  }).createMachine({ id: 'm', invoke: { src: 'count', input: { left: undefined, zero: -0 } } })
  const sessions = open(machine)
  await until(sessions.start('s'))
  await until(sessions.settled('s'))
  expect(seen).toStrictEqual([{ zero: 0 }])
})

test('a start is not refused because of the input of another start', async () => {
  const { open, until } = setUp()
  const machine = setup({ types: { input: {} as { amount: number } } }).createMachine({
    id: 'm',
    context: ({ input }) => {
      if (input.amount < 0) throw new Error('Too little.')
      return {}
    },
  })
  const sessions = open(machine)
  const starts = [-1, 5].map(async (amount) => sessions.start('s', { input: { amount } }))
  expect(await until(Promise.allSettled(starts))).toMatchObject([
    { status: 'rejected', reason: { code: 'transition_failed' } },
    { status: 'fulfilled' },
  ])
})

test('an event for an actor that has ended is not an error', async () => {
  const { open, until } = setUp()
  const machine = setup({ actors: { count: fromPromise(async () => 1) } }).createMachine({
    id: 'm',
    initial: 'open',
    states: {
      open: {
        invoke: { id: 'count', src: 'count' },
        exit: sendTo('count', { type: 'CANCEL' }),
        on: { STOP: 'closed' },
      },
      closed: {},
    },
  })
  const sessions = open(machine)
  await until(sessions.start('s'))
  await until(sessions.settled('s'))
  await until(sessions.send('s', { type: 'STOP' }))
  expect(await until(sessions.settled('s'))).toMatchObject({ value: 'closed' })
})

test('an agent receives the events that its own state sends on entry', async () => {
  const { open, until } = setUp()
  const book = { ...tool('book', () => undefined), needsApproval: true }
  const agent = createAgent({ model: createOneCallModel('book'), tools: [book] })
  const machine = setup({
    types: { context: {} as { state: string } },
    actors: { agent: agent.machine },
  }).createMachine({
    id: 'm',
    context: { state: '' },
    initial: 'asking',
    states: {
      asking: {
        entry: sendTo('agent', { type: 'CANCEL', why: 'Not today.' } as never),
        invoke: {
          id: 'agent',
          src: 'agent',
          input: () => agent.createInput('Book a table.'),
          onDone: { target: 'done', actions: assign({ state: ({ event }) => event.output.state }) },
        },
      },
      done: {},
    },
  })
  const sessions = open(machine)
  await until(sessions.start('s'))
  expect(await until(sessions.settled('s'))).toMatchObject({ value: 'done', context: { state: 'CANCELLED' } })
})

test('answers reach agents even if the chart has a wildcard, and names of agents do not collide', async () => {
  const { open, until } = setUp()
  const executed: string[] = []
  const create = (): Agent =>
    createAgent({
      model: createOneCallModel('book'),
      tools: [{ ...tool('book', () => void executed.push('book')), needsApproval: true }],
    })
  const [one, two] = [create(), create()]
  const ask = (agent: Agent, src: string) => ({
    initial: 'asking',
    states: {
      asking: { invoke: { src, input: () => agent.createInput('Book a table.'), onDone: 'done' } },
      done: {},
    },
  })
  const machine = createMachine({
    id: 'm',
    type: 'parallel',
    states: { one: ask(one, 'a b'), two: ask(two, 'a-b') },
    on: { '*': { actions: () => undefined } },
  })
  const sessions = open(machine, { actors: { 'a b': one, 'a-b': two } })
  await until(sessions.start('s'))
  const { pending } = await until(sessions.settled('s'))
  for (const call of pending) await until(sessions.send('s', { type: 'approve', ...call }))
  expect(await until(sessions.settled('s'))).toMatchObject({ value: { one: 'done', two: 'done' } })
  expect(executed).toEqual(['book', 'book'])
})

test('an outcome that waits for a corrected chart is dropped if its state is exited first', async () => {
  const { hosts, open, until } = setUp()
  const create = (isBroken: boolean) =>
    setup({
      actors: { count: fromPromise(async () => 1), wait: fromPromise(() => new Promise(() => undefined)) },
    }).createMachine({
      id: 'm',
      initial: 'counting',
      states: {
        counting: {
          invoke: {
            id: 'work',
            src: 'count',
            onDone: {
              target: 'counted',
              actions: assign(() => {
                if (isBroken) throw new Error('Not yet.')
                return {}
              }),
            },
          },
          after: { 10_000: 'waiting' },
        },
        waiting: { invoke: { id: 'work', src: 'wait', onDone: 'counted' } },
        counted: {},
      },
    })
  const broken = open(create(true))
  await until(broken.start('s'))
  await expect(until(broken.settled('s'))).rejects.toMatchObject({ code: 'transition_failed' })
  await hosts.pass(20_000)
  const settled = open(create(false)).settled('s', { timeoutMs: 5000 })
  await expect(until(settled)).rejects.toMatchObject({
    code: 'not_settled',
    message: expect.stringContaining('Its state is waiting'),
  })
})

describe('a session whose state does not fit a changed chart', () => {
  const pay = fromPromise<string>(() => new Promise(() => undefined))
  const paying = { initial: 'p', states: { p: { invoke: { src: 'pay' } } } }
  const v1 = createMachine({ id: 'm', ...paying }).provide({ actors: { pay } })

  it.each([
    [
      'a state has substates',
      { p: { initial: 'q', states: { q: { invoke: { src: 'pay' } } } } },
      /'m.p' needs one of .*q/,
    ],
    [
      'a state has regions',
      { p: { type: 'parallel', states: { q: {}, r: {} } } },
      /'m.p' needs all of .*q, r/,
    ],
    ['a state is missing', { q: {} }, /the state 'p' is missing/],
    ['an actor has another id', { p: { invoke: { id: 'x', src: 'pay' } } }, /id: '0.m.p', src: 'pay'/],
    ['an actor has no state', { p: {} }, /id: '0.m.p', src: 'pay'/],
  ])('does not open if %s', async (_, states, message) => {
    const { open, until, leave } = setUp()
    await leave(v1, 's')
    const [initial] = Object.keys(states)
    const machine = createMachine({ id: 'm', initial, states } as never) as unknown as typeof v1
    const changed = open(machine.provide({ actors: { pay } }))
    await expect(until(changed.settled('s'))).rejects.toMatchObject({
      code: 'chart_changed',
      message: expect.stringMatching(message),
    })
  })

  it.each([
    ['throws', () => Promise.reject(new Error('No.')), /failed for session 's': No\./],
    ['returns nothing', () => undefined, /did not return an object/],
    ['returns a string', () => 'p', /did not return an object/],
    ['returns no state', () => ({ value: null }), /'m' needs one of its states p/],
    ['returns two states', () => ({ value: { p: {}, q: {} } }), /the state 'q' is missing/],
    ['leaves the state of a running actor', () => ({ value: 'idle' }), /id: '0.m.p', src: 'pay'/],
  ])('does not open if migrate %s', async (_, migrate, message) => {
    const { open, until, shared, leave } = setUp()
    await leave(v1, 's')
    const machine = createMachine({
      id: 'm',
      version: '2',
      ...paying,
      ...(message.source.includes('0.m.p') && { states: { ...paying.states, idle: {} } }),
    })
    const changed = open(machine.provide({ actors: { pay } }), { migrate: migrate as never })
    await expect(until(changed.settled('s'))).rejects.toMatchObject({
      code: 'chart_changed',
      message: expect.stringMatching(message),
    })
    expect(shared.get('s')?.head).toBe(1)
  })

  it('opens with the state and context that migrate returns, and nothing else', async () => {
    const { open, until } = setUp()
    const first = open(createMachine({ id: 'm', initial: 'p', states: { p: {} } }))
    await until(first.start('s'))
    await until(first.settled('s'))
    const machine = createMachine({ id: 'm', version: '2', initial: 'p', states: { p: {}, q: {} } })
    const migrate = () => ({ value: 'q', context: { n: 1 }, status: 'done', actors: 5 })
    const settled = open(machine, { migrate: migrate as never }).settled('s')
    expect(await until(settled)).toMatchObject({ status: 'active', value: 'q', context: { n: 1 } })
  })

  it.each([
    ['a state with an actor', { invoke: { src: 'pay' } }, /'m\.q' has an actor/],
    ['a state with a delay', { after: { 1000: '#m.idle' } }, /'m\.q' has a delay/],
    ['a state with an eventless transition', { always: '#m.idle' }, /'m\.q' has an eventless transition/],
    ['a final state', { type: 'final' }, /'m\.q' is final/],
  ])('does not open if migrate moves to %s, because states are not entered', async (_, state, message) => {
    const { open, until, shared } = setUp()
    const first = open(createMachine({ id: 'm', initial: 'p', states: { p: {} } }))
    await until(first.start('s'))
    await until(first.settled('s'))
    const machine = createMachine({
      id: 'm',
      version: '2',
      initial: 'idle',
      states: { idle: {}, q: state, r: { initial: 'q', states: { q: state } } },
    } as never).provide({ actors: { pay } as never })
    for (const value of ['q', { r: 'q' }]) {
      const changed = open(machine, { migrate: () => ({ value }) })
      await expect(until(changed.settled('s'))).rejects.toMatchObject({
        code: 'chart_changed',
        message: expect.stringMatching(
          new RegExp(message.source.replace('q', typeof value === 'string' ? 'q' : 'r\\.q')),
        ),
      })
    }
    expect(shared.get('s')?.head).toBe(1)
  })

  it('opens with the delay of a renamed state that has its old id', async () => {
    const { hosts, open, until } = setUp()
    const states = (name: string, more: object) =>
      ({
        type: 'parallel',
        states: {
          side: { invoke: { id: 'side', src: 'count' } },
          main: { initial: name, states: { [name]: { after: { 5000: 'done' }, ...more }, done: {} } },
        },
      }) as const
    const count = fromPromise(async () => 1)
    const provide = (machine: AnyStateMachine) => machine.provide({ actors: { count } as never })
    const first = open(provide(createMachine({ id: 'm', ...states('before', {}) } as never)))
    await until(first.start('s'))
    await until(first.settled('s'))
    const renamed = createMachine({ id: 'm', ...states('now', { id: 'm.main.before' }) } as never)
    const migrate = () => ({ value: { side: {}, main: 'now' } })
    const changed = open(provide(renamed), { migrate })
    expect(await until(changed.settled('s'))).toMatchObject({ value: { main: 'now' } })
    await hosts.pass(6000)
    expect(await until(changed.settled('s'))).toMatchObject({ value: { main: 'done' } })
  })
})
