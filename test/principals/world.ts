import { SimulatedClock } from 'xstate'
import type { ModelResponse } from '../../machines/agent/model-response.js'
import {
  type Agent,
  type Agents,
  type Approvers,
  createAgent,
  defineAgents,
  defineTool,
  type ModelProvider,
  type SessionStore,
} from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { call, settled } from '../support/manual-model.js'

/** Words that only the session's owner used. An answer that contains them has shown the session. */
export const canary = 'KOLIBRI'
/** The session of every cell. */
export const session = 'ann:c1.1'
/** Its name on a page, and its batch and item. */
export const chatId = 'c1.1'
export const batchItem = { batch: 'ann:c1', item: '1' } as const
/** The session's input. */
export const firstMessage = `Pay ${canary}.`

/** The agent of a process. `billing 3` has started the session. */
export const agentKinds = [
  'right agent',
  'accepting agent',
  'other agent',
  'other version',
  'unnamed agent',
] as const
export type AgentKind = (typeof agentKinds)[number]

/** The session's state when a surface is used. */
export const standings = [
  'new',
  'waiting',
  'interrupted',
  'poisoned',
  'ended',
  'held elsewhere',
  'left by its holder',
] as const
/** The session waits for other people than the sender of an answer. */
export const closedStandings = ['waiting for others', 'waiting for one more'] as const
export type Standing = (typeof standings)[number] | (typeof closedStandings)[number]

/** Who sends the answers of every surface. */
export const sender = 'ann'

const approversOf: Partial<Record<Standing, Approvers>> = {
  'waiting for others': { ids: ['bob', 'cyd'], count: 2 },
  'waiting for one more': { count: 2 },
}

/** One process: a separate view of the store, its agents, and their actions. */
export interface Process {
  kind: AgentKind
  store: SessionStore
  agent: Agent
  /** The same agent in a list. The unnamed agent has no list. */
  agents: Agents | undefined
  /** The number of its model requests. */
  requestCount: number
  /** The `context` of each payment. */
  paid: unknown[]
  /** The model stops answering. */
  hang(): void
  /** As kill -9: it writes no more records, and its lease has expired. */
  kill(): void
}

/** A store with one session in the requested state, and processes around it. */
export class World {
  readonly clock = new SimulatedClock()
  readonly near: SyncSessionStore
  readonly processes: Process[] = []
  holder: Process | undefined
  #sessionState: Standing = 'new'

  constructor(near: SyncSessionStore) {
    this.near = near
  }

  process(kind: AgentKind): Process {
    const view = new View(this.near)
    const own = { kind, requestCount: 0, paid: [] as unknown[], hangs: false }
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object' },
      needsApproval: true,
      execute: (_input: unknown, { context }) => {
        own.paid.push(context)
        return 'paid'
      },
    })
    const approvers = approversOf[this.#sessionState]
    const agent = createAgent({
      model: model(own),
      instructions: kind,
      store: view.store,
      tools: [pay],
      clock: this.clock,
      ...(approvers && { approvals: { approvers } }),
      // The model of a hanging process hangs until the process is gone.
      streamIdleMs: 0,
    }) as unknown as Agent
    const agents = kind === 'unnamed agent' ? undefined : defineAgents(listed(kind, agent))
    const process: Process = Object.assign(own, {
      store: view.store,
      agent,
      agents,
      hang: () => {
        own.hangs = true
      },
      kill: () => view.die(),
    })
    this.processes.push(process)
    return process
  }

  /** Brings the session to this state with `billing 3`. */
  async bring(sessionState: Standing): Promise<void> {
    this.#sessionState = sessionState
    if (sessionState === 'new') return
    const first = this.process('right agent')
    // An active session's model has a request without an answer.
    const isAnswered = isWaiting(sessionState) || sessionState === 'ended'
    if (!isAnswered) first.hang()
    const run = first.agent.run(firstMessage, { session, context: 'initiator' })
    run.result.catch(() => undefined)
    if (isAnswered) {
      const { pending = [] } = await run.result
      if (sessionState === 'waiting' || sessionState === 'waiting for others') return
      for (const one of pending) run.approve(one, undefined, { by: sender })
      await run.result
      return
    }
    await this.#until(() => first.requestCount > 0)
    if (sessionState === 'held elsewhere' || sessionState === 'left by its holder') {
      this.holder = first
      return
    }
    first.kill()
    if (sessionState === 'poisoned') for (let i = 0; i < 5; i += 1) await this.#dieOnIt()
  }

  /** The operator approves later calls of a tool. Returns the id of the grant. */
  async giveGrant(): Promise<string> {
    if (this.#sessionState === 'new') return 'none'
    const { agent } = this.process('right agent')
    await agent.send(session, { type: 'grant', tool: 'lend', when: {}, by: sender })
    const text = this.near.inbox?.read(session).at(-1)?.text ?? ''
    return (JSON.parse(text) as { grant: { id: string } }).grant.id
  }

  /** A process takes the session and ends before it makes progress. */
  async #dieOnIt(): Promise<void> {
    const next = this.process('right agent')
    next.hang()
    const run = await next.agent.resume(session)
    run.result.catch(() => undefined)
    await this.#until(() => next.requestCount > 0)
    next.kill()
  }

  async #until(isThere: () => boolean): Promise<void> {
    for (let i = 0; i < 10_000 && !isThere(); i += 1) await settled()
    if (!isThere()) throw new Error('It did not come about.')
  }

  /** Advances time until the promise settles. Work without an end is observed for 75 seconds. */
  async passing(awaited: Promise<unknown>): Promise<void> {
    const seen = { isOver: false }
    const over = (): void => {
      seen.isOver = true
    }
    awaited.then(over, over)
    for (let i = 0; i < 150 && !seen.isOver; i += 1) {
      await settled()
      this.clock.increment(500)
    }
  }

  /** A process that held the session ends during the observation. */
  holderLeaves(): void {
    if (this.#sessionState !== 'left by its holder') return
    this.holder?.kill()
    this.holder = undefined
  }

  /** Advances time until every session is free. The holder keeps the session of the cell. */
  async rest(): Promise<void> {
    const isFree = (): boolean =>
      this.near
        .list({ children: true })
        .every(({ id, holder }) => holder === null || (id === session && this.holder !== undefined))
    for (let i = 0; i < 10_000; i += 1) {
      for (let quiet = 0; quiet < 5; quiet += 1) await settled()
      this.clock.increment(500)
      if (i >= 20 && isFree()) return
    }
    throw new Error('It never came to a rest.')
  }

  end(): void {
    for (const process of this.processes) process.kill()
  }
}

const isWaiting = (sessionState: Standing): boolean =>
  sessionState === 'waiting' || closedStandings.some((one) => one === sessionState)

function listed(kind: AgentKind, agent: Agent): Parameters<typeof defineAgents>[0] {
  switch (kind) {
    case 'other agent':
      return { support: agent }
    case 'right agent':
      return { billing: { agent, version: '3' } }
    case 'accepting agent':
      return { billing: { agent, version: '4', accepts: ['3', '4'] } }
    default:
      return { billing: { agent, version: '4' } }
  }
}

/** The store as one process sees it. */
class View {
  readonly store: SessionStore
  readonly #near: SyncSessionStore
  readonly #tokens = new Map<
    string,
    { sessionId: string; token: string; holder: string; expiresAt: number }
  >()
  #isDead = false

  constructor(near: SyncSessionStore) {
    this.#near = near
    const alive = <Args extends unknown[], Value>(act: (...args: Args) => Value) => {
      return (...args: Args): Value => {
        if (this.#isDead) throw new Error('This process has ended.')
        return act(...args)
      }
    }
    const { inbox, timers } = near
    this.store = {
      acquire: alive((id, options) => {
        const lease = near.acquire(id, options)
        this.#tokens.set(lease.token, lease)
        return lease
      }),
      renew: alive((lease, ttlMs) => near.renew(lease, ttlMs)),
      release: alive((lease) => near.release(lease)),
      append: alive((lease, records, summary, options) => near.append(lease, records, summary, options)),
      read: alive((id, range) => near.read(id, range)),
      get: alive((id) => near.get(id)),
      list: alive((options) => near.list(options)),
      setMark: alive((id, seq, mark) => near.setMark?.(id, seq, mark) ?? false),
      delete: alive((id) => near.delete(id)),
      close: () => undefined,
      timers: {
        get: alive((id) => timers.get(id)),
        set: alive((list) => timers.set(list)),
        listDue: alive((options) => timers.listDue(options)),
        list: alive((options) => timers.list(options)),
        move: alive((step) => timers.move(step)),
      },
      ...(inbox && {
        inbox: {
          put: alive((id, text) => inbox.put(id, text)),
          read: alive((id) => inbox.read(id)),
          remove: alive((id, messages) => inbox.remove(id, messages)),
        },
      }),
    }
  }

  die(): void {
    this.#isDead = true
    for (const lease of this.#tokens.values()) this.#near.release(lease)
  }
}

/** Pays first, then answers. */
function model(own: { requestCount: number; hangs: boolean }): ModelProvider {
  return {
    provider: 'scripted',
    model: 'scripted-1',
    request: ({ messages }, { signal }) => {
      own.requestCount += 1
      if (own.hangs)
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        })
      const isPaid = messages.some(({ role }) => role === 'tool')
      const answer: ModelResponse = {
        text: isPaid ? 'Done.' : '',
        reasoning: '',
        refusal: null,
        toolCalls: isPaid ? [] : [call('a', 'pay', { to: 'Ann' })],
        finishReason: isPaid ? 'stop' : 'tool_calls',
        complete: true,
        usage: {
          inputTokens: 10,
          outputTokens: 5,
          totalTokens: 15,
          cachedInputTokens: 0,
          reasoningTokens: 0,
        },
        model: 'scripted-1',
      }
      return Promise.resolve(answer)
    },
  }
}
