import { assign, cancel, createMachine, fromCallback, fromPromise, raise, setup } from 'xstate'
import { createAgent, defineAgents, memoryStore, runSession, StoreError } from '../../src/index.js'
import { createWaker, sendAll } from '../../src/fleet/index.js'
import { openMachineRecord } from '../../src/core/sessions/log/machine-record.js'
import { createMachineHarness, pathOf, readSessionCases, replay } from '../../src/testing/index.js'
import { createOneCallModel } from '../support/manual-model.js'
import { faults } from '../support/record-faults.js'
import { durable, idempotencyKey } from '../../src/durable/index.js'
import { type Host, Hosts } from '../fleet/host-clocks.js'
import { Bank, claimMachine, day } from './claim.js'
import { tallyMachine } from './tally.js'

const start = Date.parse('2026-05-04T06:00:00Z')

function setUp({ pay }: { pay?: (key: string) => Promise<string> | string } = {}) {
  const hosts = new Hosts(start)
  const shared = memoryStore({ now: () => hosts.now })
  const bank = new Bank()
  const open = () => {
    const host: Host = hosts.start(shared)
    const errors: unknown[] = []
    const started: string[] = []
    const claims = durable(claimMachine, {
      store: host.store as never,
      clock: host.clock,
      once: ['pay'],
      onError: (error) => errors.push(error),
      actors: {
        pay: fromPromise<string, { amount: number }>(async ({ input, self }) => {
          const key = idempotencyKey(self)
          started.push(key)
          return pay ? pay(key) : bank.pay(key, input.amount)
        }),
        askBank: fromPromise<string | null, { claim: string }>(async ({ self }) => {
          started.push(idempotencyKey(self))
          return bank.payments.length > 0 ? 'p1' : null
        }),
      },
    })
    return { host, claims, errors, started }
  }
  const until = async <Value>(promise: Promise<Value>): Promise<Value> => hosts.until(promise)
  return { hosts, shared, bank, open, until }
}

const input = { amount: 900 }
const approve = { type: 'APPROVE', by: 'ann' } as const

test('a session starts, accepts events, runs its actor, and ends', async () => {
  const { bank, open, until, shared } = setUp()
  const { claims, started, errors } = open()
  await until(claims.start('claim-17', { input }))
  expect(await until(claims.settled('claim-17'))).toMatchObject({
    status: 'active',
    value: 'reviewing',
    context: input,
  })
  await until(claims.send('claim-17', { type: 'NOTE', text: 'Photo is blurred.' }))
  await until(claims.send('claim-17', approve))
  expect(await until(claims.settled('claim-17'))).toMatchObject({
    status: 'done',
    value: 'paid',
    context: { notes: ['Photo is blurred.'], payment: 'p1' },
    output: { payment: 'p1' },
  })
  expect(bank.payments).toEqual([{ key: 'claim-17:pay.3', amount: 900 }])
  expect(started).toEqual(['claim-17:pay.3'])
  expect(shared.get('claim-17')).toMatchObject({
    holder: null,
    summary: { state: 'COMPLETED', value: 'paid' },
  })
  expect(errors).toEqual([])
})

test('a second start with the same input changes nothing, and one with another input is refused', async () => {
  const { open, until, shared } = setUp()
  const { claims } = open()
  await until(claims.start('claim-17', { input }))
  await until(claims.start('claim-17', { input: { amount: 900 } }))
  await until(open().claims.start('claim-17', { input }))
  expect(shared.get('claim-17')?.head).toBe(1)
  await expect(until(claims.start('claim-17', { input: { amount: 901 } }))).rejects.toMatchObject({
    code: 'already_started',
  })
})

test('settled returns what another process wrote before the session was acquired', async () => {
  const { hosts, open, until, shared } = setUp()
  const { claims } = open()
  await until(claims.start('c', { input }))
  const { store, clock } = hosts.start(shared)
  const late = durable(claimMachine, {
    clock,
    store: {
      ...store,
      acquire: async (...args: Parameters<typeof store.acquire>) => {
        await claims.send('c', { type: 'NOTE', text: 'in between' })
        await claims.settled('c')
        return store.acquire(...args)
      },
    } as never,
  })
  expect(await until(late.settled('c'))).toMatchObject({ context: { notes: ['in between'] }, head: 2 })
})

test('settled returns the state after every event that was sent before', async () => {
  for (let turns = 0; turns < 40; turns += 1) {
    const { open, until } = setUp()
    const { claims } = open()
    const play = async (): Promise<string[]> => {
      await claims.start('c', { input })
      await claims.settled('c')
      await claims.send('c', { type: 'NOTE', text: 'one' })
      // The second event arrives while the session is being released.
      for (let i = 0; i < turns; i += 1) await Promise.resolve()
      await claims.send('c', { type: 'NOTE', text: 'two' })
      return (await claims.settled('c')).context.notes
    }
    expect([turns, await until(play())]).toEqual([turns, ['one', 'two']])
  }
})

test('a message that cannot be removed is read once per opening', async () => {
  const { hosts, open, shared, until } = setUp()
  const { claims } = open()
  await until(claims.start('c', { input }))
  await until(claims.settled('c'))
  shared.inbox.remove = () => {
    throw new StoreError('store_unavailable', 'The disk is read-only.', 'c')
  }
  const acquire = shared.acquire.bind(shared)
  let acquisitions = 0
  shared.acquire = (...args) => {
    acquisitions += 1
    if (acquisitions > 20) throw new StoreError('corrupt_log', 'Opened too often.', 'c')
    return acquire(...args)
  }
  for (const text of ['{"event":{"type":"REJECT","why":"No."}}', '{"event":{"type":"NOTE"}}', 'unreadable'])
    shared.inbox.put('c', text)
  expect(await until(claims.settled('c'))).toMatchObject({ value: 'rejected' })
  await hosts.settle()
  expect(acquisitions).toBe(1)
})

test('an event with a key is accepted once', async () => {
  const { open, until } = setUp()
  const { claims } = open()
  await until(claims.start('c', { input }))
  for (const process of [claims, open().claims, claims]) {
    await until(process.send('c', { type: 'NOTE', text: 'once' }, { key: 'n1' }))
    await until(process.settled('c'))
  }
  expect((await until(claims.settled('c'))).context.notes).toEqual(['once'])
})

test('a session remembers its last 100 keys, also after its end', async () => {
  const { open, until, shared } = setUp()
  const { claims } = open()
  await until(claims.start('c', { input }))
  const note = async (n: number) =>
    until(claims.send('c', { type: 'NOTE', text: String(n) }, { key: `n${n}` }))
  for (let n = 0; n <= 100; n += 1) await note(n)
  await until(claims.settled('c'))
  await note(1)
  expect((await until(claims.settled('c'))).context.notes).toHaveLength(101)
  await note(0)
  expect((await until(claims.settled('c'))).context.notes).toHaveLength(102)
  const reject = { type: 'REJECT', why: 'No roof.' } as const
  await until(claims.send('c', reject, { key: 'end' }))
  expect(await until(claims.settled('c'))).toMatchObject({ value: 'rejected' })
  await until(claims.send('c', reject, { key: 'end' }))
  await expect(until(claims.send('c', reject, { key: 'other' }))).rejects.toMatchObject({
    code: 'session_ended',
  })
  expect(shared.inbox.read('c')).toEqual([])
})

test('a worker continues the work of a dead process, and an actor in once is in doubt', async () => {
  const { hosts, bank, open, until } = setUp({ pay: () => new Promise(() => undefined) })
  const first = open()
  await until(first.claims.start('c', { input }))
  await until(first.claims.send('c', approve))
  await hosts.settle()
  expect(first.started).toEqual(['c:pay.2'])
  first.host.kill()
  bank.pay('c:pay.2', 900)
  const second = open()
  const worker = second.claims.worker()
  await hosts.pass(65_000)
  expect(second.started).toEqual(['c:askBank.3'])
  expect(await until(second.claims.settled('c'))).toMatchObject({ value: 'paid', context: { payment: 'p1' } })
  expect(bank.payments).toHaveLength(1)
  await until(worker.drain())
  expect(second.errors).toEqual([])
})

test('a suspended process does not start an actor of a session that another process has continued', async () => {
  const { hosts, bank, open, shared, until } = setUp()
  const first = open()
  await until(first.claims.start('c', { input }))
  await until(first.claims.settled('c'))
  const append = shared.append.bind(shared)
  shared.append = (...args) => {
    first.host.suspend()
    shared.append = append
    return append(...args)
  }
  await until(first.claims.send('c', approve))
  await hosts.pass(1000)
  expect(shared.get('c')?.summary?.value).toBe('paying')
  const second = open()
  const worker = second.claims.worker()
  await hosts.pass(65_000)
  expect(bank.payments).toHaveLength(1)
  first.host.wake()
  await hosts.pass(1000)
  expect([first.started, second.started, bank.payments.length]).toEqual([[], ['c:askBank.3', 'c:pay.4'], 1])
  await until(worker.drain())
})

test('a process that was suspended while it opened a session returns what another process wrote', async () => {
  const { hosts, open, shared, until } = setUp()
  const first = open()
  await until(first.claims.start('c', { input }))
  await until(first.claims.settled('c'))
  const { acquire } = shared
  shared.acquire = (...args) => {
    const lease = acquire(...args)
    const { read } = shared
    shared.read = (...more) => {
      first.host.suspend()
      shared.read = read
      return read(...more)
    }
    shared.acquire = acquire
    return lease
  }
  const settled = first.claims.settled('c')
  await hosts.pass(31_000)
  const second = open()
  await until(second.claims.send('c', approve))
  expect(await until(second.claims.settled('c'))).toMatchObject({ value: 'paid' })
  first.host.wake()
  expect(await until(settled)).toMatchObject({ value: 'paid' })
})

test('a delay fires once, by the clock of the store, in another process and after 24.8 days', async () => {
  const { hosts, open, until, shared } = setUp()
  const first = open()
  await until(first.claims.start('c', { input }))
  await until(first.claims.settled('c'))
  expect(shared.get('c')?.summary?.wakeAt).toBe(start + 40 * day)
  first.host.kill()
  const second = open()
  const worker = second.claims.worker({ pollMs: day / 2 })
  await hosts.pass(39 * day)
  expect(shared.get('c')).toMatchObject({ head: 1, holder: null })
  await hosts.pass(2 * day)
  expect(shared.get('c')).toMatchObject({ head: 2, summary: { value: 'expired' } })
  expect(shared.timers.list({ prefix: '', limit: 10 })).toEqual([])
  await until(worker.drain())
})

test('a chart waits, retries, and gives up', async () => {
  let tries = 0
  const { hosts, open, until } = setUp({
    pay: () => {
      tries += 1
      throw Object.assign(new Error('The bank is closed.'), { code: 'closed' })
    },
  })
  const { claims } = open()
  const worker = claims.worker()
  await until(claims.start('c', { input }))
  await until(claims.send('c', approve))
  expect(await until(claims.settled('c'))).toMatchObject({ value: 'waiting' })
  await hosts.pass(200_000)
  expect(await until(claims.settled('c'))).toMatchObject({ value: 'failed', status: 'done' })
  expect(tries).toBe(3)
  await until(worker.drain())
})

test('delayed events without an id do not replace each other', async () => {
  const { hosts, shared, until } = setUp()
  const { store, clock } = hosts.start(shared)
  const machine = setup({ types: { context: {} as { seen: string[] } } }).createMachine({
    id: 'bell',
    context: { seen: [] },
    entry: [
      raise({ type: 'X' }, { id: 'x', delay: 1000 }),
      raise({ type: 'A' }, { delay: 2000 }),
      raise({ type: 'B' }, { delay: 3000 }),
      cancel('x'),
      raise({ type: 'C' }, { delay: 4000 }),
    ],
    on: { '*': { actions: assign({ seen: ({ context, event }) => [...context.seen, event.type] }) } },
  })
  const bells = durable(machine, { store: store as never, clock })
  await until(bells.start('b'))
  await hosts.pass(5000)
  expect((await until(bells.settled('b'))).context.seen).toEqual(['A', 'B', 'C'])
})

test('a drain leaves unread events to another process', async () => {
  for (let turns = 0; turns < 60; turns += 3) {
    const { hosts, shared, until } = setUp()
    const open = () => {
      const { store, clock } = hosts.start(shared)
      return durable(tallyMachine, { store: store as never, clock })
    }
    const first = open()
    await until(first.start('t'))
    const worker = first.worker()
    const sent = [1, 2, 3, 4, 5].map(async (n) => first.send('t', { type: 'COUNT', from: 'ann', n }))
    for (let i = 0; i < turns; i += 1) await new Promise((resolve) => setImmediate(resolve))
    await until(Promise.all([worker.drain(), ...sent]))
    expect(await until(open().settled('t'))).toMatchObject({ context: { last: { ann: 5 }, faults: 0 } })
  }
})

test('a drain waits for an actor in once, and stores its outcome', async () => {
  let finish: (payment: string) => void = () => undefined
  const { hosts, open, until } = setUp({ pay: () => new Promise((resolve) => (finish = resolve)) })
  const first = open()
  const worker = first.claims.worker()
  await until(first.claims.start('c', { input }))
  await until(first.claims.send('c', approve))
  await hosts.settle()
  expect(first.started).toEqual(['c:pay.2'])
  let isDrained = false
  const drained = worker.drain().then(() => (isDrained = true))
  await hosts.pass(60_000)
  expect(isDrained).toBe(false)
  finish('p7')
  await until(drained)
  const second = open()
  expect(await until(second.claims.settled('c'))).toMatchObject({ value: 'paid', context: { payment: 'p7' } })
  expect(second.started).toEqual([])
})

test('after a drain, send still stores events, and nothing else runs in this process', async () => {
  const { hosts, open, until, shared } = setUp()
  const first = open()
  const worker = first.claims.worker()
  await until(first.claims.start('c', { input }))
  await until(first.claims.settled('c'))
  await until(worker.drain())
  await until(first.claims.send('c', approve))
  await hosts.pass(60_000)
  expect([first.started, shared.get('c')?.head, shared.get('c')?.holder]).toEqual([[], 1, null])
  const calls: (() => Promise<unknown>)[] = [
    async () => first.claims.start('d', { input }),
    async () => first.claims.settled('c'),
    async () => first.claims.worker(),
  ]
  for (const call of calls)
    await expect(until(call())).rejects.toMatchObject({ code: 'draining', retryable: true })
  expect(await until(first.claims.replay('c'))).toMatchObject({ value: 'reviewing' })
  await until(worker.drain())
  const second = open()
  expect(await until(second.claims.settled('c'))).toMatchObject({ value: 'paid' })
  expect(await until(first.claims.settled('c'))).toMatchObject({ value: 'paid' })
})

test('a call that waits for a session when the drain starts is refused, and another process continues', async () => {
  const { hosts, open, until } = setUp()
  const first = open()
  const worker = first.claims.worker()
  await until(first.claims.start('c', { input }))
  await until(first.claims.send('c', { type: 'NOTE', text: 'one' }))
  const asking = durable(claimMachine, {
    store: first.host.store as never,
    clock: first.host.clock,
    actors: { pay: fromPromise<string>(() => new Promise(() => undefined)) },
  })
  const pending = asking.worker()
  await until(first.claims.settled('c'))
  await until(asking.send('c', approve))
  await hosts.settle()
  const waiting = asking.settled('c').catch((error: unknown) => error)
  await until(pending.drain())
  expect(await until(waiting)).toMatchObject({ code: 'draining' })
  expect(await until(first.claims.settled('c'))).toMatchObject({ value: 'paid' })
  await until(worker.drain())
})

test('an event that leads to an unstorable state changes nothing, and the machine continues', async () => {
  const { open, until } = setUp()
  const { claims } = open()
  await until(claims.start('c', { input }))
  await until(claims.settled('c'))
  await until(claims.send('c', { type: 'STAMP' }))
  await expect(until(claims.settled('c'))).rejects.toMatchObject({
    code: 'not_json',
    subject: 'context.stamp',
  })
  await until(claims.send('c', { type: 'BREAK' }))
  await expect(until(claims.settled('c'))).rejects.toMatchObject({ code: 'transition_failed' })
  await until(claims.send('c', { type: 'NOTE', text: 'still here' }))
  expect(await until(claims.settled('c'))).toMatchObject({
    value: 'reviewing',
    context: { notes: ['still here'] },
    head: 4,
  })
})

test('an onError that throws, and an error that cannot be read, do not stop a session', async () => {
  const unreadable = Object.defineProperty(new Error('closed'), 'details', {
    enumerable: true,
    get: () => {
      throw new Error('The details are gone.')
    },
  })
  const { hosts, shared, until } = setUp()
  const { store, clock } = hosts.start(shared)
  let runs = 0
  const claims = durable(claimMachine, {
    store: store as never,
    clock,
    actors: {
      pay: fromPromise<string>(() => {
        runs += 1
        return runs === 1 ? Promise.reject(unreadable) : new Promise(() => undefined)
      }),
    },
    onError: () => {
      throw new Error('The listener is broken.')
    },
  })
  await until(claims.start('c', { input }))
  await until(claims.send('c', approve))
  expect(await until(claims.settled('c'))).toMatchObject({ value: 'waiting' })
  expect(await until(claims.replay('c'))).toMatchObject({
    event: { error: { message: 'The details are gone.' } },
  })
  await hosts.pass(70_000)
  const settled = claims.settled('c', { timeoutMs: 1000 })
  await expect(until(settled)).rejects.toMatchObject({ code: 'not_settled' })
  await until(claims.send('c', { type: 'BREAK' }))
  await hosts.pass(1000)
  expect([runs, shared.get('c')?.holder]).toEqual([2, 'machine claim'])
})

test('invalid calls are refused before anything is written', async () => {
  const { open, until, shared } = setUp()
  const { claims } = open()
  const refused = async (promise: Promise<unknown>) =>
    until(promise).catch((error: { code: string }) => error.code)
  expect(await refused(claims.start('c', { input: { amount: NaN } }))).toBe('not_json')
  expect(await refused(claims.start('a b', { input }))).toBe('invalid_session')
  expect(await refused(claims.send('c', approve))).toBe('unknown_session')
  expect(await refused(claims.settled('c'))).toBe('unknown_session')
  expect(shared.get('c')).toBeNull()
  await until(claims.start('c', { input }))
  expect(await refused(claims.send('c', { type: 'NO' } as never))).toBe('unknown_event')
  expect(await refused(claims.send('c', { type: 'xstate.done.actor.pay' } as never))).toBe('unknown_event')
  expect(await refused(claims.send('c', { type: 'NOTE', text: new Date() } as never))).toBe('not_json')
  expect(await refused(claims.send('c', approve, { key: '' }))).toBe('invalid_option')
  const other = durable(createMachine({ id: 'other', initial: 'a', states: { a: {} } }), { store: shared })
  expect(await refused(other.settled('c'))).toBe('other_session')
  expect(await refused(other.start('c'))).toBe('other_session')
  expect(shared.get('c')?.head).toBe(1)
})

test('an invalid option is refused and named, and nothing is written', async () => {
  const { open, until, shared } = setUp()
  const { claims } = open()
  const refused = async (call: () => unknown): Promise<unknown> => {
    try {
      return await until(Promise.resolve(call()))
    } catch (error) {
      const { code, subject } = error as { code: string; subject: string }
      return [code, subject]
    }
  }
  await until(claims.start('c', { input }))
  await until(claims.settled('c'))
  for (const timeoutMs of [NaN, -1, 2 ** 31, '9', null])
    expect([timeoutMs, await refused(() => claims.settled('c', { timeoutMs } as never))]).toEqual([
      timeoutMs,
      ['invalid_option', 'timeoutMs'],
    ])
  for (const [key, values] of Object.entries({
    pollMs: [NaN, 0, -1, Infinity, '9', null],
    concurrency: [NaN, 0, -1, 1.5, Infinity, '9', null],
  }))
    for (const value of values)
      expect([value, await refused(() => claims.worker({ [key]: value } as never))]).toEqual([
        value,
        ['invalid_option', key],
      ])
  for (const at of [NaN, 0, 1.5, 9, null]) {
    expect(await refused(() => claims.replay('c', at as never))).toEqual(['invalid_option', 'record'])
    expect(await refused(() => claims.fork('c', { at } as never))).toEqual(['invalid_option', 'at'])
  }
  const both = { actor: 'pay', output: 'p', error: new Error('closed') }
  for (const change of [
    5,
    null,
    {},
    { actor: 5 },
    both,
    { actor: 'pay', outptu: 'p' },
    { type: 7, actor: 'pay' },
  ])
    expect(await refused(() => claims.fork('c', { with: change } as never))).toEqual([
      'invalid_option',
      'with',
    ])
  for (const options of [null, 5, 'key', Promise.resolve({})]) {
    const calls = {
      'durable(machine, options)': () => durable(claimMachine, options as never),
      'start(id, options)': () => claims.start('d', options as never),
      'send(id, event, options)': () => claims.send('c', approve, options as never),
      'settled(id, options)': () => claims.settled('c', options as never),
      'worker(options)': () => claims.worker(options as never),
      'fork(id, options)': () => claims.fork('c', options as never),
    }
    for (const [call, work] of Object.entries(calls))
      expect([options, await refused(work)]).toEqual([options, ['invalid_argument', call]])
  }
  const durableOptions = { actors: 5, once: 'pay', clock: {}, migrate: 5, onError: 5 }
  for (const [key, value] of Object.entries(durableOptions))
    expect(await refused(() => durable(claimMachine, { store: shared, [key]: value } as never))).toEqual([
      'invalid_option',
      key,
    ])
  let deep: unknown = 0
  for (let i = 0; i < 20_000; i += 1) deep = [deep]
  expect(await refused(() => claims.start('d', { input: deep } as never))).toMatchObject(['not_json', {}])
  expect([shared.get('c')?.head, shared.get('d'), shared.list().length]).toEqual([1, null, 1])
})

test('a value that JSON would change has its stored form from the start', async () => {
  const { open, until } = setUp()
  const { claims } = open()
  await until(claims.start('c', { input: { amount: -0 } }))
  expect((await until(claims.settled('c'))).context.amount).toBe(0)
})

test('an event whose transitions never end changes nothing', async () => {
  const { hosts, shared, until } = setUp()
  const { store, clock } = hosts.start(shared)
  const machine = setup({}).createMachine({
    id: 'loop',
    initial: 'calm',
    states: {
      calm: { on: { GO: 'left', STAY: { actions: () => undefined } } },
      left: { always: 'right' },
      right: { always: 'left' },
    },
  })
  const loops = durable(machine, { store: store as never, clock, onError: () => undefined })
  await until(loops.start('l'))
  await until(loops.send('l', { type: 'GO' }))
  await expect(until(loops.settled('l'))).rejects.toMatchObject({
    code: 'transition_failed',
    message: expect.stringContaining('Infinite loop'),
  })
  await until(loops.send('l', { type: 'STAY' }))
  expect(await until(loops.settled('l'))).toMatchObject({ value: 'calm', head: 3 })
})

test('charts that cannot be stored are refused', () => {
  const store = memoryStore()
  const codeOf = (open: () => unknown): unknown => {
    try {
      return open()
    } catch (error) {
      return [(error as { code: string }).code, (error as { subject: string }).subject]
    }
  }
  const withActor = (src: unknown, actors = {}) =>
    createMachine({ id: 'm', initial: 'a', states: { a: { invoke: { src: src as never } } } }).provide({
      actors: actors as never,
    })
  const callback = fromCallback(() => undefined)
  expect(codeOf(() => durable(createMachine({ initial: 'a', states: { a: {} } }), { store }))).toEqual([
    'invalid_machine',
    'id',
  ])
  expect(codeOf(() => durable(withActor('gone'), { store }))).toEqual(['missing_actor', 'gone'])
  expect(codeOf(() => durable(withActor('cb', { cb: callback }), { store }))).toEqual([
    'unsupported_actor',
    'cb',
  ])
  const watched = createMachine({
    id: 'm',
    initial: 'a',
    states: { a: { invoke: { src: 'p', onSnapshot: {} } } },
  })
  const counts = fromPromise(async () => 1)
  expect(codeOf(() => durable(watched, { store, actors: { p: counts } }))).toEqual(['unsupported_actor', 'p'])
  expect(codeOf(() => durable(withActor(callback), { store }))).toEqual(['unsupported_actor', 'm.a'])
  expect(
    codeOf(() => durable(withActor('p', { p: fromPromise(async () => 1) }), { store, once: ['q'] })),
  ).toEqual(['invalid_config', 'once'])
  for (const nothing of [null, 'pay', async () => 1])
    expect(codeOf(() => durable(claimMachine, { store, actors: { pay: nothing } as never }))).toMatchObject([
      nothing === null ? 'missing_actor' : 'unsupported_actor',
      'pay',
    ])
  expect(codeOf(() => durable(claimMachine, { store, actors: { pya: counts } }))).toEqual([
    'invalid_config',
    'actors.pya',
  ])
  expect(codeOf(() => durable(claimMachine, { store: { ...store, inbox: undefined } as never }))).toEqual([
    'no_inbox',
    'store',
  ])
  expect(codeOf(() => durable(claimMachine, { store: { ...store, timers: undefined } as never }))).toEqual([
    'no_timers',
    'store',
  ])
})

test('settled names a machine that never rests', async () => {
  const busy = setup({ actors: { tick: fromPromise(async () => 1) } }).createMachine({
    id: 'busy',
    context: { count: 0 },
    initial: 'a',
    states: {
      a: { invoke: { src: 'tick', onDone: 'b' } },
      b: {
        entry: assign({ count: ({ context }) => context.count + 1 }),
        invoke: { src: 'tick', onDone: 'a' },
      },
    },
  })
  const { hosts, shared } = setUp()
  const host = hosts.start(shared)
  const sessions = durable(busy, { store: host.store as never, clock: host.clock, onError: () => undefined })
  const started = sessions.start('b')
  await hosts.settle()
  await started
  const settled = sessions.settled('b', { timeoutMs: 1000 }).catch((error: Error & { code: string }) => error)
  await hosts.pass(2000)
  expect(await settled).toMatchObject({
    code: 'not_settled',
    message: expect.stringMatching(/Its state is [ab]/),
  })
  host.kill()
})

test('functions for agents report that a session is a machine, and do not change it', async () => {
  const { open, until, shared } = setUp()
  const { claims } = open()
  await until(claims.start('c', { input }))
  await until(claims.settled('c'))
  const agent = createAgent({ model: createOneCallModel('add'), store: shared })
  const calls = [
    () => agent.run('Go.', { session: 'c' }).result,
    () => agent.resume('c'),
    () => agent.send('c', { type: 'cancel' }),
    () => agent.replay('c'),
    () => agent.fork('c'),
    () => agent.readSession('c'),
    () => runSession(agent, { session: 'c', input: 'Go.' }),
  ]
  for (const call of calls) {
    await expect(call()).rejects.toMatchObject({
      code: 'machine_session',
      message: expect.stringContaining("the machine 'claim'"),
    })
  }
  expect(shared.get('c')).toMatchObject({
    head: 1,
    holder: null,
    summary: { agent: 'machine claim', value: 'reviewing' },
  })
  const woken: string[] = []
  shared.timers.set([{ id: 'wake:c', at: 0, data: '{"agent":"machine claim"}' }])
  const waker = createWaker(defineAgents({ agent }), { run: async ({ session }) => void woken.push(session) })
  waker.start()
  await waker.stop()
  expect(woken).toEqual([])
  await agent.run('Go.', { session: 'ann' }).result.catch(() => undefined)
  const others: (() => Promise<unknown>)[] = [
    async () => claims.start('ann', { input }),
    async () => claims.delete('ann'),
  ]
  for (const call of others) await expect(until(call())).rejects.toMatchObject({ code: 'other_session' })
  expect(shared.get('ann')).not.toBeNull()
  expect(await until(claims.delete('c'))).toBe(true)
  expect([shared.get('c'), shared.timers.get('wake:c')]).toEqual([null, null])
})

test('functions for many sessions of agents leave out machines', async () => {
  const { open, until, shared } = setUp()
  const { claims } = open()
  const agent = createAgent({ model: createOneCallModel('add'), store: shared })
  for (const id of ['a:claim', 'b:claim']) {
    await until(claims.start(id, { input }))
    await until(claims.settled(id))
  }
  for (const session of ['a:ann', 'b:ann']) await agent.run('Go.', { session }).result
  const message = { type: 'message', input: 'And now?', when: 'next' } as const
  expect(await sendAll(shared, { prefix: 'a' }, message)).toMatchObject({ sessions: 1, refused: 0 })
  expect(shared.inbox.read('a:claim')).toEqual([])
  const cases = await readSessionCases(shared)
  expect(cases.map(({ id }) => id).toSorted()).toEqual(['a:ann', 'b:ann'])
})

test('a session is replayed and forked: with another event, another outcome, or an actor in doubt', async () => {
  const { bank, open, until, shared } = setUp()
  const { claims, started } = open()
  await until(claims.start('c', { input }))
  await until(claims.send('c', { type: 'NOTE', text: 'first' }))
  await until(claims.send('c', approve))
  await until(claims.settled('c'))
  expect(await until(claims.replay('c', 2))).toMatchObject({
    record: 2,
    event: { type: 'NOTE', text: 'first' },
    value: 'reviewing',
    context: { notes: ['first'], payment: null },
  })
  expect(await until(claims.replay('c'))).toMatchObject({
    record: 4,
    status: 'done',
    output: { payment: 'p1' },
  })
  await expect(until(claims.replay('c', 9))).rejects.toMatchObject({
    code: 'invalid_option',
    subject: 'record',
  })

  const rejected = await until(claims.fork('c', { at: 2, with: { type: 'REJECT', why: 'No roof.' } }))
  expect(await until(claims.settled(rejected))).toMatchObject({
    value: 'rejected',
    context: { notes: ['first'] },
  })
  const other = await until(claims.fork('c', { at: 3, with: { actor: 'pay', output: 'p9' } }))
  expect(await until(claims.settled(other))).toMatchObject({ value: 'paid', context: { payment: 'p9' } })
  const failed = await until(claims.fork('c', { at: 3, with: { actor: 'pay', error: new Error('closed') } }))
  expect(await until(claims.settled(failed))).toMatchObject({ value: 'waiting', context: { tries: 1 } })
  const doubtful = await until(claims.fork('c', { at: 3 }))
  expect(await until(claims.settled(doubtful))).toMatchObject({ value: 'paid', context: { payment: 'p1' } })
  expect(bank.payments).toHaveLength(1)
  expect(started).toEqual(['c:pay.3', `${doubtful}:askBank.2`])
  await expect(
    until(claims.fork('c', { at: 2, with: { actor: 'pay', output: 'p9' } })),
  ).rejects.toMatchObject({
    code: 'unknown_actor',
  })
  const before = shared.list().length
  await expect(until(claims.fork('c', { with: approve }))).rejects.toMatchObject({ code: 'session_ended' })
  expect(shared.list()).toHaveLength(before)
  expect(JSON.parse(shared.read(other)[0]?.data ?? '{}')).toMatchObject({
    forkedFrom: { sessionId: 'c', seq: 3 },
  })
  expect(shared.get('c')?.head).toBe(4)
})

test('a stored session is a path that replays on the chart, and its records follow the schema', async () => {
  const { open, until, shared } = setUp()
  const { claims } = open()
  await until(claims.start('c', { input }))
  await until(claims.send('c', { type: 'BREAK' }))
  await until(claims.send('c', { type: 'NOTE', text: 'first' }))
  await until(claims.send('c', approve))
  await until(claims.settled('c'))
  const path = await pathOf(shared, 'c')
  expect(path.steps.map(({ event, state }) => [event.type, state.value])).toEqual([
    ['xstate.init', 'reviewing'],
    ['NOTE', 'reviewing'],
    ['APPROVE', 'paying'],
    ['xstate.done.actor.0.claim.paying', 'paid'],
  ])
  expect(path.steps.at(-1)).toMatchObject({ state: { status: 'done' }, output: { payment: 'p1' } })
  expect(await replay(path, createMachineHarness(claims.machine))).toEqual({ ok: true, steps: 4 })
  const changed = claimMachine.provide({ guards: { mayRetry: () => false } })
  const failed = await until(claims.fork('c', { at: 4, with: { actor: 'pay', error: new Error('closed') } }))
  await until(claims.settled(failed))
  const forked = await pathOf(shared, failed)
  expect(forked.steps.map(({ state }) => state.value)).toEqual([
    'reviewing',
    'reviewing',
    'paying',
    'waiting',
  ])
  expect(await replay(forked, createMachineHarness(claims.machine))).toEqual({ ok: true, steps: 4 })
  expect(await replay(forked, createMachineHarness(changed))).toMatchObject({ ok: false, step: 3 })
  for (const id of ['c', failed])
    for (const record of shared.read(id)) {
      const shown = { seq: record.seq, at: record.at, ...openMachineRecord(record, id) }
      expect([id, record.seq, faults(shown)]).toEqual([id, record.seq, []])
      expect(faults({ ...shown, event: {} })).not.toEqual([])
    }
  await expect(pathOf(shared, 'nobody')).rejects.toMatchObject({ code: 'unknown_session' })
  const agent = createAgent({ model: createOneCallModel('add'), store: shared })
  await agent.run('Go.', { session: 'ann' }).result.catch(() => undefined)
  await expect(pathOf(shared, 'ann')).rejects.toMatchObject({ code: 'other_session' })
})

test('a session of another chart is opened by migrate, or names the missing states', async () => {
  const { hosts, open, until, shared } = setUp()
  await until(open().claims.start('c', { input }))
  const renamed = createMachine({
    id: 'claim',
    version: '2',
    initial: 'inReview',
    context: { amount: 0 },
    states: { inReview: { on: { APPROVE: 'approved' } }, approved: { type: 'final' } },
  })
  const host = hosts.start(shared)
  const parts = { store: host.store as never, clock: host.clock }
  await expect(until(durable(renamed, parts).settled('c'))).rejects.toMatchObject({
    code: 'chart_changed',
    message: expect.stringContaining("the state 'reviewing'"),
  })
  const from: unknown[] = []
  const migrated = durable(renamed, {
    ...parts,
    migrate: (state, options) => {
      from.push([state.value, options.from])
      return { value: 'inReview' }
    },
  })
  expect(await until(migrated.settled('c'))).toMatchObject({
    value: 'inReview',
    context: { amount: 900 },
    head: 1,
  })
  await until(migrated.send('c', { type: 'APPROVE' } as never))
  expect(await until(migrated.settled('c'))).toMatchObject({ value: 'approved', context: { amount: 900 } })
  expect(from).toContainEqual(['reviewing', undefined])
  expect(JSON.parse(shared.read('c').at(-1)?.data ?? '{}')).toMatchObject({ chart: '2' })
})

test('an outcome that the chart cannot process waits for a corrected chart', async () => {
  const { hosts, until, shared } = setUp()
  let runs = 0
  const create = (isBroken: boolean) => {
    const host = hosts.start(shared)
    const machine = setup({
      types: { context: {} as { got: number } },
      actors: { count: fromPromise(async () => (runs += 1)) },
    }).createMachine({
      id: 'counter',
      context: { got: 0 },
      initial: 'counting',
      states: {
        counting: {
          invoke: {
            src: 'count',
            onDone: {
              target: 'done',
              actions: assign(({ event }) => {
                if (isBroken) throw new Error('Not yet.')
                return { got: event.output }
              }),
            },
          },
        },
        done: {},
      },
    })
    return durable(machine, { store: host.store as never, clock: host.clock, onError: () => undefined })
  }
  const broken = create(true)
  await until(broken.start('n'))
  await expect(until(broken.settled('n'))).rejects.toMatchObject({ code: 'transition_failed' })
  await expect(until(broken.settled('n'))).rejects.toMatchObject({ code: 'transition_failed' })
  expect(shared.get('n')?.head).toBe(2)
  expect(await until(create(false).settled('n'))).toMatchObject({ value: 'done', context: { got: 1 } })
  expect(runs).toBe(1)
})
