import { SimulatedClock } from 'xstate'
import { type BudgetStore, createBudget } from '../../src/fleet/index.js'
import {
  type AgentOptions,
  createAgent,
  memoryStore,
  ModelError,
  type ModelProvider,
  type ModelRequest,
  runSession,
  StoreError,
  withFallbacks,
} from '../../src/index.js'
import { tool } from '../support/tools.js'

/** One dollar per million input tokens, two per million output tokens. */
const prices = {
  m: { inputPerMillion: 1, outputPerMillion: 2 },
  n: { inputPerMillion: 1, outputPerMillion: 2 },
}
const sampling = { maxTokens: 1000 }

const answer = (
  over: object = {},
  usage: { inputTokens: number; outputTokens: number } | null = { inputTokens: 100, outputTokens: 200 },
) => ({
  text: 'Done.',
  reasoning: '',
  refusal: null,
  toolCalls: [],
  finishReason: 'stop',
  complete: true,
  model: 'm',
  usage: usage && {
    ...usage,
    totalTokens: usage.inputTokens + usage.outputTokens,
    cachedInputTokens: 0,
    reasoningTokens: 0,
  },
  ...over,
})

type Request = ModelProvider['request']

function provider(request: Request, model = 'm'): ModelProvider {
  return { provider: 'own', model, request }
}

function agentOf(request: Request, options: Partial<AgentOptions> = {}) {
  return createAgent({ model: provider(request), prices, sampling, ...options })
}

const budgetOf = (options: object = {}) =>
  createBudget({ id: 'tenant', usd: 1, store: memoryStore(), ...options })

describe('a shared budget', () => {
  it('reserves the worst case during a request, and counts the actual cost afterwards', async () => {
    const budget = budgetOf({ tokens: 100_000 })
    let during: Awaited<ReturnType<typeof budget.status>> | undefined
    const agent = agentOf(
      async () => {
        during = await budget.status()
        return answer()
      },
      { budgets: [budget] },
    )
    expect(await agent.run('Go.').result).toMatchObject({ state: 'COMPLETED' })
    expect(during?.live).toBe(1)
    expect(during?.reserved.tokens).toBeGreaterThanOrEqual(1000)
    expect(during?.reserved.usd).toBeGreaterThanOrEqual(0.002)
    expect(await budget.status()).toMatchObject({
      spent: { usd: 0.0005, tokens: 300 },
      reserved: { usd: 0, tokens: 0 },
      live: 0,
    })
  })

  it('that is empty ends the run before the request, and is named', async () => {
    let requestCount = 0
    const budget = budgetOf({ usd: 0.0025, per: 'day' })
    const agent = agentOf(
      async () => {
        requestCount += 1
        return answer()
      },
      { budgets: [budget] },
    )
    expect(await agent.run('Go.').result).toMatchObject({ state: 'COMPLETED' })
    const result = await agent.run('Go on.').result
    expect(result).toMatchObject({
      state: 'BUDGET_EXCEEDED',
      reason: 'shared_budget',
      error: { code: 'shared_budget', budget: 'tenant', recoverable: true },
    })
    expect(result.error?.message).toMatch(/budget 'tenant' is used up.*resets at/)
    expect(requestCount).toBe(1)
  })

  it('whose window can never pay for a request ends the run, and the error states that waiting does not help', async () => {
    const agent = agentOf(() => Promise.reject(new Error('It is asked.')), {
      budgets: [budgetOf({ usd: 0.0015, per: 'day' })],
    })
    const { state, error } = await agent.run('Go.').result
    expect([state, error?.message]).toEqual([
      'BUDGET_EXCEEDED',
      expect.stringContaining('This request alone exceeds the limit'),
    ])
  })

  it('is refused if another budget with its id is in another store', async () => {
    let requestCount = 0
    const agent = agentOf(
      async () => {
        requestCount += 1
        return answer()
      },
      { budgets: [budgetOf()], retry: { maxAttempts: 3, baseDelayMs: 1 } },
    )
    const { state, error } = await agent.run('Go.', { budgets: [budgetOf()] }).result
    expect([state, error?.code]).toEqual(['ERROR', 'shared_budget_conflict'])
    expect(error?.message).toContain("the id 'tenant' but different stores")
    expect(requestCount).toBe(0)
  })

  it('can be set for a run, for a resumed run, and by a function of its tags', async () => {
    const store = memoryStore()
    const seen: unknown[] = []
    const own = budgetOf({ id: 'own' })
    const acme = budgetOf({ id: 'acme' })
    const agent = agentOf(async () => answer(), {
      store,
      budgets: (run) => {
        seen.push(run)
        return run.tags['tenant'] === 'acme' ? [acme] : []
      },
    })
    await agent.run('Go.', { session: 'a', tags: { tenant: 'acme' }, budgets: [own] }).result
    expect(seen).toEqual([{ tags: { tenant: 'acme' }, sessionId: 'a' }])
    expect((await own.status()).spent.tokens).toBe(300)
    expect((await acme.status()).spent.tokens).toBe(300)
    await runSession(agent, { session: 'b', input: 'Go.', budgets: [own] })
    expect((await own.status()).spent.tokens).toBe(600)
    expect((await acme.status()).spent.tokens).toBe(300)
  })

  it('pays for sub-agents once', async () => {
    const budget = budgetOf()
    const child = agentOf(async () => answer(), { budgets: [budget] })
    const research = child.asTool({ name: 'research', description: 'Researches.' })
    let step = 0
    const agent = agentOf(
      async () => {
        step += 1
        const asks = {
          id: 'c',
          type: 'function' as const,
          function: { name: 'research', arguments: '{"task":"Go."}' },
        }
        return step === 1 ? answer({ text: '', toolCalls: [asks], finishReason: 'tool_calls' }) : answer()
      },
      { budgets: [budget], tools: [research] },
    )
    expect(await agent.run('Go.').result).toMatchObject({ state: 'COMPLETED' })
    expect((await budget.status()).spent.tokens).toBe(900)
  })

  it('pays for a sub-agent without its own budget', async () => {
    const budget = budgetOf()
    const child = agentOf(async () => answer())
    let step = 0
    const asks = {
      id: 'c',
      type: 'function' as const,
      function: { name: 'research', arguments: '{"task":"Go."}' },
    }
    const agent = agentOf(
      async () =>
        (step += 1) === 1 ? answer({ text: '', toolCalls: [asks], finishReason: 'tool_calls' }) : answer(),
      { tools: [child.asTool({ name: 'research', description: 'Researches.' })] },
    )
    await agent.run('Go.', { budgets: [budget] }).result
    expect((await budget.status()).spent.tokens).toBe(900)
  })

  it('counts nothing for a request that the provider refused, and is reserved again for the next attempt', async () => {
    const clock = new SimulatedClock()
    const budget = budgetOf({ clock })
    let attempts = 0
    const agent = agentOf(
      async () => {
        attempts += 1
        if (attempts === 1) throw Object.assign(new Error('Busy.'), { status: 503 })
        return answer()
      },
      { budgets: [budget], clock },
    )
    const run = agent.run('Go.')
    run.events$.subscribe((event) => {
      if (event.type === 'retry') setTimeout(() => clock.increment(60_000), 0)
    })
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    expect((await budget.status()).spent.tokens).toBe(300)
  })

  it('counts the reservation if a request failed and its cost is unknown', async () => {
    const budget = budgetOf()
    const agent = agentOf(
      async () => {
        throw Object.assign(new Error('The connection was reset.'), { code: 'ECONNRESET' })
      },
      { budgets: [budget], retry: { maxAttempts: 1 } },
    )
    expect(await agent.run('Go.').result).toMatchObject({ state: 'ERROR' })
    const { spent, reserved } = await budget.status()
    expect(spent.tokens).toBeGreaterThanOrEqual(1000)
    expect(reserved.tokens).toBe(0)
  })

  it.each(['ECONNREFUSED', 'ENOTFOUND'])(
    'counts nothing if the provider was not reached: %s',
    async (code) => {
      const budget = budgetOf()
      const agent = agentOf(
        async () => {
          throw new TypeError('fetch failed', { cause: Object.assign(new Error('No.'), { code }) })
        },
        { budgets: [budget], retry: { maxAttempts: 1 } },
      )
      await agent.run('Go.').result
      expect((await budget.status()).spent.tokens).toBe(0)
    },
  )

  it('counts the reservation of a run that is cancelled before any output, if its provider continues', async () => {
    const budget = budgetOf()
    let begin: () => void = () => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    const agent = agentOf(
      () => {
        begin()
        return new Promise(() => undefined)
      },
      { budgets: [budget] },
    )
    const run = agent.run('Go.')
    await begun
    run.cancel()
    expect(await run.result).toMatchObject({ state: 'CANCELLED' })
    const { spent, reserved } = await budget.status()
    expect(spent.tokens).toBeGreaterThanOrEqual(1000)
    expect(reserved.tokens).toBe(0)
  })

  it('counts the received part of an interrupted answer, plus a tenth', async () => {
    const budget = budgetOf()
    const words = 'word '.repeat(100)
    const agent = agentOf(
      (_request, { onDelta }) => {
        onDelta(words, '')
        return new Promise(() => undefined)
      },
      { budgets: [budget] },
    )
    const run = agent.run('Go.')
    for await (const event of run) if (event.type === 'stream_chunk') run.cancel()
    const { usage } = await run.result
    expect(usage).toMatchObject({ estimated: true })
    const { spent, reserved } = await budget.status()
    expect(spent.tokens).toBe(Math.ceil((usage.inputTokens + usage.outputTokens) * 1.1))
    expect(reserved.tokens).toBe(0)
  })

  it('also pays for final answers and summaries', async () => {
    const budget = budgetOf()
    const requests: string[] = []
    const look = { id: '', type: 'function' as const, function: { name: 'look', arguments: '{}' } }
    const agent = agentOf(
      async ({ messages, tools }) => {
        const isSummary = JSON.stringify(messages).includes('CONVERSATION') || tools.length === 0
        requests.push(isSummary ? 'summary or last words' : 'answer')
        return isSummary
          ? answer({ text: 'So far.' })
          : answer({ text: '', toolCalls: [look], finishReason: 'tool_calls' })
      },
      {
        budgets: [budget],
        tools: [tool('look', () => 'many words '.repeat(300))],
        limits: { maxSteps: 4, onLimit: 'conclude' },
        context: { window: 1500, strategy: 'summarize' },
        tokenizer: { count: (text) => Math.ceil(text.length / 4) },
      },
    )
    const { usage } = await agent.run('Go.').result
    expect(requests.length).toBeGreaterThan(5)
    expect(requests).toContain('summary or last words')
    expect((await budget.status()).spent.tokens).toBe(requests.length * 300)
    expect(usage.totalTokens).toBe(requests.length * 300)
  })

  it('releases the reservation of a run that is cancelled while it waits', async () => {
    const budget = budgetOf({ usd: 0.0025 })
    const held = await budget.reserve({ usd: 0.0015 })
    const agent = agentOf(async () => answer(), { budgets: [budget] })
    const run = agent.run('Go.')
    while ((await budget.status()).live === 0) await new Promise((resolve) => setImmediate(resolve))
    run.cancel()
    expect(await run.result).toMatchObject({ state: 'CANCELLED' })
    await held.settle({ usd: 0 })
    expect(await budget.status()).toMatchObject({ spent: { usd: 0 }, reserved: { usd: 0 } })
  })

  it('pays each of several models for its own requests', async () => {
    const budget = budgetOf()
    const reserved: number[] = []
    const first = provider(async () => {
      reserved.push((await budget.status()).reserved.tokens)
      throw new ModelError({
        kind: 'transient',
        code: 'overloaded',
        message: 'Busy.',
        usage: {
          inputTokens: 50,
          outputTokens: 0,
          totalTokens: 50,
          cachedInputTokens: 0,
          reasoningTokens: 0,
        },
      })
    })
    const second = provider(async () => {
      reserved.push((await budget.status()).reserved.tokens)
      return answer()
    }, 'n')
    const agent = createAgent({ model: withFallbacks([first, second]), prices, sampling, budgets: [budget] })
    expect(await agent.run('Go.').result).toMatchObject({ state: 'COMPLETED' })
    // Never both at the same time.
    for (const tokens of reserved) expect(tokens).toBeLessThan(1500)
    expect((await budget.status()).spent.tokens).toBe(350)
  })

  it('reserves reserveOutputTokens for a request without a cap, or else the cap of the body', async () => {
    const reserved: number[] = []
    const budget = budgetOf({ tokens: 100_000, reserveOutputTokens: 3000 })
    const look = async () => {
      reserved.push((await budget.status()).reserved.tokens)
      return answer()
    }
    await createAgent({ model: provider(look), prices, budgets: [budget] }).run('Go.').result
    const extraBody = { max_completion_tokens: 500 }
    await createAgent({ model: provider(look), prices, budgets: [budget], extraBody }).run('Go.').result
    expect((reserved[0] ?? 0) - (reserved[1] ?? 0)).toBe(2500)
  })

  it('reserves the maximum output of the price list for a request without a cap', async () => {
    const reserved: number[] = []
    const budget = budgetOf({ tokens: 100_000, reserveOutputTokens: 3000 })
    const look = async () => {
      reserved.push((await budget.status()).reserved.tokens)
      return answer()
    }
    const known = { m: { ...prices.m, maxOutputTokens: 20_000 } }
    const options = { model: provider(look), budgets: [budget] }
    await createAgent({ ...options, prices: known }).run('Go.').result
    await createAgent({ ...options, prices }).run('Go.').result
    await createAgent({ ...options, prices: known, sampling: { maxTokens: 500 } }).run('Go.').result
    // A dated release has the price of its model.
    await createAgent({ ...options, model: provider(look, 'm-2026-01-31'), prices: known }).run('Go.').result
    const [most = 0, fallback = 0, capped = 0, release = 0] = reserved
    expect([most - fallback, most - capped]).toEqual([17_000, 19_500])
    expect(release).toBeGreaterThan(20_000)
    expect(() => createAgent({ ...options, prices: { m: { ...prices.m, maxOutputTokens: 0 } } })).toThrow(
      /prices\.m\.maxOutputTokens must be/,
    )
  })

  it('in USD ends the run if the price of the model is unknown', async () => {
    const agent = createAgent({
      model: provider(async () => answer(), 'unknown-model'),
      budgets: [budgetOf()],
    })
    const result = await agent.run('Go.').result
    expect(result).toMatchObject({
      state: 'ERROR',
      reason: 'shared_budget',
      error: { code: 'shared_budget_unknown_price', budget: 'tenant' },
    })
    expect(result.error?.message).toContain('prices: { … }')
  })

  it('with other limits in its store ends the run with both limits in the error', async () => {
    const store = memoryStore()
    await createBudget({ id: 'tenant', usd: 5, store }).reserve({ usd: 1 })
    const agent = agentOf(async () => answer(), { budgets: [createBudget({ id: 'tenant', usd: 7, store })] })
    const result = await agent.run('Go.').result
    expect(result).toMatchObject({
      state: 'ERROR',
      reason: 'shared_budget',
      error: { code: 'shared_budget_conflict' },
    })
    expect(result.error?.message).toMatch(/usd 5 .*usd 7/)
  })

  it('whose store is away fails closed: the request is retried like a failure, and then the run ends', async () => {
    const clock = new SimulatedClock()
    const inner = (await memoryStore().openBudgets?.()) as BudgetStore
    const away: BudgetStore = {
      ...inner,
      reserve: () => {
        throw new StoreError('store_unavailable', 'The store is away.')
      },
    }
    let requestCount = 0
    const agent = agentOf(
      async () => {
        requestCount += 1
        return answer()
      },
      { clock, budgets: [createBudget({ id: 'tenant', usd: 5, store: away, clock })] },
    )
    const run = agent.run('Go.')
    let retries = 0
    run.events$.subscribe((event) => {
      if (event.type !== 'retry') return
      retries += 1
      setTimeout(() => clock.increment(60_000), 0)
    })
    expect(await run.result).toMatchObject({
      state: 'ERROR',
      reason: 'shared_budget',
      error: {
        code: 'shared_budget_unavailable',
        budget: 'tenant',
        message: expect.stringContaining('away'),
      },
    })
    expect([requestCount, retries]).toEqual([0, 2])
  })

  it('ignores a provider error with the same code as its own', async () => {
    const agent = agentOf(
      async () => {
        throw new ModelError({ kind: 'fatal', code: 'shared_budget', message: 'No.' })
      },
      { budgets: [budgetOf()] },
    )
    expect(await agent.run('Go.').result).toMatchObject({
      state: 'ERROR',
      error: { code: 'provider_shared_budget' },
    })
  })

  it('is never exceeded by 200 concurrent runs, and little of it stays unused', async () => {
    const usd = 0.1
    const budget = budgetOf({ usd, tokens: 60_000 })
    const live: number[] = []
    const request: Request = async (_request: ModelRequest) => {
      await new Promise((resolve) => setImmediate(resolve))
      const { spent, reserved } = await budget.status()
      live.push(spent.usd + reserved.usd)
      return answer({}, { inputTokens: 20, outputTokens: 900 + Math.floor(Math.random() * 100) })
    }
    const agent = agentOf(request, { budgets: [budget], tools: [tool('look')] })
    const results = await Promise.all(Array.from({ length: 200 }, () => agent.run('Go.').result))
    const { spent, reserved } = await budget.status()
    expect(Math.max(...live)).toBeLessThanOrEqual(usd)
    expect(spent.usd).toBeLessThanOrEqual(usd)
    expect(reserved.usd).toBe(0)
    // One more request with 1000 output tokens would have exceeded the budget.
    expect(usd - spent.usd).toBeLessThan(0.0025)
    const ended = new Set(results.map(({ state, reason }) => `${state} ${reason}`))
    expect(ended).toEqual(new Set(['COMPLETED end_turn', 'BUDGET_EXCEEDED shared_budget']))
  })
})

test.each([
  ['not a list', 'tenant', 'budgets'],
  ['not a budget', [{ id: 'a' }], 'budgets[0]'],
  ['one budget twice', [budgetOf(), budgetOf()], 'budgets'],
])('budgets refuses %s', (_name, budgets, subject) => {
  const refusal = expect.objectContaining({ code: 'invalid_config', subject })
  expect(() => agentOf(async () => answer(), { budgets: budgets as never })).toThrow(refusal)
  const agent = agentOf(async () => answer())
  expect(() => agent.run('Go.', { budgets: budgets as never })).toThrow(refusal)
})
