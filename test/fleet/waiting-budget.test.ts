import { SimulatedClock } from 'xstate'
import { type BudgetError, createBudget, createWaker } from '../../src/fleet/index.js'
import {
  createAgent,
  defineAgents,
  memoryStore,
  runSession,
  type AgentEvent,
  type AgentOptions,
} from '../../src/index.js'
import { checkSessionLog } from '../../src/testing/index.js'
import type { ModelProvider } from '../../src/core/models/provider.js'
import { Hosts } from './host-clocks.js'

const start = Date.parse('2026-05-04T06:20:00Z')
const [minute, hour] = [60_000, 3_600_000]
const nextHour = Date.parse('2026-05-04T07:00:00Z')
const waiting = { state: 'PAUSED', reason: 'shared_budget', wakeAt: nextHour, resumable: true }

/** Answers immediately, with 300 tokens. `calls` are the tool calls before the answer. */
function answering(
  requests: unknown[] = [],
  calls: { name: string; arguments: string }[] = [],
): ModelProvider {
  const left = [...calls]
  return {
    provider: 'own',
    model: 'm',
    request: async (request) => {
      requests.push(request)
      const next = left.shift()
      return {
        text: next ? '' : 'Done.',
        reasoning: '',
        refusal: null,
        toolCalls: next ? [{ id: `c${left.length}`, type: 'function' as const, function: next }] : [],
        finishReason: next ? 'tool_calls' : 'stop',
        complete: true,
        model: 'm',
        usage: {
          inputTokens: 100,
          outputTokens: 200,
          totalTokens: 300,
          cachedInputTokens: 0,
          reasoningTokens: 0,
        },
      }
    },
  }
}

function setUp({
  calls,
  ...options
}: { calls?: { name: string; arguments: string }[] } & Partial<AgentOptions> = {}) {
  const clock = new SimulatedClock()
  clock.set(start)
  const store = memoryStore({ now: () => clock.now() })
  const budget = createBudget({ id: 'tenant', tokens: 2000, per: 'hour', onEmpty: 'wait', store, clock })
  const requests: unknown[] = []
  const agent = createAgent({
    model: answering(requests, calls),
    sampling: { maxTokens: 1000 },
    budgets: [budget],
    store,
    clock,
    ...options,
  })
  const empty = async (tokens = 1500) => (await budget.reserve({ tokens })).settle({ tokens })
  return { clock, store, budget, requests, agent, empty }
}

describe('a run whose shared budget is used up', () => {
  it('rests until the next window, which its result, its events and its row show', async () => {
    const { agent, store, requests, empty } = setUp()
    await empty()
    const run = agent.run('Go.', { session: 's' })
    const events: AgentEvent[] = []
    for await (const event of run) events.push(event)
    const result = await run.result
    expect(result).toMatchObject({
      ...waiting,
      error: { code: 'shared_budget', budget: 'tenant', recoverable: true },
    })
    expect(result.error?.message).toContain('resets at 2026-05-04T07:00:00.000Z')
    expect(events.filter(({ type }) => type === 'state_changed').at(-1)).toMatchObject({
      to: 'PAUSED',
      reason: 'shared_budget',
      wakeAt: nextHour,
    })
    expect(store.get('s')?.summary).toMatchObject({ state: 'PAUSED', wakeAt: nextHour })
    expect(requests).toEqual([])
    expect(checkSessionLog(store.read('s'))).toBeNull()
  })

  it('continues in the next window, with a request for the same step', async () => {
    const { agent, budget, clock, requests, empty } = setUp()
    await empty()
    const run = agent.run('Go.')
    const finished: string[] = []
    run.events$.subscribe((event) => {
      if (event.type === 'stream_chunk' && event.finished) finished.push(`${run.state} ${event.attempt}`)
    })
    await run.result
    clock.increment(nextHour - start)
    run.resume()
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.', steps: 1 })
    // The awaited answer is one attempt with one end of stream.
    expect(finished).toHaveLength(1)
    expect(requests).toHaveLength(1)
    expect((await budget.status()).spent.tokens).toBe(300)
  })

  it('rests again if it is woken too early, or if others have emptied the next window', async () => {
    const { agent, clock, empty } = setUp()
    await empty()
    const run = agent.run('Go.')
    await run.result
    run.resume()
    expect(await run.result).toMatchObject(waiting)
    clock.increment(nextHour - start)
    await empty()
    run.resume()
    expect(await run.result).toMatchObject({ ...waiting, wakeAt: nextHour + hour })
  })

  it('pauses if requested, and waits after it is resumed', async () => {
    const { agent, budget, empty } = setUp({ budgets: [] })
    await empty()
    const reserve: typeof budget.reserve = (...args) => {
      run.pause()
      return budget.reserve(...args)
    }
    const run = agent.run('Go.', { budgets: [{ ...budget, reserve }] })
    const rest = await run.result
    expect(rest).toMatchObject({ state: 'PAUSED', reason: 'paused' })
    expect('wakeAt' in rest).toBe(false)
  })

  it('can be cancelled, steered and postponed while it rests', async () => {
    const { agent, empty } = setUp()
    await empty()
    const cancelled = agent.run('Go.')
    await cancelled.result
    cancelled.cancel()
    expect((await cancelled.result).state).toBe('CANCELLED')
    const steered = agent.run('Go.')
    await steered.result
    steered.steer('Hurry.')
    const rest = await steered.result
    expect(rest).toMatchObject(waiting)
    expect(rest.messages.at(-1)).toMatchObject({ role: 'user', content: 'Hurry.' })
    steered.resume({ at: nextHour + hour })
    expect(await steered.result).toMatchObject({
      state: 'PAUSED',
      reason: 'sleeping',
      wakeAt: nextHour + hour,
    })
  })

  it('can be set to an earlier wake time than the next window', async () => {
    const { agent, store, empty } = setUp()
    await empty()
    const run = agent.run('Go.', { session: 's' })
    await run.result
    run.resume({ at: nextHour - minute })
    expect(await run.result).toMatchObject({ reason: 'sleeping', wakeAt: nextHour - minute })
    expect(checkSessionLog(store.read('s'))).toBeNull()
  })

  it('suspends its deadline while it rests', async () => {
    const { agent, clock, empty } = setUp({ limits: { timeoutMs: minute } })
    await empty()
    const run = agent.run('Go.')
    await run.result
    clock.increment(nextHour - start)
    run.resume()
    expect((await run.result).state).toBe('COMPLETED')
  })

  it('is resumed by another process, and forked', async () => {
    const { agent, clock, empty } = setUp()
    await empty()
    await agent.run('Go.', { session: 's' }).result
    clock.increment(nextHour - start)
    const fork = await agent.resume(await agent.fork('s'))
    fork.resume()
    expect((await fork.result).state).toBe('COMPLETED')
    const run = await agent.resume('s')
    run.resume()
    expect((await run.result).state).toBe('COMPLETED')
  })

  it('lets the parent run sleep if it is a sub-agent’s, and is woken with it', async () => {
    const { budget, clock, store, empty } = setUp()
    const child = createAgent({ model: answering(), sampling: { maxTokens: 1000 }, budgets: [budget], clock })
    const parent = createAgent({
      model: answering([], [{ name: 'research', arguments: '{"task":"Go."}' }]),
      tools: [child.asTool({ name: 'research', description: 'Researches.' })],
      store,
      clock,
    })
    await empty()
    const run = parent.run('Go.', { session: 'p' })
    expect(await run.result).toMatchObject({ state: 'PAUSED', reason: 'sleeping', wakeAt: nextHour })
    clock.increment(nextHour - start)
    run.resume()
    expect((await run.result).state).toBe('COMPLETED')
    expect((await budget.status()).spent.tokens).toBe(300)
    expect(checkSessionLog(store.read('p'))).toBeNull()
  })

  it('ends if no window can pay for its request', async () => {
    const { agent } = setUp({ sampling: { maxTokens: 5000 } })
    const result = await agent.run('Go.').result
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'shared_budget' })
    expect(result.error?.message).toContain('This request alone exceeds the limit')
  })

  it('continues without a summary, and waits for its answer', async () => {
    const { agent, empty } = setUp({ context: { window: 1500, strategy: 'summarize' } })
    await empty()
    const long = 'A long word of the user. '.repeat(400)
    const history = [1, 2, 3, 4].map(() => ({ role: 'user' as const, content: long }))
    const result = await agent.run([...history, { role: 'user', content: 'Go.' }]).result
    expect(result).toMatchObject(waiting)
  })
})

describe('a budget with waiting runs', () => {
  it.each([
    ['without a window', { per: undefined }, /needs per/],
    ['with another value', { onEmpty: 'sleep' }, /'end' or 'wait'/],
  ])('is refused %s', (_what, options, message) => {
    const budgetOptions = {
      id: 'tenant',
      tokens: 1,
      per: 'day',
      onEmpty: 'wait',
      store: memoryStore(),
      ...options,
    }
    expect(() => createBudget(budgetOptions as never)).toThrow(
      expect.objectContaining({
        code: 'invalid_config',
        subject: 'onEmpty',
        message: expect.stringMatching(message),
      }),
    )
  })

  it('returns the waiting time to direct callers of reserve', async () => {
    const { budget, empty } = setUp()
    await empty()
    const refused = budget.reserve({ tokens: 1000 })
    await expect(refused).rejects.toMatchObject({
      code: 'budget_exceeded',
      waitMs: nextHour - start,
      resetsAt: nextHour,
    })
    await expect(budget.reserve({ tokens: 5000 })).rejects.toMatchObject({
      waitMs: null,
    } satisfies Partial<BudgetError>)
  })
})

/** Processes on one store with different clocks. */
function open() {
  const hosts = new Hosts(start)
  const shared = memoryStore({ now: () => hosts.now })
  const requests: unknown[] = []
  const begin = (skew = 0) => {
    const host = hosts.start(shared, () => skew)
    const { clock, store } = host
    const budget = createBudget({ id: 'tenant', tokens: 2000, per: 'hour', onEmpty: 'wait', store, clock })
    const agent = createAgent({
      model: answering(requests),
      sampling: { maxTokens: 1000 },
      budgets: [budget],
      store,
      clock,
    })
    const agents = defineAgents({ clerk: agent })
    const errors: unknown[] = []
    const waker = createWaker(agents, { clock, pollMs: 5000, onError: (error) => errors.push(error) })
    return { host, budget, agent, waker, errors }
  }
  const stateOf = (id: string) => shared.get(id)?.summary?.state
  return { hosts, shared, requests, begin, stateOf }
}

describe('runs that wait for a budget', () => {
  it.each([
    ['in step', [0, 0]],
    ['that differ by a minute', [-minute, minute]],
  ])('are woken once by processes with clocks %s', async (_, skews) => {
    const { hosts, shared, requests, begin, stateOf } = open()
    const processes = skews.map(begin)
    const [first] = processes
    await (await first?.budget.reserve({ tokens: 1500 }))?.settle({ tokens: 1500 })
    for (const { waker } of processes) waker.start()
    const run = first?.agent.run('Go.', { session: 's' })
    await hosts.settleUntil(() => stateOf('s') === 'PAUSED')
    await run?.result
    await hosts.pass(nextHour - start + 5 * minute)
    expect(stateOf('s')).toBe('COMPLETED')
    expect(requests).toHaveLength(1)
    expect(shared.timers.list({ prefix: '', limit: 10 })).toEqual([])
    expect(processes.flatMap(({ errors }) => errors)).toEqual([])
    expect(checkSessionLog(shared.read('s'))).toBeNull()
  })

  it('all end, a few in each window, and no window exceeds its limit', async () => {
    const { hosts, requests, begin, stateOf } = open()
    const { agent, waker, budget } = begin()
    waker.start()
    const ids = Array.from({ length: 12 }, (_, i) => `s${i}`)
    for (const id of ids) void agent.run('Go.', { session: id }).result
    await hosts.settleUntil(() => ids.every((id) => ['PAUSED', 'COMPLETED'].includes(stateOf(id) ?? '')))
    const first = requests.length
    expect(first).toBeGreaterThan(0)
    expect(first).toBeLessThan(ids.length)
    await hosts.pass(4 * hour)
    expect(ids.map(stateOf)).toEqual(ids.map(() => 'COMPLETED'))
    expect(requests).toHaveLength(ids.length)
    expect((await budget.status()).spent.tokens).toBeLessThanOrEqual(2000)
  })

  it('are left resting by runSession, and continue with it in the next window', async () => {
    const { hosts, requests, begin } = open()
    const { agent, budget } = begin()
    await (await budget.reserve({ tokens: 1500 })).settle({ tokens: 1500 })
    const drive = async (options: { input?: string } = {}) => {
      const driven = runSession(agent, { session: 's', ...options })
      let isOver = false
      void driven.finally(() => (isOver = true))
      await hosts.settleUntil(() => isOver)
      return driven
    }
    const rest = { state: 'PAUSED', reason: 'shared_budget', wakeAt: nextHour }
    expect(await drive({ input: 'Go.' })).toMatchObject({ ...rest, wakeMs: nextHour - start })
    expect(await drive()).toMatchObject(rest)
    await hosts.pass(nextHour - start)
    expect(await drive()).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(requests).toHaveLength(1)
  })

  it('wait for the full window even if the clock of their host is ahead', async () => {
    const { hosts, requests, begin } = open()
    const [first, second] = [begin(20 * minute), begin()]
    await (await second.budget.reserve({ tokens: 1500 })).settle({ tokens: 1500 })
    let isAsked = false
    const model = {
      provider: 'own',
      model: 'm',
      request: () => {
        isAsked = true
        return new Promise<never>(() => undefined)
      },
    }
    const { clock, store } = first.host
    void createAgent({ model, store, clock }).run('Go.', { session: 's' })
    await hosts.settleUntil(() => isAsked)
    first.host.kill()
    await hosts.pass(minute)
    const drive = async () => {
      const driven = runSession(second.agent, { session: 's' })
      let isOver = false
      void driven.finally(() => (isOver = true))
      await hosts.settleUntil(() => isOver)
      return driven
    }
    const wakeMs = nextHour - start - minute
    expect(await drive()).toMatchObject({ state: 'PAUSED', reason: 'shared_budget', wakeMs })
    await hosts.pass(wakeMs - minute)
    expect(await drive()).toMatchObject({ state: 'PAUSED', wakeMs: minute })
    await hosts.pass(minute)
    expect(await drive()).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(requests).toHaveLength(1)
  })
})
