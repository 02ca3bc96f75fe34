import { createBudget } from '../../src/fleet/index.js'
import { memoryStore } from '../../src/index.js'
import { played } from '../support/play.js'
import { Recorded } from '../support/spans.js'
import { call, text, times, tool } from '../support/tools.js'

const usage = { input: 100, output: 5, cached: 60, reasoning: 2 }
const prices = { 'gpt-test': { inputPerMillion: 10, outputPerMillion: 100 } }
const turns = [call('look', {}, { usage }), text('Done.', { usage })]

/** The sum of a metric's points, grouped by the attributes under these keys. */
function sums(points: { attributes: object; value: number }[] = [], ...keys: string[]) {
  const of = (attributes: object) => keys.map((key) => (attributes as Record<string, unknown>)[key]).join(' ')
  return Object.fromEntries(points.map(({ attributes, value }) => [of(attributes), value]))
}

describe('metrics', () => {
  it('have the newest names: tokens by kind, agents, tools, runs, cost', async () => {
    const recorded = new Recorded()
    const { result } = await played(turns, {
      tools: [tool('look')],
      prices,
      telemetry: recorded.otel({ agentName: 'analyst' }),
    })
    const metrics = await recorded.metrics()
    const tokens = (kind: string) =>
      sums(metrics[`gen_ai.client.inference.usage.${kind}`], 'gen_ai.request.model')
    expect(tokens('input_tokens')).toEqual({ 'gpt-test': result.usage.inputTokens })
    expect(tokens('output_tokens')).toEqual({ 'gpt-test': result.usage.outputTokens })
    expect(tokens('cache_read.input_tokens')).toEqual({ 'gpt-test': 120 })
    expect(tokens('reasoning.output_tokens')).toEqual({ 'gpt-test': 4 })
    expect(tokens('cache_write.input_tokens')).toEqual({})
    expect(sums(metrics['gen_ai.invoke_agent.inference_calls'], 'gen_ai.agent.name')).toEqual({ analyst: 2 })
    expect(sums(metrics['gen_ai.invoke_agent.tool_calls'], 'gen_ai.agent.name')).toEqual({ analyst: 1 })
    expect(sums(metrics['statewright.runs'], 'state', 'reason')).toEqual({ 'COMPLETED end_turn': 1 })
    const [[, cost] = []] = Object.entries(sums(metrics['statewright.cost'], 'gen_ai.request.model'))
    expect(cost).toBeCloseTo(result.usage.cost ?? 0, 10)
    expect(Object.keys(metrics)).toEqual(
      expect.arrayContaining([
        'gen_ai.client.inference.duration',
        'gen_ai.client.inference.time_to_first_chunk',
        'gen_ai.invoke_agent.duration',
        'gen_ai.execute_tool.duration',
      ]),
    )
    expect(
      Object.keys(metrics).filter((name) => name.includes('.operation.') || name.includes('token.usage')),
    ).toEqual([])
  })

  it('include gauges of the configured shared budgets, and none if the store is unavailable', async () => {
    const recorded = new Recorded()
    const tenant = createBudget({ id: 'tenant', usd: 2, tokens: 50_000, store: memoryStore() })
    const away = createBudget({
      id: 'away',
      tokens: 9,
      store: { openBudgets: () => Promise.reject(new Error('The store is away.')) },
    })
    await played(turns, {
      tools: [tool('look')],
      prices,
      sampling: { maxTokens: 100 },
      budgets: [tenant],
      telemetry: recorded.otel({ budgets: [tenant, away] }),
    })
    await (await tenant.reserve({ usd: 0.5, tokens: 1000 })).settle({ usd: 0.25, tokens: 500 })
    await tenant.reserve({ usd: 0.125, tokens: 70 })
    const metrics = await recorded.metrics()
    const of = (what: string) => sums(metrics[`statewright.shared_budget.${what}`], 'budget', 'unit')
    const { spent } = await tenant.status()
    expect(spent.tokens).toBe(710)
    expect(of('spent')).toEqual({ 'tenant usd': spent.usd, 'tenant tokens': 710 })
    expect(of('reserved')).toEqual({ 'tenant usd': 0.125, 'tenant tokens': 70 })
    expect(of('limit')).toEqual({ 'tenant usd': 2, 'tenant tokens': 50_000 })
    expect(() => recorded.otel({ budgets: [{}] as never })).toThrow(
      /budgets\[0\] must be the return value of createBudget/,
    )
  })

  it('have the names of v1.41 if configured', async () => {
    const recorded = new Recorded()
    const { result } = await played(turns, {
      tools: [tool('look')],
      telemetry: recorded.otel({ semconv: 'v1.41' }),
    })
    const metrics = await recorded.metrics()
    expect(sums(metrics['gen_ai.client.token.usage'], 'gen_ai.token.type')).toEqual({
      input: result.usage.inputTokens,
      output: result.usage.outputTokens,
    })
    expect(Object.keys(metrics)).toContain('gen_ai.client.operation.duration')
    expect(
      Object.keys(metrics).filter((name) => name.includes('inference') || name.includes('agent')),
    ).toEqual([])
  })

  it('count guard decisions', async () => {
    const recorded = new Recorded()
    await played(times(4, call('look')), {
      tools: [tool('look')],
      guardrails: { maxRepeatedToolSteps: 3 },
      telemetry: recorded.otel(),
    })
    const metrics = await recorded.metrics()
    const actions = sums(metrics['statewright.guardrail.actions'], 'guard', 'action')
    expect(actions).toHaveProperty('repeated_call nudge', 1)
    const [stretch] = recorded.named('invoke_agent')
    expect(stretch?.events.map(({ name }) => name)).toContain('statewright.guardrail')
    expect(JSON.stringify(stretch?.events)).not.toContain('evidence')
  })
})
