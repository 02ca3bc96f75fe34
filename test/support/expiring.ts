import {
  type AgentOptions,
  createAgent,
  defineAgents,
  memoryStore,
  type Run,
  runSession,
} from '../../src/index.js'
import { createWaker } from '../../src/fleet/index.js'
import { wait } from '../../src/core/base/clock.js'
import type { ModelProvider } from '../../src/core/models/provider.js'
import type { SessionStore } from '../../src/stores/index.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { type Host, Hosts } from '../fleet/host-clocks.js'
import type { Place } from '../stores/support.js'
import { usePlace } from '../stores/use-place.js'
import { call as callOf, plainAnswer } from './manual-model.js'
import { tool } from './tools.js'

export const start = Date.parse('2026-05-04T06:00:00Z')
export const [second, minute, hour] = [1000, 60_000, 3_600_000]
export const fault = (code: string) => expect.objectContaining({ code })
export const refused = 'Not executed: no decision arrived within 15 minutes. This is not a refusal.'

/** Makes these calls once, then answers with the last result. */
export function createModel(...calls: (readonly [name: string, input?: object])[]): ModelProvider {
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

/** Opens another connection to the same place. */
type OpenStore = (now: () => number) => SessionStore

export function openMemory(): OpenStore {
  let store: SessionStore | undefined
  return (now) => (store ??= memoryStore({ now }))
}

interface WorldOptions extends Partial<AgentOptions> {
  calls?: (readonly [string, object?])[]
  /** Milliseconds that a payment takes. */
  takes?: number
  openStore?: OpenStore
}

/** The codes of the warnings so far. */
function listWarnings(run: Run): string[] {
  const codes: string[] = []
  run.events$.subscribe((event) => void (event.type === 'warning' && codes.push(event.code)))
  return codes
}

/** Processes with their own clocks on one store. Each runs an agent whose calls of `pay` ask for approval. */
export function world({
  calls = [['pay', { n: 1 }]],
  takes = 0,
  openStore = openMemory(),
  ...others
}: WorldOptions = {}) {
  const hosts = new Hosts(start, { awaitsStores: true })
  const now = () => hosts.now
  const store = openStore(now)
  const paid: { n: unknown; at: number }[] = []
  const open = (skew = 0) => {
    const host: Host = hosts.start(openStore(now), () => skew)
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
    await hosts.settleUntil(async () => (await store.get('s'))?.summary?.state === 'WAITING_FOR_INPUT')
    const { pending = [] } = await run.result
    return { ...process, run, warnings, pending, question: pending[0]! }
  }
  return { hosts, store, paid, open, ask }
}

/** The scenarios of questions that expire while no process holds their session, in one place. */
export function testUnheldQuestions(makePlace: () => Place): void {
  const { open: openStore } = usePlace(makePlace)

  it('its row and its alarm have the time, and a waker in another process ends the question', async () => {
    const { hosts, paid, ask, open, store } = world({ openStore })
    const { host } = await ask()
    host.kill()
    expect((await store.get('s'))?.summary).toMatchObject({ wakeAt: start + 15 * minute })
    expect(await store.timers?.get('wake:s')).toMatchObject({ at: start + 15 * minute })
    const { agents, host: other } = open()
    const waker = createWaker(agents, { clock: other.clock, pollMs: 5000 })
    waker.start()
    await hosts.pass(15 * minute - second)
    expect((await store.get('s'))?.summary?.state).toBe('WAITING_FOR_INPUT')
    await hosts.pass(7 * second)
    expect((await store.get('s'))?.summary).toMatchObject({ state: 'COMPLETED' })
    expect([paid, await store.timers?.list({ prefix: '', limit: 9 })]).toEqual([[], []])
  })

  it('a late answer is refused before it is stored', async () => {
    const { hosts, paid, ask, open, store } = world({ openStore })
    const { host, question } = await ask()
    host.kill()
    const { agent } = open()
    await hosts.pass(15 * minute)
    const before = (await store.read('s')).length
    for (const type of ['approve', 'reject'] as const) {
      await expect(agent.send('s', { type, ...question })).rejects.toThrow(fault('approval_expired'))
    }
    expect([(await store.read('s')).length, await store.inbox?.read('s'), paid]).toEqual([before, [], []])
  })

  it('an answer that is unread at the deadline is too late', async () => {
    const { hosts, paid, ask, open } = world({ openStore })
    const { host, question } = await ask()
    host.kill()
    const { agent, agents } = open()
    expect((await agent.send('s', { type: 'approve', ...question })).status).toBe('waiting')
    await hosts.pass(15 * minute)
    const rest = await hosts.until(runSession(agents, { session: 's' }))
    expect([rest.state, rest.output, paid]).toEqual(['COMPLETED', refused, []])
  })

  it('runSession returns the waiting time, ends the question at its deadline, and accepts no later answer', async () => {
    const { hosts, paid, open } = world({ openStore })
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

  it('runSession also ends the question if its timer has not fired yet', async () => {
    const { hosts, paid, ask, open } = world({ openStore })
    const { host, question } = await ask()
    host.kill()
    const { host: other, agents } = open()
    const setTimer = other.clock.setTimeout.bind(other.clock)
    other.clock.setTimeout = (fn, ms) => (ms === 0 ? 0 : setTimer(fn, ms))
    await hosts.pass(15 * minute)
    const { callId, fingerprint } = question
    const answers = [{ type: 'approve' as const, callId, fingerprint }]
    const late = await hosts.until(runSession(agents, { session: 's', answers }))
    expect([late.state, late.output, paid]).toEqual(['COMPLETED', refused, []])
  })

  it.each([
    ['an hour ahead', 'approved in time', hour, 14 * minute, 1],
    ['an hour ahead', 'too late', hour, 15 * minute + second, 0],
    ['an hour behind', 'approved in time', -hour, 14 * minute, 1],
    ['an hour behind', 'too late', -hour, 15 * minute + second, 0],
  ])(
    'the time is that of the process that asked, for a process whose clock is %s: %s',
    async (_, __, skew, waits, n) => {
      const { hosts, paid, ask, open } = world({ openStore })
      const { host, question } = await ask()
      host.kill()
      const { agent } = open(skew)
      await hosts.pass(waits)
      const run = await hosts.until(agent.resume('s'))
      if (n === 1) run.approve(question)
      else expect(() => run.approve(question)).toThrow(fault('approval_expired'))
      await hosts.pass(second)
      expect([(await run.result).state, paid.length]).toEqual(['COMPLETED', n])
    },
  )

  it.each([
    ['ahead', hour],
    ['behind', -hour],
  ])(
    'answers during a call count by the time of the process that asked, from a clock an hour %s',
    async (_, skew) => {
      const calls: [string, object][] = [1, 2, 3].map((n) => ['pay', { n }])
      const { hosts, ask, open } = world({ openStore, calls, takes: hour })
      const { host, run, pending } = await ask()
      run.approve(pending[0]!)
      await hosts.settleUntil(() => run.state === 'WAITING_FOR_TOOL')
      await hosts.pass(second)
      host.kill()
      const { agent } = open(skew)
      await hosts.pass(13 * minute)
      expect((await agent.send('s', { type: 'approve', ...pending[1]! })).status).toBe('waiting')
      await hosts.pass(2 * minute)
      await expect(agent.send('s', { type: 'approve', ...pending[2]! })).rejects.toThrow(
        fault('approval_expired'),
      )
    },
  )

  it('a process that resumes the session ends the question in time', async () => {
    const { hosts, ask, open, store } = world({ openStore })
    const { host } = await ask()
    host.kill()
    const { agent } = open()
    const run = await hosts.until(agent.resume('s'))
    await hosts.pass(14 * minute)
    expect(run.state).toBe('WAITING_FOR_INPUT')
    await hosts.pass(2 * minute)
    expect([(await run.result).state, checkSessionLog(await store.read('s'))]).toEqual(['COMPLETED', null])
  })

  it('a process leaves the question to the process that has acquired the session', async () => {
    const { hosts, ask, open, paid } = world({ openStore })
    const { run, question } = await ask()
    const { agent } = open()
    const other = await hosts.until(agent.resume('s'))
    other.approve(question)
    await hosts.settleUntil(() => other.state === 'COMPLETED')
    await hosts.pass(16 * minute)
    expect([run.state, other.state, paid.length]).toEqual(['WAITING_FOR_INPUT', 'COMPLETED', 1])
  })

  it('a fork starts the time with an approval', async () => {
    const { hosts, ask, open, paid, store } = world({ openStore })
    await ask()
    await hosts.pass(10 * minute)
    const { agent } = open()
    const id = await hosts.until(agent.fork('s'))
    expect((await store.get(id))?.summary).not.toHaveProperty('wakeAt')
    const fork = (await hosts.until(agent.resume(id))) as Run
    const { pending = [] } = await fork.result
    expect(pending[0]).not.toHaveProperty('expiresAt')
    await hosts.pass(hour)
    fork.approve(pending[0]!)
    await hosts.settleUntil(() => fork.state === 'COMPLETED')
    expect(paid).toHaveLength(1)
  })
}
