import { type AgentOptions, createAgent, memoryStore, type Run } from '../../src/index.js'
import { wait } from '../../src/core/base/clock.js'
import type { ModelProvider } from '../../src/core/models/provider.js'
import type { SessionStore } from '../../src/stores/index.js'
import { type Host, Hosts } from '../fleet/host-clocks.js'
import { start } from './expiring.js'
import { call as callOf, plainAnswer } from './manual-model.js'
import { tool } from './tools.js'

export type Wanted = readonly [name: string, input?: object]

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
