import fc from 'fast-check'
import { memoryStore } from '../../src/index.js'
import { formatRunSummary } from '../../src/core/format/run-summary.js'
import { createPaint, getCachedPercent } from '../../src/core/format/format-words.js'
import { createStepFilter, listRunSteps } from '../../src/studio/run-steps.js'
import { describeFork } from '../../src/studio/client/fork-choices.js'
import { addCosts, formatCost, formatCostChange, sumCosts } from '../../src/studio/costs.js'
import type { CompareView } from '../../src/studio/compare-sessions.js'
import type { EndView, MomentView, SessionsView, SessionView } from '../../src/studio/protocol.js'
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
    expect(describeFork(1, steps, view.rows, true, true)).toContain('(some usage has no price)')
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

describe('a fork', () => {
  const sum = (views: readonly { tokens: number }[]) => views.reduce((all, { tokens }) => all + tokens, 0)

  it.each([false, true])('counts only its own usage (resumed: %s)', async (isResumed) => {
    const store = memoryStore()
    const { agent, close } = await rehearsedAgent(store, turns)
    await agent.run('Tea?', { session: 's' }).result
    const visitor = await visit({ store })
    const original = await visitor.get<SessionView>(paths.session('s'))
    const seq = original.rows.find(({ calls }) => calls.length > 0)?.seq ?? 0
    const [inherited, end] = [original.rows[seq - 1], original.rows.at(-1)]
    const fork = await agent.fork('s', seq)
    if (isResumed) await (await agent.resume(fork)).result
    await close()
    const own = isResumed ? (end?.tokens ?? 0) - (inherited?.tokens ?? 0) : 0
    const usd = isResumed ? (end?.cost ?? 0) - (inherited?.cost ?? 0) : 0

    const { sessions, days } = await visitor.get<SessionsView>(paths.sessions)
    const row = sessions.find(({ id }) => id === fork)
    expect(row).toMatchObject({
      tokens: own,
      steps: isResumed ? 1 : 0,
      inherited: { tokens: inherited?.tokens, cost: inherited?.cost },
    })
    expect(row?.cost).toBeCloseTo(usd, 9)
    expect(days.at(-1)?.cost.usd).toBeCloseTo((end?.cost ?? 0) + usd, 9)

    const { session, verdict, rows, bars } = await visitor.get<SessionView>(paths.session(fork))
    expect(session).toEqual({ ...row, models: session.models })
    expect(verdict).toMatchObject({ steps: isResumed ? 1 : 0, cost: { usd: session.cost, isWhole: true } })
    expect(rows.at(-1)?.tokens).toBe(own)
    expect(sum(listRunSteps({ rows, bars }))).toBe(own)
    // Its only step has the number in the run.
    expect(listRunSteps({ rows, bars }).map(({ step }) => step)).toEqual([2])
    const moment = await visitor.get<MomentView>(paths.moment(fork, rows.length))
    expect(moment.budget.find(({ name }) => name === 'tokens')).toMatchObject({
      used: own + (inherited?.tokens ?? 0),
      inherited: inherited?.tokens,
    })
  })

  it('counts only its own usage while it continues, and when only the end of its log is read', async () => {
    const store = memoryStore()
    const { agent, close } = await rehearsedAgent(store, turns, { budget: { scope: 'session' } })
    await agent.run('Tea?', { session: 's' }).result
    const total = store.get('s')?.summary?.totalTokens ?? 0
    const fork = await agent.fork('s')
    const visitor = await visit({ store })
    expect(await visitor.get(paths.sessions)).toMatchObject({ total: 2 })
    await agent.run('And coffee?', { session: fork }).result
    const own = (store.get(fork)?.summary?.totalTokens ?? 0) - total
    const { sessions } = await visitor.get<SessionsView>(paths.sessions)
    expect(sessions.find(({ id }) => id === fork)).toMatchObject({
      tokens: own,
      inherited: { tokens: total },
    })
    const end = await (await visit({ store })).get<EndView>(paths.end(fork))
    expect(end.view.session).toMatchObject({ tokens: own, inherited: { tokens: total } })
    expect(end.moment?.budget.find(({ name }) => name === 'tokens')).toMatchObject({
      used: own + total,
      inherited: total,
    })
    await close()
  })

  it('has a known cost if only the inherited usage has no price', async () => {
    const store = memoryStore()
    const [unpriced, priced] = [
      await rehearsedAgent(store, turns, { prices: null }),
      await rehearsedAgent(store, turns),
    ]
    await unpriced.agent.run('Tea?', { session: 's' }).result
    const fork = await priced.agent.fork('s')
    await priced.agent.run('And coffee?', { session: fork }).result
    await Promise.all([unpriced.close(), priced.close()])
    const { session, verdict, rows } = await (await visit({ store })).get<SessionView>(paths.session(fork))
    expect(session).toMatchObject({
      cost: sumCosts(rows.map(({ paid }) => paid)).usd,
      inherited: { cost: null },
    })
    expect(verdict.cost).toEqual({ usd: session.cost, isWhole: true })
    expect(session.cost).toBeGreaterThan(0)
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
    expect(describeFork(answered, listRunSteps(view), rows, true, true)).toMatch(
      /^The step after this is discarded/,
    )
    expect(describeFork(answered - 1, listRunSteps(view), rows, true, true)).toMatch(
      /^The 2 steps after this/,
    )
  })

  it('rounds the cached share down, on the page and on the command line', () => {
    const usage = { inputTokens: 1000, cachedInputTokens: 609, outputTokens: 1, totalTokens: 1001 }
    const end = { state: 'COMPLETED', reason: 'end_turn', steps: 1, usage: { ...usage, cost: 0 } } as never
    expect(formatRunSummary(end, {}, null, createPaint(false))).toContain('60% of it cached')
    expect(getCachedPercent(usage)).toBe(60)
  })

  it('names the run of the steps if the usage covers several runs', () => {
    const usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, totalTokens: 0, cost: 0 }
    const end = { state: 'COMPLETED', reason: 'end_turn', steps: 1, usage } as never
    const lines = formatRunSummary(end, { maxSteps: 20 }, null, createPaint(false), 3)
    expect(lines).toContain('1 of 20 in run 3')
  })
})
