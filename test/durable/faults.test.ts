import { jest } from '@jest/globals'
import { assign, createMachine, fromPromise, log, sendTo, setup } from 'xstate'
import { memoryStore } from '../../src/index.js'
import { durable, idempotencyKey } from '../../src/durable/index.js'
import { type Host, Hosts } from '../fleet/host-clocks.js'
import { claimMachine } from './claim.js'

const start = Date.parse('2026-05-04T06:00:00Z')

function setUp() {
  const hosts = new Hosts(start)
  const shared = memoryStore({ now: () => hosts.now })
  const open = () => {
    const host: Host = hosts.start(shared)
    return { host, parts: { store: host.store as never, clock: host.clock } }
  }
  const until = async <Value>(promise: Promise<Value>): Promise<Value> => hosts.until(promise)
  return { hosts, shared, open, until }
}

const input = { amount: 900 }
const circle: unknown[] = []
circle.push(circle)
const approve = { type: 'APPROVE', by: 'ann' } as const

test('an actor in once whose output is not JSON is in doubt', async () => {
  const { open, until, shared } = setUp()
  const paid: string[] = []
  const claims = durable(claimMachine, {
    ...open().parts,
    once: ['pay'],
    actors: {
      pay: fromPromise<string>(async ({ self }) => {
        paid.push(idempotencyKey(self))
        return new Date(0) as never
      }),
      askBank: fromPromise<string | null>(async () => (paid.length > 0 ? 'p1' : null)),
    },
  })
  await until(claims.start('c', { input }))
  await until(claims.send('c', approve))
  expect(await until(claims.settled('c'))).toMatchObject({ value: 'paid', context: { payment: 'p1' } })
  expect(paid).toEqual(['c:pay.2'])
  expect(JSON.parse(shared.read('c')[2]?.data ?? '{}').event.error).toMatchObject({
    code: 'in_doubt',
    cause: { code: 'not_json', message: expect.stringContaining("the output of 'pay' is a Date") },
  })
})

test('a value whose parts are shared too often is refused', async () => {
  const { open, until, shared } = setUp()
  const claims = durable(claimMachine, open().parts)
  let shape: unknown = 'x'
  for (let i = 0; i < 100; i += 1) shape = [shape, shape]
  await expect(until(claims.start('c', { input: shape } as never))).rejects.toMatchObject({
    code: 'not_json',
  })
  expect(shared.get('c')).toBeNull()
})

test('an actor of a process that was suspended and lost the session is aborted', async () => {
  const { hosts, open, until } = setUp()
  const first = open()
  let signal: AbortSignal | undefined
  const create = (parts: object, pay: (signal: AbortSignal) => Promise<string>) =>
    durable(claimMachine, {
      ...(parts as ReturnType<typeof open>['parts']),
      actors: { pay: fromPromise<string>(async ({ signal: input }) => pay(input)) },
    })
  const claims = create(first.parts, async (input) => {
    signal = input
    return new Promise(() => undefined)
  })
  await until(claims.start('c', { input }))
  await until(claims.send('c', approve))
  await hosts.settle()
  first.host.suspend()
  const settled = claims.settled('c').catch((error: unknown) => error)
  await hosts.pass(31_000)
  const second = create(open().parts, async () => 'p2')
  expect(await until(second.settled('c'))).toMatchObject({ value: 'paid' })
  expect(signal?.aborted).toBe(false)
  first.host.wake()
  await hosts.settleUntil(() => signal?.aborted === true)
  expect(await until(settled)).toMatchObject({ value: 'paid' })
})

test('an endless chain of events that a machine sends itself does not block other events', async () => {
  const { hosts, open, until } = setUp()
  const machine = setup({}).createMachine({
    id: 'loop',
    initial: 'on',
    states: {
      on: {
        entry: sendTo(({ self }) => self, { type: 'TICK' }),
        on: { TICK: { actions: sendTo(({ self }) => self, { type: 'TICK' }) }, STOP: 'off' },
        after: { 5000: 'late' },
      },
      late: {},
      off: {},
    },
  })
  const loops = durable(machine, open().parts)
  await until(loops.start('l'))
  const sent = loops.send('l', { type: 'STOP' })
  await hosts.pass(2000)
  await until(sent)
  expect(await until(loops.settled('l'))).toMatchObject({ value: 'off' })
  await until(loops.start('m'))
  await hosts.pass(6000)
  await hosts.settleUntil(async () => (await loops.replay('m')).value === 'late')
})

test('the error of a custom store is typed', async () => {
  const { hosts, open, until, shared } = setUp()
  const claims = durable(claimMachine, open().parts)
  await until(claims.start('c', { input }))
  await until(claims.settled('c'))
  await until(claims.start('f', { input }))
  await until(claims.settled('f'))
  const broken = {
    append: [shared, 'append'],
    acquire: [shared, 'acquire'],
    read: [shared, 'read'],
    list: [shared, 'list'],
    get: [shared, 'get'],
    'inbox.put': [shared.inbox, 'put'],
    'inbox.read': [shared.inbox, 'read'],
  } as const
  const calls = {
    start: async () => claims.start('d', { input }),
    send: async () => claims.send('c', { type: 'NOTE', text: 'a' }),
    settled: async () => claims.settled('c'),
    replay: async () => claims.replay('c', 1),
    fork: async () => claims.fork('c'),
    delete: async () => claims.delete('f'),
    list: async () => claims.list().next(),
  }
  const failed: string[] = []
  for (const [method, [part, key]] of Object.entries(broken)) {
    const fails = {
      [key]: () => {
        throw new RangeError('The disk is on fire.')
      },
    }
    const works = { [key]: Reflect.get(part, key) }
    for (const [call, work] of Object.entries(calls)) {
      Object.assign(part, fails)
      const outcome = work().then(
        () => null,
        (error: unknown) => error,
      )
      await hosts.settle()
      Object.assign(part, works)
      const error = await until(outcome)
      await until(claims.settled('c'))
      if (error === null) continue
      failed.push(`${method} ${call}`)
      expect([method, call, error]).toMatchObject([
        method,
        call,
        { code: 'store_unavailable', message: expect.stringContaining('The disk is on fire.') },
      ])
    }
  }
  expect(failed).toEqual(
    expect.arrayContaining(['read send', 'read settled', 'inbox.put send', 'get delete', 'list list']),
  )
})

test('a store that does not answer is named, and settled keeps its time limit', async () => {
  const { open, until, shared } = setUp()
  const { parts } = open()
  const hung = { is: false }
  const store = new Proxy(shared, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key)
      return key === 'acquire' && hung.is ? async () => new Promise(() => undefined) : value
    },
  })
  const claims = durable(claimMachine, { ...parts, store })
  await until(claims.start('c', { input }))
  await until(claims.settled('c'))
  hung.is = true
  await expect(until(claims.settled('c', { timeoutMs: 2000 }))).rejects.toMatchObject({ code: 'not_settled' })
  await expect(until(claims.settled('c'))).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('acquire()'),
  })
})

test.each([
  ['contains itself', () => circle],
  ['is too deep', () => JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) as unknown],
  [
    'has a getter that throws',
    () => ({
      get part() {
        throw new Error('No part.')
      },
    }),
  ],
])('a context that %s is refused, at the start and in an event', async (_name, create) => {
  const machine = setup({ types: { context: {} as { value: unknown }, input: {} as boolean } }).createMachine(
    {
      id: 'odd',
      context: ({ input }) => ({ value: input ? create() : null }),
      on: { GO: { actions: assign({ value: create }) } },
    },
  )
  const { open, until, shared } = setUp()
  const sessions = durable(machine, { ...open().parts, onError: () => undefined })
  const refused = { name: 'UsageError', code: 'not_json' }
  await expect(until(sessions.start('a', { input: true }))).rejects.toMatchObject(refused)
  expect(shared.get('a')).toBeNull()
  await until(sessions.start('b', { input: false }))
  await until(sessions.send('b', { type: 'GO' }))
  await expect(until(sessions.settled('b'))).rejects.toMatchObject(refused)
})

test('a session whose last record is damaged is replayed and forked before it, and deleted', async () => {
  const { open, until, shared } = setUp()
  const { parts } = open()
  const claims = durable(claimMachine, { ...parts, onError: () => undefined })
  await until(claims.start('c', { input }))
  await until(claims.send('c', { type: 'NOTE', text: 'lost' }))
  await until(claims.settled('c'))
  const read = shared.read.bind(shared)
  shared.read = (id, range) =>
    read(id, range).map((record) =>
      id === 'c' && record.seq === 2 ? { ...record, data: '{' } : record,
    ) as never
  const refused = { code: 'corrupt_log', message: expect.stringContaining("its fork('c', { at: 1 })") }
  await expect(until(claims.settled('c'))).rejects.toMatchObject(refused)
  expect(await until(claims.replay('c', 1))).toMatchObject({ value: 'reviewing', record: 1 })
  const fork = await until(claims.fork('c', { at: 1 }))
  expect(await until(claims.settled(fork))).toMatchObject({ value: 'reviewing', context: { notes: [] } })
  expect(await until(claims.delete('c'))).toBe(true)
  expect(shared.get('c')).toBeNull()
})

test('the rejection of an async action goes to onError', async () => {
  const errors: unknown[] = []
  const machine = setup({}).createMachine({
    id: 'async',
    on: { GO: { actions: async () => Promise.reject(new Error('The mail server is down.')) } },
  })
  const { open, until } = setUp()
  const onError = (error: unknown): void => void errors.push(error)
  const sessions = durable(machine, { ...open().parts, onError })
  await until(sessions.start('a'))
  await until(sessions.send('a', { type: 'GO' }))
  expect(await until(sessions.settled('a'))).toMatchObject({ status: 'active', head: 2 })
  expect(errors).toEqual([new Error('The mail server is down.')])
})

test('an action that logs, and one that sends an event to its machine later, have their effect', async () => {
  const { hosts, open, shared, until } = setUp()
  let later: () => void = () => undefined
  const machine = setup({ types: { context: {} as { count: number } } }).createMachine({
    id: 'late',
    context: { count: 0 },
    on: {
      GO: {
        actions: [log('The machine goes.'), ({ self }) => void (later = () => self.send({ type: 'COUNT' }))],
      },
      COUNT: { actions: assign({ count: ({ context }) => context.count + 1 }) },
    },
  })
  const print = jest.spyOn(console, 'log').mockImplementation(() => undefined)
  const sessions = durable(machine, open().parts)
  await until(sessions.start('l'))
  await until(sessions.send('l', { type: 'GO' }))
  await until(sessions.settled('l'))
  expect(print.mock.calls).toEqual([['The machine goes.']])
  print.mockRestore()
  later()
  await hosts.settleUntil(() => shared.get('l')?.head === 3)
  expect(await until(sessions.settled('l'))).toMatchObject({ context: { count: 1 }, head: 3 })
})

test('a worker that cannot open a session with an unread event tries again after a lease', async () => {
  const { hosts, open, until } = setUp()
  const create = (state: string, onError: (error: unknown) => void) => {
    const on = { GO: { actions: () => undefined } }
    const machine = createMachine({ id: 'm', initial: state, states: { [state]: { on } } })
    return durable(machine, { ...open().parts, onError })
  }
  const old = create('before', () => undefined)
  await until(old.start('s'))
  await until(old.settled('s'))
  const errors: unknown[] = []
  const changed = create('after', (error) => errors.push(error))
  const worker = changed.worker()
  await until(changed.send('s', { type: 'GO' }))
  await hosts.pass(65_000)
  expect(new Set(errors.map((error) => (error as { code: string }).code))).toEqual(new Set(['chart_changed']))
  // Not at each of the 65 polls.
  expect(errors.length).toBeGreaterThan(1)
  expect(errors.length).toBeLessThan(5)
  await until(worker.drain())
  expect(await until(old.settled('s'))).toMatchObject({ value: 'before', head: 2 })
})

const collecting = setup({
  types: { events: {} as { type: 'E'; n: number }, context: {} as { got: number[] } },
  actions: { open: () => undefined },
}).createMachine({
  id: 'collecting',
  context: { got: [] },
  initial: 'open',
  states: {
    open: {
      entry: 'open',
      on: { E: { actions: assign({ got: ({ context, event }) => [...context.got, event.n] }) } },
    },
  },
})

/** A store whose reads take turns in being slow. */
function unsteady({ store, clock }: { store: never; clock: Host['clock'] }) {
  const inner = store as ReturnType<typeof memoryStore>
  let reads = 0
  const read = async (...args: Parameters<typeof inner.read>) => {
    const ms = (reads += 1) % 2 === 1 ? 100 : 1
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
    return inner.read(...args)
  }
  return { store: { ...inner, read } as never, clock }
}

test('events keep their order across several objects for one store', async () => {
  const { open, until } = setUp()
  const parts = unsteady(open().parts)
  const first = durable(collecting, parts)
  await until(first.start('c'))
  await until(first.settled('c'))
  const numbers = [1, 2, 3, 4, 5, 6]
  await until(Promise.all(numbers.map((n) => durable(collecting, parts).send('c', { type: 'E', n }))))
  expect((await until(first.settled('c'))).context.got).toEqual(numbers)
})

test('events that a machine sends itself after its session was released keep their order', async () => {
  const { hosts, open: openHost, until } = setUp()
  const parts = unsteady(openHost().parts)
  const errors: unknown[] = []
  const numbers = [1, 2, 3, 4, 5, 6]
  let later = (): void => undefined
  const open = ({ self }: { self: { send(event: { type: 'E'; n: number }): void } }): void => {
    later = () => {
      for (const n of numbers) self.send({ type: 'E', n })
    }
  }
  const machine = collecting.provide({ actions: { open } })
  const sessions = durable(machine, { ...parts, onError: (error) => errors.push(error) })
  await until(sessions.start('c'))
  await until(sessions.settled('c'))
  await hosts.pass(1000)
  later()
  await hosts.pass(5000)
  expect((await until(sessions.settled('c'))).context.got).toEqual(numbers)
  expect(errors).toEqual([])
})

test('a worker continues a session whose first start failed', async () => {
  const { hosts, open, until } = setUp()
  const picky = setup({ types: { context: {} as { n: number } } }).createMachine({
    id: 'picky',
    context: ({ input }) => {
      if (input === 'bad') throw new Error('This input is bad.')
      return { n: 0 }
    },
    on: { E: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
  })
  const [working, other] = [durable(picky, open().parts), durable(picky, open().parts)]
  const worker = working.worker({ pollMs: 1000 })
  await expect(until(working.start('c', { input: 'bad' }))).rejects.toMatchObject({
    code: 'transition_failed',
  })
  await until(other.start('c', { input: 'good' }))
  await until(other.settled('c'))
  await until(other.worker().drain())
  await until(other.send('c', { type: 'E' }))
  await hosts.pass(3000)
  expect((await until(other.replay('c'))).context).toEqual({ n: 1 })
  await until(worker.drain())
})

test('settled keeps its time limit over a store that does not answer', async () => {
  const { hosts, open, until } = setUp()
  const { store, clock } = open().parts
  let hangs = false
  const inner = store as ReturnType<typeof memoryStore>
  const read = (...args: Parameters<typeof inner.read>) =>
    hangs ? new Promise<never>(() => undefined) : inner.read(...args)
  const sessions = durable(collecting, { store: { ...inner, read } as never, clock })
  await until(sessions.start('c'))
  await until(sessions.settled('c'))
  hangs = true
  const { now } = hosts
  await expect(until(sessions.settled('c', { timeoutMs: 1000 }))).rejects.toMatchObject({
    code: 'not_settled',
  })
  expect(hosts.now - now).toBeLessThan(10_000)
})
