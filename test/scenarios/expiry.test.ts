import {
  type AgentOptions,
  createAgent,
  defineAgents,
  memoryStore,
  type Policy,
  type Run,
  runSession,
} from '../../src/index.js'
import { aguiHandler } from '../../src/agui/index.js'
import { createWaker } from '../../src/fleet/index.js'
import { wait } from '../../src/core/base/clock.js'
import { releaseRun } from '../../src/core/live/release-run.js'
import type { ModelProvider } from '../../src/core/models/provider.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { type Host, Hosts } from '../fleet/host-clocks.js'
import { call as callOf, plainAnswer } from '../support/manual-model.js'
import { tool } from '../support/tools.js'

const start = Date.parse('2026-05-04T06:00:00Z')
const [second, minute, hour] = [1000, 60_000, 3_600_000]
const fault = (code: string) => expect.objectContaining({ code })
const refused = 'Not executed: no decision came within 15 minutes. This is not a refusal.'

/** Makes these calls once, then answers with the last result. */
function createModel(...calls: (readonly [name: string, input?: object])[]): ModelProvider {
  return {
    provider: 'scripted',
    model: 'scripted-1',
    request: ({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool') return Promise.resolve({ ...plainAnswer, text: last.content })
      const toolCalls = calls.map(([name, input], i) => callOf(`c${i}`, name, input))
      return Promise.resolve({ ...plainAnswer, toolCalls, finishReason: 'tool_calls' })
    },
  }
}

/** Processes with their own clocks on one store. Each runs an agent whose calls of `pay` ask for approval. */
interface WorldOptions extends Partial<AgentOptions> {
  calls?: (readonly [string, object?])[]
  /** Milliseconds that a payment takes. */
  takes?: number
  timers?: boolean
}

/** The codes of the warnings so far. */
function listWarnings(run: Run): string[] {
  const codes: string[] = []
  run.events$.subscribe((event) => void (event.type === 'warning' && codes.push(event.code)))
  return codes
}

function world({ calls = [['pay', { n: 1 }]], takes = 0, timers = true, ...others }: WorldOptions = {}) {
  const hosts = new Hosts(start)
  const whole = memoryStore({ now: () => hosts.now })
  const store = timers ? whole : ({ ...whole, timers: undefined } as unknown as typeof whole)
  const paid: { n: unknown; at: number }[] = []
  const open = (skew = 0) => {
    const host: Host = hosts.start(store, () => skew)
    const work = ({ n }: { n?: unknown }): unknown => {
      if (!host.isDead) paid.push({ n, at: hosts.now })
      return takes > 0 ? wait(host.clock, takes) : undefined
    }
    const pay = tool('pay', work, { needsApproval: true, timeoutMs: 0 })
    const agent = createAgent({
      model: createModel(...calls),
      store: host.store,
      clock: host.clock,
      tools: [pay],
      approvals: { expiresMs: 15 * minute },
      ...others,
    })
    return { host, agent, agents: defineAgents({ clerk: agent }) }
  }
  /** A run that has asked. */
  const ask = async (process = open()) => {
    const run = process.agent.run('Pay.', { session: 's', by: 'ann' }) as Run
    const warnings = listWarnings(run)
    await hosts.settleUntil(() => store.get('s')?.summary?.state === 'WAITING_FOR_INPUT')
    const { pending = [] } = await run.result
    return { ...process, run, warnings, pending, asked: pending[0]! }
  }
  const resultOf = () =>
    store
      .read('s')
      .flatMap(({ data }) => /"status":"(\w+)"/.exec(data)?.[1] ?? [])
      .at(-1)
  return { hosts, store, paid, open, ask, resultOf }
}

describe('a question that expires', () => {
  it('says until when, and ends the call in the process that asked', async () => {
    const { hosts, paid, ask, store } = world()
    const { run, asked } = await ask()
    expect(asked.expiresAt).toBe(start + 15 * minute)
    expect(await run.result).toMatchObject({ wakeAt: asked.expiresAt })
    await hosts.pass(15 * minute - second)
    expect(run.state).toBe('WAITING_FOR_INPUT')
    await hosts.pass(2 * second)
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: refused })
    expect(paid).toEqual([])
    expect(() => run.approve(asked)).toThrow(fault('unknown_call'))
    expect(checkSessionLog(store.read('s'))).toBeNull()
  })

  it('lets the call run that was approved in time', async () => {
    const { hosts, paid, ask } = world()
    const { run, asked } = await ask()
    await hosts.pass(15 * minute - second)
    run.approve(asked)
    await hosts.settleUntil(() => run.state === 'COMPLETED')
    expect(paid).toEqual([{ n: 1, at: start + 15 * minute - second }])
    await hosts.pass(hour)
    expect(paid).toHaveLength(1)
  })

  it.each([
    ['pause', 'PAUSED'],
    ['cancel', 'CANCELLED'],
  ] as const)('may %s the run', async (onExpiry, state) => {
    const { hosts, paid, ask, store } = world({ approvals: { expiresMs: 15 * minute, onExpiry } })
    const { run, asked } = await ask()
    expect(asked.onExpiry).toBe(onExpiry)
    await hosts.pass(16 * minute)
    const rest = await run.result
    expect(rest).toMatchObject({ state, reason: 'approval_expired' })
    expect(rest.messages.at(-1)).toMatchObject({ role: 'tool', content: refused })
    if (onExpiry === 'pause') {
      run.resume()
      await hosts.settleUntil(() => run.state === 'COMPLETED')
    }
    expect([paid, checkSessionLog(store.read('s'))]).toEqual([[], null])
  })

  it('starts its call without waiting for the batch, and each has its own time', async () => {
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
    expect(messages.flatMap((one) => (one.role === 'tool' ? [one.content.slice(0, 40)] : []))).toEqual(
      ['Not executed: no decision came within 1 ', 'ok', 'ok'].map((content) =>
        content === 'ok' ? expect.any(String) : content,
      ),
    )
    expect(checkSessionLog(store.read('s'))).toBeNull()
  })

  it('ends an approved call that waits for a free place until its time has passed', async () => {
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
    expect(checkSessionLog(store.read('s'))).toBeNull()
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
    expect(checkSessionLog(store.read('s'))).toBeNull()
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
    else if (end === 'release') await hosts.until(releaseRun(run))
    else for (const one of (await run.result).pending ?? []) run.reject(one)
    if (end !== 'release')
      await hosts.settleUntil(() => run.state === 'COMPLETED' || run.state === 'CANCELLED')
    expect([...timers.values()].filter((ms) => ms === hour)).toEqual([])
  })

  it('takes the strictest end of several, and a decision replaces the terms of the agent', async () => {
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
    const { asked } = await ask()
    expect([asked.expiresAt, asked.onExpiry]).toEqual([start + hour, 'pause'])
    const never = world({ policy: policy('a', { expiresMs: 0 }) })
    expect((await never.ask()).asked).not.toHaveProperty('expiresAt')
  })
})

describe('while no process holds the session', () => {
  it('its row and its alarm say when, and a waker in another process ends the question', async () => {
    const { hosts, paid, ask, open, store } = world()
    const { host } = await ask()
    host.kill()
    expect(store.get('s')?.summary).toMatchObject({ wakeAt: start + 15 * minute })
    expect(store.timers.get('wake:s')).toMatchObject({ at: start + 15 * minute })
    const { agents, host: other } = open()
    const waker = createWaker(agents, { clock: other.clock, pollMs: 5000 })
    waker.start()
    await hosts.pass(15 * minute - second)
    expect(store.get('s')?.summary?.state).toBe('WAITING_FOR_INPUT')
    await hosts.pass(7 * second)
    expect(store.get('s')?.summary).toMatchObject({ state: 'COMPLETED' })
    expect([paid, store.timers.list({ prefix: '', limit: 9 })]).toEqual([[], []])
  })

  it('an answer that comes too late is refused before it is stored', async () => {
    const { hosts, paid, ask, open, store } = world()
    const { host, asked } = await ask()
    host.kill()
    const { agent } = open()
    await hosts.pass(15 * minute)
    const before = store.read('s').length
    for (const type of ['approve', 'reject'] as const) {
      // oxlint-disable-next-line no-await-in-loop -- one answer after the other
      await expect(agent.send('s', { type, ...asked })).rejects.toThrow(fault('approval_expired'))
    }
    expect([store.read('s').length, store.inbox.read('s'), paid]).toEqual([before, [], []])
  })

  it('an answer that lay unread until its time had come is too late', async () => {
    const { hosts, paid, ask, open } = world()
    const { host, asked } = await ask()
    host.kill()
    const { agent, agents } = open()
    expect((await agent.send('s', { type: 'approve', ...asked })).status).toBe('waiting')
    await hosts.pass(15 * minute)
    const rest = await hosts.until(runSession(agents, { session: 's' }))
    expect([rest.state, rest.output, paid]).toEqual(['COMPLETED', refused, []])
  })

  it('runSession says how long to wait, ends the question then, and takes no answer later', async () => {
    const { hosts, paid, open } = world()
    const { agents } = open()
    const rest = await hosts.until(runSession(agents, { session: 's', input: 'Pay.' }))
    expect(rest).toMatchObject({ state: 'WAITING_FOR_INPUT', wakeMs: 15 * minute })
    await hosts.pass(5 * minute)
    const early = await hosts.until(runSession(agents, { session: 's' }))
    expect(early).toMatchObject({ state: 'WAITING_FOR_INPUT', wakeMs: 10 * minute })
    await hosts.pass(10 * minute)
    const answers = [{ type: 'approve' as const, ...rest.pending![0]! }]
    const { callId, fingerprint } = answers[0]!
    const late = await hosts.until(
      runSession(agents, { session: 's', answers: [{ type: 'approve', callId, fingerprint }] }),
    )
    expect([late.state, late.output, paid]).toEqual(['COMPLETED', refused, []])
  })

  it('runSession ends the question also where its timer has not fired yet', async () => {
    const { hosts, paid, ask, open } = world()
    const { host, asked } = await ask()
    host.kill()
    const { host: other, agents } = open()
    const setTimer = other.clock.setTimeout.bind(other.clock)
    other.clock.setTimeout = (fn, ms) => (ms === 0 ? 0 : setTimer(fn, ms))
    await hosts.pass(15 * minute)
    const { callId, fingerprint } = asked
    const answers = [{ type: 'approve' as const, callId, fingerprint }]
    const late = await hosts.until(runSession(agents, { session: 's', answers }))
    expect([late.state, late.output, paid]).toEqual(['COMPLETED', refused, []])
  })

  it.each([
    ['ahead', hour],
    ['behind', -hour],
  ])('the time is that of the process that asked, for one whose clock is an hour %s', async (_, skew) => {
    for (const [waits, n] of [
      [14 * minute, 1],
      [15 * minute + second, 0],
    ] as const) {
      const { hosts, paid, ask, open } = world()
      // oxlint-disable-next-line no-await-in-loop -- one world after the other
      const { host, asked } = await ask()
      host.kill()
      const { agent } = open(skew)
      // oxlint-disable-next-line no-await-in-loop -- as above
      await hosts.pass(waits)
      // oxlint-disable-next-line no-await-in-loop -- as above
      const run = await hosts.until(agent.resume('s'))
      if (n === 1) run.approve(asked)
      else expect(() => run.approve(asked)).toThrow(fault('approval_expired'))
      // oxlint-disable-next-line no-await-in-loop -- as above
      await hosts.pass(second)
      // oxlint-disable-next-line no-await-in-loop -- as above
      expect([(await run.result).state, paid.length]).toEqual(['COMPLETED', n])
    }
  })

  it('a process that resumes the session ends the question in time', async () => {
    const { hosts, ask, open, store } = world()
    const { host } = await ask()
    host.kill()
    const { agent } = open()
    const run = await hosts.until(agent.resume('s'))
    await hosts.pass(14 * minute)
    expect(run.state).toBe('WAITING_FOR_INPUT')
    await hosts.pass(2 * minute)
    expect([(await run.result).state, checkSessionLog(store.read('s'))]).toEqual(['COMPLETED', null])
  })

  it('a store without timers ends no question, and the process that asks warns once', async () => {
    const calls: [string, object][] = [1, 2].map((n) => ['pay', { n }])
    const { hosts, paid, ask, open, store } = world({ calls, timers: false })
    const { host, run, warnings, pending } = await ask()
    expect(warnings).toEqual(['no_timers'])
    run.approve(pending[0]!)
    await hosts.pass(14 * minute)
    expect([paid.length, run.state, warnings]).toEqual([1, 'WAITING_FOR_INPUT', ['no_timers']])
    host.kill()
    await hosts.pass(hour)
    expect(store.get('s')?.summary?.state).toBe('WAITING_FOR_INPUT')
    const again = await hosts.until(open().agent.resume('s'))
    await hosts.pass(second)
    expect([paid.length, (await again.result).output]).toEqual([1, refused])
    expect((await world().ask()).warnings).toEqual([])
  })

  it('a process leaves the question to the one that has taken the session', async () => {
    const { hosts, ask, open, paid } = world()
    const { run, asked } = await ask()
    const { agent } = open()
    const other = await hosts.until(agent.resume('s'))
    other.approve(asked)
    await hosts.settleUntil(() => other.state === 'COMPLETED')
    await hosts.pass(16 * minute)
    expect([run.state, other.state, paid.length]).toEqual(['WAITING_FOR_INPUT', 'COMPLETED', 1])
  })

  it('a fork starts the time with an approval', async () => {
    const { hosts, ask, open, paid, store } = world()
    await ask()
    await hosts.pass(10 * minute)
    const { agent } = open()
    const id = await hosts.until(agent.fork('s'))
    expect(store.get(id)?.summary).not.toHaveProperty('wakeAt')
    const fork = (await hosts.until(agent.resume(id))) as Run
    const { pending = [] } = await fork.result
    expect(pending[0]).not.toHaveProperty('expiresAt')
    await hosts.pass(hour)
    fork.approve(pending[0]!)
    await hosts.settleUntil(() => fork.state === 'COMPLETED')
    expect(paid).toHaveLength(1)
  })
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
  ] as const)('rises with its time, and the run above ends it: %s', async (onExpiry, state) => {
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
    const asked = times.map((n) => ['pay', { n }] as const)
    const clerk = createAgent({ model: createModel(...asked), clock, policy, tools: [work('pay')] })
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
  it('show until when, get 409 for a late answer, and then the end of the call', async () => {
    const { hosts, paid, ask, open, store } = world()
    const { host, asked } = await ask()
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
      toolCallId: asked.callId,
      state: 'approval-responded',
      input: {},
      approval: { id: `${asked.callId}~${asked.messageId}~${asked.fingerprint}`, approved: true },
    }
    const late = await post({ id: 's', messages: [{ id: 'a', role: 'assistant', parts: [part] }] })
    expect([late.status, JSON.parse(await read(late)).error.code]).toEqual([409, 'approval_expired'])
    await hosts.pass(second)
    expect([store.get('s')?.summary?.state, paid]).toEqual(['COMPLETED', []])
  })
})

describe('bad input', () => {
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
    'a policy that says %j denies the call',
    async (terms) => {
      const policy = { id: 'p', decide: () => ({ decision: 'ask', ...terms }) } as unknown as Policy
      const { hosts, open, paid } = world({ policy })
      const run = open().agent.run('Pay.', { session: 's' })
      await hosts.settleUntil(() => run.state === 'COMPLETED')
      expect([(await run.result).output, paid]).toEqual([expect.stringContaining('could not be read'), []])
    },
  )
})
