import { createAgent, memoryStore, type Policy } from '../../src/index.js'
import { aguiHandler } from '../../src/agui/index.js'
import { wait } from '../../src/core/base/clock.js'
import { runControls } from '../../src/core/live/run-controls.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { Hosts } from '../fleet/host-clocks.js'
import { filePlace } from '../stores/folder.js'
import {
  createModel,
  fault,
  hour,
  minute,
  openMemory,
  refused,
  second,
  start,
  testUnheldQuestions,
  world,
} from '../support/expiring.js'
import { tool } from '../support/tools.js'

describe('a question that expires', () => {
  it('states its expiry, and ends the call in the process that asked', async () => {
    const { hosts, paid, ask, store } = world()
    const { run, question } = await ask()
    expect(question.expiresAt).toBe(start + 15 * minute)
    expect(await run.result).toMatchObject({ wakeAt: question.expiresAt })
    await hosts.pass(15 * minute - second)
    expect(run.state).toBe('WAITING_FOR_INPUT')
    await hosts.pass(2 * second)
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: refused })
    expect(paid).toEqual([])
    expect(() => run.approve(question)).toThrow(fault('unknown_call'))
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('lets a call run that was approved in time', async () => {
    const { hosts, paid, ask } = world()
    const { run, question } = await ask()
    await hosts.pass(15 * minute - second)
    run.approve(question)
    await hosts.settleUntil(() => run.state === 'COMPLETED')
    expect(paid).toEqual([{ n: 1, at: start + 15 * minute - second }])
    await hosts.pass(hour)
    expect(paid).toHaveLength(1)
  })

  it.each([
    ['pause', 'PAUSED'],
    ['cancel', 'CANCELLED'],
  ] as const)('can %s the run', async (onExpiry, state) => {
    const { hosts, paid, ask, store } = world({ approvals: { expiresMs: 15 * minute, onExpiry } })
    const { run, question } = await ask()
    expect(question.onExpiry).toBe(onExpiry)
    await hosts.pass(16 * minute)
    const rest = await run.result
    expect(rest).toMatchObject({ state, reason: 'approval_expired' })
    expect(rest.messages.at(-1)).toMatchObject({ role: 'tool', content: refused })
    if (onExpiry === 'pause') {
      run.resume()
      await hosts.settleUntil(() => run.state === 'COMPLETED')
    }
    expect([paid, checkSessionLog(await store.read('s'))]).toEqual([[], null])
  })

  it('starts its call without waiting for the batch, and each call has its own deadline', async () => {
    const policy: Policy = {
      id: 'p',
      decide: ({ arguments: { n } }) => ({ decision: 'ask', expiresMs: n * minute }),
    }
    const calls: [string, object][] = [1, 2, 0].map((n) => ['pay', { n }])
    const { hosts, paid, ask, store } = world({ calls, policy })
    const { run, pending } = await ask()
    expect(pending.map(({ expiresAt }) => expiresAt)).toEqual([start + minute, start + 2 * minute, undefined])
    run.approve(pending[1]!)
    await hosts.settle()
    expect(paid.map(({ n }) => n)).toEqual([2])
    await hosts.pass(3 * minute)
    expect((await run.result).pending?.map(({ callId }) => callId)).toEqual(['c2'])
    await hosts.pass(hour)
    run.approve(pending[2]!)
    await hosts.settleUntil(() => run.state === 'COMPLETED')
    expect(paid.map(({ n }) => n)).toEqual([2, 0])
    const { messages } = await run.result
    expect(messages.flatMap((one) => (one.role === 'tool' ? [one.content.slice(0, 43)] : []))).toEqual(
      ['Not executed: no decision arrived within 1 ', 'ok', 'ok'].map((content) =>
        content === 'ok' ? expect.any(String) : content,
      ),
    )
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('ends an approved call whose deadline passes while it waits for a free slot', async () => {
    const calls: [string, object][] = [1, 2, 3].map((n) => ['pay', { n }])
    const { hosts, paid, ask, store } = world({ calls, toolCalls: { concurrency: 1 }, takes: 10 * minute })
    const { run, pending } = await ask()
    await hosts.pass(minute)
    for (const one of pending) run.approve(one)
    await hosts.pass(hour)
    expect(paid).toEqual([
      { n: 1, at: start + minute },
      { n: 2, at: start + 11 * minute },
    ])
    expect(await run.result).toMatchObject({
      state: 'COMPLETED',
      output: 'Not executed: it could not start within 15 minutes. This is not a refusal.',
    })
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('ends each open question in time while an approved call runs', async () => {
    const policy: Policy = {
      id: 'p',
      decide: ({ arguments: { n } }) => ({
        decision: 'ask',
        expiresMs: n * minute,
        onExpiry: n === 3 ? 'cancel' : 'reject',
      }),
    }
    const calls: [string, object][] = [1, 2, 3].map((n) => ['pay', { n }])
    const { hosts, ask, store } = world({ calls, policy, takes: hour })
    const { run, pending } = await ask()
    run.approve(pending[0]!)
    await hosts.pass(3 * minute - second)
    expect(run.state).toBe('WAITING_FOR_TOOL')
    await hosts.pass(2 * second)
    expect(await run.result).toMatchObject({ state: 'CANCELLED', reason: 'approval_expired' })
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it.each(['cancel', 'reject', 'release'] as const)('leaves no timer after %s', async (end) => {
    const { hosts, open } = world()
    const timers = new Map<unknown, number>()
    const { clock } = open().host
    const counted = {
      ...clock,
      setTimeout: (fn: () => void, ms: number) => {
        const id = clock.setTimeout(() => (timers.delete(id), fn()), ms)
        timers.set(id, ms)
        return id
      },
      clearTimeout: (id: unknown) => {
        expect(id).toBeDefined()
        timers.delete(id)
        clock.clearTimeout(id)
      },
    }
    const pay = tool('pay', () => 'ok', { needsApproval: true })
    const approvals = { expiresMs: hour }
    const agent = createAgent({ model: createModel(['pay']), clock: counted, tools: [pay], approvals })
    const run = agent.run('Pay.')
    await hosts.settleUntil(() => run.state === 'WAITING_FOR_INPUT')
    expect([...timers.values()]).toEqual([hour])
    if (end === 'cancel') run.cancel()
    else if (end === 'release') await hosts.until(runControls.release(run))
    else for (const one of (await run.result).pending ?? []) run.reject(one)
    if (end !== 'release')
      await hosts.settleUntil(() => run.state === 'COMPLETED' || run.state === 'CANCELLED')
    expect([...timers.values()].filter((ms) => ms === hour)).toEqual([])
  })

  it('uses the strictest end of several, and a decision replaces the rules of the agent', async () => {
    const policy = (id: string, more: object): Policy => ({
      id,
      decide: () => ({ decision: 'ask', ...more }),
    })
    const { ask } = world({
      policy: [
        policy('a', { expiresMs: 0 }),
        policy('b', { onExpiry: 'pause' }),
        policy('c', { expiresMs: hour }),
      ],
      approvals: { expiresMs: 2 * hour, onExpiry: 'reject' },
    })
    const { question } = await ask()
    expect([question.expiresAt, question.onExpiry]).toEqual([start + hour, 'pause'])
    const never = world({ policy: policy('a', { expiresMs: 0 }) })
    expect((await never.ask()).question).not.toHaveProperty('expiresAt')
  })
})

describe.each([
  ['memory', () => ({ open: openMemory(), remove: () => undefined })],
  ['SQLite', filePlace],
])('while no process holds the session in %s', (_, makePlace) => {
  testUnheldQuestions(makePlace)
})

it('in a store without timers stays open, and the asking process warns once', async () => {
  const calls: [string, object][] = [1, 2].map((n) => ['pay', { n }])
  const openWhole = openMemory()
  const openStore = (now: () => number) => ({ ...openWhole(now), timers: undefined })
  const { hosts, paid, ask, open, store } = world({ calls, openStore })
  const { host, run, warnings, pending } = await ask()
  expect(warnings).toEqual(['no_timers'])
  run.approve(pending[0]!)
  await hosts.pass(14 * minute)
  expect([paid.length, run.state, warnings]).toEqual([1, 'WAITING_FOR_INPUT', ['no_timers']])
  host.kill()
  await hosts.pass(hour)
  expect((await store.get('s'))?.summary?.state).toBe('WAITING_FOR_INPUT')
  const again = await hosts.until(open().agent.resume('s'))
  await hosts.pass(second)
  expect([paid.length, (await again.result).output]).toEqual([1, refused])
  expect((await world().ask()).warnings).toEqual([])
})

describe('a question of a sub-agent', () => {
  function family(onExpiry: 'reject' | 'pause' | 'cancel' = 'reject', skew = 0) {
    const hosts = new Hosts(start)
    const store = memoryStore({ now: () => hosts.now })
    const paid: unknown[] = []
    const open = (ahead: number) => {
      const host = hosts.start(store, () => ahead)
      const { clock } = host
      const pay = tool('pay', (input) => void paid.push(input), { needsApproval: true })
      const clerk = createAgent({ model: createModel(['pay', { n: 1 }]), clock, tools: [pay] })
      const boss = createAgent({
        model: createModel(['clerk', { task: 'Pay.' }]),
        store: host.store,
        clock,
        tools: [clerk.asTool({ name: 'clerk', description: 'Pays.' })],
        approvals: { expiresMs: 15 * minute, onExpiry },
      })
      return { host, boss }
    }
    const first = open(0)
    return { hosts, store, paid, first, open: () => open(skew) }
  }

  it.each([
    ['reject', 'COMPLETED'],
    ['pause', 'PAUSED'],
    ['cancel', 'CANCELLED'],
  ] as const)('is passed up with its deadline, and the parent run ends it: %s', async (onExpiry, state) => {
    const { hosts, store, paid, first } = family(onExpiry)
    const run = first.boss.run('Go.', { session: 's' })
    await hosts.settleUntil(() => run.state === 'WAITING_FOR_INPUT')
    const { pending = [] } = await run.result
    expect(pending[0]).toMatchObject({ path: ['clerk'], expiresAt: start + 15 * minute })
    await hosts.pass(16 * minute)
    const rest = await run.result
    expect([rest.state, paid]).toEqual([state, []])
    if (state === 'PAUSED') {
      expect(rest.reason).toBe('approval_expired')
      run.resume()
      await hosts.settleUntil(() => run.state === 'COMPLETED')
    }
    if (state !== 'CANCELLED') expect((await run.result).output).toBe(refused)
    for (const id of store.list().map((one) => one.id)) expect(checkSessionLog(store.read(id))).toBeNull()
  })

  it.each([
    ['in step', 0],
    ['an hour ahead', hour],
    ['an hour behind', -hour],
  ])('is ended by another process whose clock is %s', async (_, skew) => {
    const { hosts, paid, first, open } = family('reject', skew)
    const run = first.boss.run('Go.', { session: 's' })
    await hosts.settleUntil(() => run.state === 'WAITING_FOR_INPUT')
    const { pending = [] } = await run.result
    first.host.kill()
    await hosts.pass(5 * minute)
    const { boss } = open()
    const again = await hosts.until(boss.resume('s'))
    await hosts.pass(9 * minute)
    expect(again.state).toBe('WAITING_FOR_INPUT')
    await hosts.pass(2 * minute)
    expect([(await again.result).output, paid]).toEqual([refused, []])
    expect(pending).toHaveLength(1)
  })

  it.each([
    ['another call of the run', [['clerk', { task: 'a' }], ['work']], [2]],
    ['another call of the sub-agent', [['clerk', { task: 'a' }]], [1, 2]],
  ] as const)('cancels the run in time during %s', async (_, calls, times) => {
    const hosts = new Hosts(start)
    const store = memoryStore({ now: () => hosts.now })
    const host = hosts.start(store)
    const { clock } = host
    const work = (name: string) => tool(name, () => wait(clock, hour), { timeoutMs: 0 })
    const policy: Policy = {
      id: 'p',
      decide: ({ arguments: { n } }) => ({ decision: 'ask', expiresMs: n * minute, onExpiry: 'cancel' }),
    }
    const payments = times.map((n) => ['pay', { n }] as const)
    const clerk = createAgent({ model: createModel(...payments), clock, policy, tools: [work('pay')] })
    const delegate = clerk.asTool({ name: 'clerk', description: 'Pays.', timeoutMs: 0 })
    const tools = [delegate, work('work')]
    const run = createAgent({ model: createModel(...calls), store: host.store, clock, tools }).run('Go.', {
      session: 's',
    })
    await hosts.pass(second)
    const { pending = [] } = times.length > 1 ? await run.result : {}
    if (pending[0]) run.approve(pending[0])
    await hosts.pass(2 * minute - 2 * second)
    expect(run.state).toBe('WAITING_FOR_TOOL')
    await hosts.pass(2 * second)
    expect(await run.result).toMatchObject({ state: 'CANCELLED', reason: 'approval_expired' })
    for (const { id } of store.list()) expect(checkSessionLog(store.read(id))).toBeNull()
  })

  it('runs its call when it is approved in time', async () => {
    const { hosts, paid, first } = family()
    const run = first.boss.run('Go.', { session: 's' })
    await hosts.settleUntil(() => run.state === 'WAITING_FOR_INPUT')
    const { pending = [] } = await run.result
    await hosts.pass(14 * minute)
    run.approve(pending[0]!)
    await hosts.settleUntil(() => run.state === 'COMPLETED')
    expect(paid).toEqual([{ n: 1 }])
  })
})

describe('pages', () => {
  it('show the expiry, get 409 for a late answer, and then the end of the call', async () => {
    const { hosts, paid, ask, open, store } = world()
    const { host, question } = await ask()
    host.kill()
    const { agent } = open()
    const chat = chatHandler({ agent, authorize: 'none' })
    const agui = aguiHandler({ agent, authorize: 'none' })
    const read = (from: Response): Promise<string> => hosts.until(from.text())
    const post = (body: object): Promise<Response> =>
      hosts.until(
        chat(
          new Request('http://chat.test/api/chat', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          }),
        ),
      )
    const parts = [{ type: 'text', text: 'Pay.' }]
    const stream = await read(await post({ id: 't', messages: [{ id: 'u', role: 'user', parts }] }))
    expect(stream).toMatch(/"data-approval".*"expiresAt":\d+/)
    const expiresAt = new Date(start + 15 * minute).toISOString()
    const shown = await hosts.until(agui(new Request('http://chat.test/api/agui/s')))
    expect(JSON.parse(await read(shown))).toMatchObject({ interrupts: [{ expiresAt }] })
    await hosts.pass(15 * minute)
    const part = {
      type: 'tool-pay',
      toolCallId: question.callId,
      state: 'approval-responded',
      input: {},
      approval: { id: `${question.callId}~${question.messageId}~${question.fingerprint}`, approved: true },
    }
    const late = await post({ id: 's', messages: [{ id: 'a', role: 'assistant', parts: [part] }] })
    expect([late.status, JSON.parse(await read(late)).error.code]).toEqual([409, 'approval_expired'])
    await hosts.pass(second)
    expect([(await store.get('s'))?.summary?.state, paid]).toEqual(['COMPLETED', []])
  })
})

describe('invalid input', () => {
  const model = createModel()
  it.each([
    ['expiresMs', -1],
    ['expiresMs', Number.NaN],
    ['expiresMs', 367 * 24 * hour],
    ['expiresMs', '15 min'],
    ['onExpiry', 'retry'],
    ['expires', 1],
  ])('approvals.%s: %s', (key, value) => {
    const create = () => createAgent({ model, approvals: { [key]: value } as never })
    expect(create).toThrow(expect.objectContaining({ code: 'invalid_config', subject: `approvals.${key}` }))
  })

  it.each([{ expiresMs: -1 }, { expiresMs: Number.NaN }, { expiresMs: 1e12 }, { onExpiry: 'retry' }])(
    'a policy that returns %j denies the call',
    async (terms) => {
      const policy = { id: 'p', decide: () => ({ decision: 'ask', ...terms }) } as unknown as Policy
      const { hosts, open, paid } = world({ policy })
      const run = open().agent.run('Pay.', { session: 's' })
      await hosts.settleUntil(() => run.state === 'COMPLETED')
      expect([(await run.result).output, paid]).toEqual([expect.stringContaining('could not be read'), []])
    },
  )
})
