import { type AgentOptions, createAgent, memoryStore, type Run, type RunResult } from '../../src/index.js'
import { wait } from '../../src/core/base/clock.js'
import type { ModelProvider } from '../../src/core/models/provider.js'
import type { SessionStore } from '../../src/stores/index.js'
import { type Host, Hosts } from '../fleet/host-clocks.js'
import type { Place } from '../stores/support.js'
import { usePlace } from '../stores/use-place.js'
import { minute, start } from './expiring.js'
import { call as callOf, plainAnswer } from './manual-model.js'
import { tool } from './tools.js'
import { checkSessionLog } from '../../src/testing/index.js'

export type Wanted = readonly [name: string, input?: object]

export const pay = (n: number, to = 'acme'): Wanted => ['pay', { n, to }]
/** The numbers of the calls that wait, in their batch. */
export const listAsked = ({ pending = [] }: RunResult) =>
  pending.map(({ callId }) => callId.replace(/_.*/, ''))

/** Makes the calls in the user's message, and then answers with the last result. */
export const obedient: ModelProvider = {
  provider: 'scripted',
  model: 'scripted-1',
  request: ({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return Promise.resolve({ ...plainAnswer, text: last.content })
    const words = typeof last?.content === 'string' ? last.content : '[]'
    const wanted = JSON.parse(words) as Wanted[]
    const toolCalls = wanted.map(([name, input], i) => callOf(`c${i}`, name, input))
    return Promise.resolve({ ...plainAnswer, toolCalls, finishReason: 'tool_calls' })
  },
}

interface WorldOptions extends Partial<AgentOptions> {
  /** Milliseconds that a payment takes. */
  takes?: number
  openStore?: (now: () => number) => SessionStore
  tool?: Parameters<typeof tool>[2]
}

/** Processes on one store. Each runs an agent whose calls of `pay` ask for approval. */
export function grantWorld({ takes = 0, openStore, tool: extra, ...others }: WorldOptions = {}) {
  const hosts = new Hosts(start, { awaitsStores: true })
  const now = () => hosts.now
  const memory = memoryStore({ now })
  const connect = () => openStore?.(now) ?? memory
  const store = connect()
  const paid: unknown[] = []
  const open = (options: Partial<AgentOptions> = {}) => {
    const host: Host = hosts.start(connect())
    const pay = tool(
      'pay',
      (input) => {
        if (!host.isDead) paid.push(input)
        return takes > 0 ? wait(host.clock, takes) : undefined
      },
      { needsApproval: true, timeoutMs: 0, ...extra },
    )
    const free = tool('free', () => undefined)
    const agent = createAgent({
      model: obedient,
      store: host.store,
      clock: host.clock,
      tools: [pay, free],
      ...others,
      ...options,
    })
    return { host, agent }
  }
  const first = open()
  /** Starts a run that makes these calls. */
  const order = (calls: Wanted[], { agent } = first) => {
    const run = agent.run(JSON.stringify(calls), { session: 's', by: 'ann' }) as Run
    const events: string[] = []
    run.events$.subscribe((event) => {
      if (event.type === 'approval_decided')
        events.push(`${event.outcome} ${event.callId.replace(/_.*/, '')}`)
      if (event.type === 'grant_changed') events.push(event.change)
    })
    return Object.assign(run, { events })
  }
  const rest = async (run: Run): Promise<string> => {
    await hosts.settle()
    await hosts.settleUntil(() => run.state !== 'RUNNING' && run.state !== 'WAITING_FOR_TOOL')
    return (await run.result).state
  }
  const reader = createAgent({ model: obedient, store })
  const listGrants = async () => (await reader.replay('s')).grants ?? []
  return { hosts, store, paid, open, order, rest, listGrants, ...first }
}

/** The scenarios of grants between processes, in one place. */
export function testSharedGrants(makePlace: () => Place): void {
  const { open: openStore } = usePlace(makePlace)

  it('a stored revocation counts before an approval in the process that asked', async () => {
    const { order, rest, paid, hosts, open, store } = grantWorld({ openStore })
    const run = order([pay(1), pay(2)])
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    const [one, two] = (await run.result).pending ?? []
    run.approve(one!, undefined, { by: 'bob' })
    await hosts.settleUntil(async () => (await store.get('s'))?.holder === null && run.events.length === 1)
    const { agent } = open()
    const revoked = await agent.send('s', { type: 'revoke', ...one!, by: 'bob' })
    expect(revoked.status).toBe('waiting')
    run.approve(two!, undefined, { by: 'cyd' })
    await hosts.settleUntil(() => run.events.length === 3)
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    expect([run.events, listAsked(await run.result), paid]).toEqual([
      ['approved c0', 'revoked c0', 'approved c1'],
      ['c0'],
      [],
    ])
    run.approve(one!, undefined, { by: 'cyd' })
    expect(await rest(run)).toBe('COMPLETED')
    expect(paid).toHaveLength(2)
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('ten uses start ten calls, although the processes die', async () => {
    const tool = { idempotent: true }
    const world = grantWorld({ openStore, tool, takes: minute, toolCalls: { concurrency: 1 } })
    const { order, rest, paid, hosts, open, store } = world
    await rest(order([['free']]))
    await world.agent.send('s', { type: 'grant', tool: 'pay', when: {}, uses: 10, by: 'bob' })
    let run = order(Array.from({ length: 12 }, (_, n) => pay(n))) as Run
    let { host } = world
    for (const minutes of [0.5, 2.5, 1.5, 3.5]) {
      await hosts.pass(minutes * minute)
      host.kill()
      const other = open()
      host = other.host
      await hosts.pass(minute)
      run = (await hosts.until(other.agent.resume('s'))) as Run
    }
    await hosts.pass(20 * minute)
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    expect(listAsked(await run.result)).toEqual(['c10', 'c11'])
    // An idempotent call that was running when its process died runs again.
    const numbers = new Set(paid.map((input) => (input as { n: number }).n))
    expect([...numbers]).toEqual(Array.from({ length: 10 }, (_, n) => n))
    expect((await world.listGrants()).map(({ uses }) => uses)).toEqual([0])
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })
}
