import { SimulatedClock } from 'xstate'
import {
  type AgentEvent,
  type AgentOptions,
  createAgent,
  createEventFormatter,
  type Run,
} from '../../src/index.js'
import { addUsage, noUsage, type Usage } from '../../machines/agent/usage.js'
import { ManualModel, settled } from '../support/manual-model.js'

const paid = (tokens: number) => ({
  inputTokens: tokens - 1,
  outputTokens: 1,
  totalTokens: tokens,
  cachedInputTokens: 0,
  reasoningTokens: 0,
})
const prices = { 'manual-1': { inputPerMillion: 1, outputPerMillion: 1 } }

function begun(options: Partial<AgentOptions> = {}) {
  const [model, clock] = [new ManualModel(), new SimulatedClock()]
  const run: Run = createAgent({ model, clock, prices, ...options }).run('Go.')
  const events: AgentEvent[] = []
  run.events$.subscribe((event) => {
    events.push(event)
  })
  return { model, clock, run, events }
}

function reportOf(events: readonly AgentEvent[]): { sum: Usage; tokens: number[]; shown: string } {
  const usages = events.filter((event) => event.type === 'usage')
  const format = createEventFormatter()
  return {
    sum: usages.reduce((sum, { step }) => addUsage(sum, step), noUsage),
    tokens: usages.map(({ step }) => step.totalTokens),
    shown: events.map(format).join(''),
  }
}

describe('every paid request is reported', () => {
  test('for failed attempts, including the last', async () => {
    const { model, clock, run, events } = begun({ retry: { maxAttempts: 2 } })
    await settled()
    model.pending?.fail({ usage: paid(100) })
    await settled()
    clock.increment(60_000)
    await settled()
    model.pending?.fail({ usage: paid(200) })
    const { state, usage } = await run.result
    expect([state, usage.totalTokens]).toEqual(['ERROR', 300])
    const { sum, tokens, shown } = reportOf(events)
    expect(sum).toEqual(usage)
    expect(tokens).toEqual([100, 200])
    expect(shown).toContain('tokens  300 (298 in, 2 out)')
    expect(shown).not.toContain('$0.00\n')
  })

  test('for an answer that a cancel cut off', async () => {
    const { model, run, events } = begun()
    await settled()
    model.pending?.delta('Half an ')
    run.cancel()
    const { usage } = await run.result
    expect(usage.totalTokens).toBeGreaterThan(0)
    expect(reportOf(events).sum).toEqual(usage)
  })

  test('for a final answer at the limit that failed', async () => {
    const { model, run, events } = begun({ limits: { maxSteps: 1, onLimit: 'conclude' } })
    await settled()
    model.pending?.answer({ usage: paid(10), toolCalls: [], text: '', finishReason: 'length' })
    await settled()
    model.pending?.fail({ kind: 'fatal', usage: paid(20) })
    const { state, usage } = await run.result
    expect([state, usage.totalTokens]).toEqual(['MAX_STEPS', 30])
    expect(reportOf(events).sum).toEqual(usage)
  })

  test('for a failed attempt that nearly exhausts the budget, with its warning', async () => {
    const { model, run, events } = begun({ limits: { tokenBudget: 1_000 }, retry: { maxAttempts: 2 } })
    await settled()
    model.pending?.fail({ usage: paid(900) })
    await settled()
    expect(events.filter(({ type }) => type === 'budget_warning')).toMatchObject([{ remainingTokens: 100 }])
    run.cancel()
    await run.result
  })
})
