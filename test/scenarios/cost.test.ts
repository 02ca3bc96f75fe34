import { getCacheHitRate, ConfigError, createAgent, createSession, openaiChat } from '../../src/index.js'
import { played, stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

/** One dollar per token, input or output. */
const prices = { 'gpt-test': { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000 } }
const answers = text('Done.', { usage: { input: 90, output: 10 } })

describe('the cost', () => {
  it('is computed from the configured prices, with cached input separate', async () => {
    const { result } = await played([text('Hi.', { usage: { input: 1_000, output: 100, cached: 600 } })], {
      prices: { 'gpt-test': { inputPerMillion: 10, outputPerMillion: 50, cachedInputPerMillion: 1 } },
    })
    expect(result.usage.cost).toBeCloseTo((400 * 10 + 600 * 1 + 100 * 50) / 1e6, 12)
  })

  it.each(['chat', 'responses'] as const)('includes cache writes (%s)', async (api) => {
    const usage = { input: 1_000, output: 0, cached: 100, cacheWrite: 500 }
    const price = {
      inputPerMillion: 10,
      outputPerMillion: 0,
      cachedInputPerMillion: 0,
      cacheWritePerMillion: 20,
    }
    const { result, of } = await played([call('look', {}, { usage }), text('Hi.', { usage })], {
      prices: { 'gpt-test': price },
      tools: [tool('look')],
      api,
    })
    expect(result.usage).toMatchObject({
      inputTokens: 2_000,
      cachedInputTokens: 200,
      cacheWriteTokens: 1_000,
    })
    expect(result.usage.cost).toBeCloseTo((2 * (400 * 10 + 500 * 20)) / 1e6, 12)
    expect(of('usage')[0]?.step).toMatchObject({ cacheWriteTokens: 500 })
    expect(getCacheHitRate(result.usage)).toBe(0.1)
  })

  it.each([
    ['cost', 0.25, 0.25],
    ['cost_in_usd_ticks', 2_500_000_000, 0.25],
  ])("is the provider's amount (%s) if no price is known, and only then", async (field, amount, cost) => {
    const usage = { input_tokens: 90, output_tokens: 10, total_tokens: 100, [field]: amount }
    const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi.' }] }]
    const raw = { body: JSON.stringify({ object: 'response', status: 'completed', output, usage }) }
    const options = { api: 'responses' as const, stream: false }
    expect((await played([{ raw }], options)).result.usage).toMatchObject({ cost, estimated: false })
    expect((await played([{ raw }], { ...options, prices })).result.usage.cost).toBe(100)
    expect((await played([{ raw }], options)).result.usage).not.toHaveProperty('providerCost')
  })

  it('of common models is known once the provider is', async () => {
    const turn = text('Hi.', { usage: { input: 1_000_000, output: 0 } })
    const theatre = await stage([turn])
    const model = openaiChat({ model: 'gpt-4o-mini', provider: 'openai', baseURL: theatre.rehearsal.url })
    const { usage: used } = await createAgent({ model, limits: { costLimit: 1 } }).run('Hi.').result
    expect(used.cost).toBeCloseTo(0.15, 6)
  })

  it('is required: without a known price, a run is refused before anything is sent', async () => {
    const theatre = await stage([answers], { limits: { costLimit: 1 } })
    const { run, events } = theatre.run()
    const refusal = await run.result.catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(ConfigError)
    expect(refusal).toMatchObject({ code: 'unknown_price', subject: 'limits.costLimit' })
    expect(String(refusal)).toMatch(/prices/)
    expect(theatre.requests).toHaveLength(0)
    expect(events).toMatchObject([{ type: 'warning', code: 'unknown_price', seq: 1 }])
    await expect(run[Symbol.asyncIterator]().next()).rejects.toBe(refusal)
  })

  it('without a known price is not counted if budget.onUnknownPrice allows it, with one warning', async () => {
    const { result, of } = await played([call('nothing'), text('Done.')], {
      limits: { costLimit: 1 },
      budget: { onUnknownPrice: 'warn' },
    })
    expect(result).toMatchObject({ state: 'COMPLETED', usage: { cost: null } })
    expect(of('warning')).toMatchObject([{ code: 'unknown_price' }])
  })

  it('of a session with unpriced tokens is never understated', async () => {
    const theatre = await stage([answers, answers])
    const session = createSession()
    await theatre.run('Go.', { session }).end(1)
    expect(session.usage.cost).toBeNull()
    const refused = theatre.agent.run('Go.', { session, limits: { costLimit: 5 } })
    await expect(refused.result).rejects.toMatchObject({ code: 'unknown_price' })
  })

  it('of an interrupted answer is estimated, so that the limit still holds', async () => {
    const theatre = await stage([text('One two three four', { chunkSize: 4, hang: 2 }), answers], {
      prices,
      limits: { costLimit: 12 },
    })
    const session = createSession()
    const play = theatre.run('Go.', { session })
    await play.event('stream_chunk', ({ text }) => text === 'two ')
    play.run.cancel()
    const { usage: spent } = await play.end(1)
    expect(spent.cost).toBe(spent.totalTokens)
    expect(spent.cost).toBeGreaterThan(2)
    expect(await theatre.run('Go.', { session }).end(2)).toMatchObject({ state: 'BUDGET_EXCEEDED' })
  })
})

describe('usage', () => {
  it('that the provider does not report is estimated, marked and reported once', async () => {
    const { result, of } = await played(
      [
        call('nothing', {}, { usage: null }),
        text('A rather long answer to a short question.', { usage: null }),
      ],
      { limits: { tokenBudget: 10_000 } },
    )
    expect(result.usage.estimated).toBe(true)
    expect(result.usage.inputTokens).toBeGreaterThan(0)
    expect(result.usage.outputTokens).toBeGreaterThan(8)
    expect(of('usage').map(({ step }) => step.estimated)).toEqual([true, true])
    expect(of('warning')).toMatchObject([{ code: 'missing_usage' }])
  })

  it('that is not reported still counts towards the budget', async () => {
    const { result } = await played([text('word '.repeat(200), { usage: null })], {
      limits: { tokenBudget: 100 },
    })
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', usage: { estimated: true } })
  })

  it('is zero only if budget.onMissingUsage is zero', async () => {
    const { result } = await played([text('word', { usage: null })], { budget: { onMissingUsage: 'zero' } })
    expect(result.usage).toMatchObject({ totalTokens: 0, estimated: true })
  })
})
