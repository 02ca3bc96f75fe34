import fc from 'fast-check'
import { memoryStore } from '../../src/index.js'
import { formatRunSummary } from '../../src/core/format/run-summary.js'
import { createPaint, getCachedPercent } from '../../src/core/format/format-words.js'
import { createStepFilter, listRunSteps } from '../../src/studio/client/run-steps.js'
import { describeFork } from '../../src/studio/client/what-if.js'
import { addCosts, formatCost, formatCostChange, sumCosts } from '../../src/studio/costs.js'
import type { CompareView, SessionsView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

const look = { name: 'look_up', arguments: { what: 'tea' } }
const turns = [{ text: 'I look.', toolCalls: [look] }, { text: 'It is tea.' }]

/** A session whose run has prices, and its fork, which was resumed by an agent without prices. */
async function forked() {
  const store = memoryStore()
  const priced = await rehearsedAgent(store, turns)
  const unpriced = await rehearsedAgent(store, turns, { prices: null })
  await priced.agent.run('Tea?', { session: 's' }).result
  const fork = await unpriced.agent.fork('s', 2)
  await (await unpriced.agent.resume(fork)).result
  await Promise.all([priced.close(), unpriced.close()])
  return { fork, visitor: await visit({ store }) }
}

describe('an unknown cost', () => {
  const cost = fc.option(fc.double({ min: 0, max: 10, noNaN: true }))

  it('makes every sum partial, and never counts as zero', () => {
    fc.assert(
      fc.property(fc.array(cost), fc.array(cost), (a, b) => {
        const [one, two] = [sumCosts(a), sumCosts(b)]
        expect(addCosts([one, two]).isWhole).toBe(!a.includes(null) && !b.includes(null))
        expect(addCosts([one, two]).usd).toBeCloseTo(sumCosts([...a, ...b]).usd, 9)
        const isKnown = one.isWhole && two.isWhole
        expect(formatCostChange(one, two) === 'unknown').toBe(!isKnown)
        expect(formatCost(one).startsWith('$') || formatCost(one).startsWith('<')).toBe(one.isWhole)
      }),
    )
    expect(formatCost(sumCosts([null]))).toBe('unknown')
    expect(formatCost(sumCosts([null, 0.5]))).toBe('≥ $0.5000')
    expect(formatCost(sumCosts([0, 0]))).toBe('$0.00')
  })

  it('stays unknown in the records, the steps, the filter and the comparison of a fork', async () => {
    const { fork, visitor } = await forked()
    const view = await visitor.get<SessionView>(paths.session(fork))
    const answers = view.rows.filter(({ label }) => label.startsWith('answer'))
    expect(answers.map(({ paid }) => paid)).toEqual([null, null])
    const steps = listRunSteps(view)
    expect(addCosts(steps.map((step) => step.cost))).toEqual({ usd: 0, isWhole: false })
    expect(steps.filter(createStepFilter('cost<1'))).toEqual([])
    const { steps: compared } = await visitor.get<CompareView>(paths.compare('s', fork))
    expect(compared[0]?.a?.cost).toBeGreaterThan(0)
    expect(compared.map(({ b }) => b?.cost)).toEqual([null, null])
    expect(describeFork(1, steps, view.rows, true)).toContain('(some usage has no price)')
  })

  it('is last in the list, in both orders, and named in the cost by day', async () => {
    const { fork, visitor } = await forked()
    for (const sort of ['cost', '-cost']) {
      const { sessions, days } = await visitor.get<SessionsView>(`${paths.sessions}?sort=${sort}`)
      expect(sessions.map(({ id }) => id)).toEqual(['s', fork])
      expect(days.at(-1)?.cost).toEqual({ usd: sessions[0]?.cost, isWhole: false })
    }
  })
})

describe('a number that is shown in several places', () => {
  it('has one definition: steps, duration and cost are those of the whole session', async () => {
    const store = memoryStore()
    const { agent, close } = await rehearsedAgent(store, [...turns, ...turns, { text: 'Done.' }])
    for (const prompt of ['One.', 'Two.', 'Three.']) await agent.run(prompt, { session: 's' }).result
    await close()
    const visitor = await visit({ store })
    const { session, verdict, rows } = await visitor.get<SessionView>(paths.session('s'))
    expect(verdict.steps).toBe(5)
    expect(session.steps).toBe(5)
    expect(session.duration).toBe((rows.at(-1)?.at ?? 0) - (rows[0]?.at ?? 0))
    expect(listRunSteps({ rows, bars: [] }).filter(({ isAnswered }) => isAnswered)).toHaveLength(5)
    const { sessions } = await visitor.get<SessionsView>(
      `${paths.sessions}?q=${encodeURIComponent('steps>4')}`,
    )
    expect(sessions.map(({ steps, duration }) => ({ steps, duration }))).toEqual([
      { steps: 5, duration: session.duration },
    ])
  })

  it('states the price of exactly the steps that a fork requests again', async () => {
    const store = memoryStore()
    const { agent, close } = await rehearsedAgent(store, turns)
    await agent.run('Tea?', { session: 's' }).result
    await close()
    const view = await (await visit({ store })).get<SessionView>(paths.session('s'))
    const { rows } = view
    const answered = rows.findIndex(({ label }) => label === 'answer: 1 call')
    expect(describeFork(answered, listRunSteps(view), rows, true)).toMatch(/^The step after this is dropped/)
    expect(describeFork(answered - 1, listRunSteps(view), rows, true)).toMatch(/^The 2 steps after this/)
  })

  it('rounds the cached share down, on the page and on the command line', () => {
    const usage = { inputTokens: 1000, cachedInputTokens: 609, outputTokens: 1, totalTokens: 1001 }
    const end = { state: 'COMPLETED', reason: 'end_turn', steps: 1, usage: { ...usage, cost: 0 } } as never
    expect(formatRunSummary(end, {}, null, createPaint(false))).toContain('60 % of it cached')
    expect(getCachedPercent(usage)).toBe(60)
  })

  it('names the run of the steps if the usage covers several runs', () => {
    const usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, totalTokens: 0, cost: 0 }
    const end = { state: 'COMPLETED', reason: 'end_turn', steps: 1, usage } as never
    const lines = formatRunSummary(end, { maxSteps: 20 }, null, createPaint(false), 3)
    expect(lines).toContain('1 of 20 in run 3')
  })
})
