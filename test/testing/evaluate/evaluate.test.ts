import { SimulatedClock } from 'xstate'
import { createAgent, defineTool, memoryStore, runSession, type SessionStore } from '../../../src/index.js'
import {
  type EvaluationProgress,
  evaluate,
  type EvaluationCase,
  judge,
  readSessionCases,
  type Scorer,
} from '../../../src/testing/index.js'
import { createBudget } from '../../../src/fleet/index.js'
import { plainAnswer } from '../../support/manual-model.js'
import { answering, closeRehearsals, prices } from './answering.js'

afterEach(closeRehearsals)

const capitals: EvaluationCase<string>[] = [
  { id: 'fr', input: 'The capital of France?', expected: 'Paris', tags: { area: 'west' } },
  { id: 'pl', input: 'The capital of Poland?', expected: 'Warsaw', tags: { area: 'east' } },
  { id: 'at', input: 'The capital of Austria?', expected: 'Vienna', tags: { area: 'east' } },
]

/** The same store with only asynchronous answers. */
function answerLater(store: SessionStore): SessionStore {
  const isMethod = (value: unknown): value is (...args: unknown[]) => unknown => typeof value === 'function'
  const later = <Inner extends object>(inner: Inner): Inner =>
    new Proxy(inner, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key)
        if (isMethod(value))
          return async (...args: unknown[]) => {
            await Promise.resolve()
            return value.apply(target, args)
          }
        return typeof value === 'object' && value !== null ? later(value) : value
      },
    })
  return later(store)
}

const exact: Scorer<string> = ({ output }, { expected }) => output === expected

/** Knows two of three. */
const known = (prompt: string) => ({ text: prompt.includes('France') ? 'Paris' : 'Warsaw' })

describe('evaluate', () => {
  test('runs each case, scores it, and reports its outcome', async () => {
    const { model } = await answering(known)
    const store = memoryStore()
    const agent = createAgent({ model, prices, store })
    const report = await evaluate({ agent, cases: capitals, score: { exact }, id: 'capitals' })
    expect(report).toMatchObject({
      statewright: 'evaluation',
      id: 'capitals',
      scorers: ['exact'],
      agent: { model: expect.stringMatching(/ m$/) as string },
    })
    expect(report.cases.map(({ id, score, runs }) => [id, score, runs[0]?.verdict, runs[0]?.output])).toEqual(
      [
        ['fr', 1, 'passed', 'Paris'],
        ['pl', 1, 'passed', 'Warsaw'],
        ['at', 0, 'failed', 'Warsaw'],
      ],
    )
    const { summary } = report
    expect(summary).toMatchObject({
      cases: 3,
      runs: 3,
      verdicts: { passed: 2, failed: 1, error: 0, diverged: 0 },
      states: { 'COMPLETED end_turn': 3 },
      steps: { mean: 1, p50: 1, p95: 1, max: 1 },
    })
    expect(summary.mean?.value).toBeCloseTo(2 / 3)
    expect(summary.mean?.low).toBeLessThan(summary.mean?.value ?? 0)
    // Wilson's interval of two of three.
    expect(summary.passRate?.low).toBeCloseTo(0.2077, 3)
    expect(summary.passRate?.high).toBeCloseTo(0.9385, 3)
    expect(summary.tags['area=east']).toMatchObject({ cases: 2, passRate: { value: 0.5 } })
    expect(summary.cost.agent).toBeCloseTo(summary.tokens.total / 1e6)
    // Each failure names an existing session.
    const failed = report.cases[2]?.runs[0]?.session ?? ''
    expect((await agent.replay(failed)).run?.output).toBe('Warsaw')
    const found = store.list({ tags: { evaluation: 'capitals' } })
    expect(found.map(({ id }) => id).toSorted()).toEqual(['capitals.at.1', 'capitals.fr.1', 'capitals.pl.1'])
  })

  test('needs no store, and then stores nothing', async () => {
    const { model } = await answering(known)
    const { cases, summary } = await evaluate({ agent: createAgent({ model }), cases: capitals })
    expect(summary.verdicts.passed).toBe(3)
    expect(cases.flatMap(({ runs }) => runs.map(({ session }) => session))).toEqual([null, null, null])
  })

  test('repeats cases: a case counts once, with the share of its runs', async () => {
    let requestCount = 0
    const { model } = await answering(() => ({ text: (requestCount += 1) % 2 === 0 ? 'Paris' : 'Lyon' }))
    const agent = createAgent({ model })
    const cases = capitals.slice(0, 1)
    const report = await evaluate({ agent, cases, score: exact, repeat: 4, concurrency: 1 })
    expect(report.cases[0]).toMatchObject({ score: 0.5, passRate: 0.5 })
    expect(report.cases[0]?.runs.map(({ verdict }) => verdict)).toEqual([
      'failed',
      'passed',
      'failed',
      'passed',
    ])
    expect(report.summary).toMatchObject({ cases: 1, runs: 4, passRate: { value: 0.5 } })
    expect(report.scorers).toEqual(['exact'])
  })

  test('reports a scorer that throws or returns no score as an error, not as zero', async () => {
    const { model } = await answering(known)
    const agent = createAgent({ model })
    const wrong: Record<string, Scorer> = {
      throws: () => {
        throw new Error('No such file.')
      },
      nan: () => Number.NaN,
      high: () => 1.2,
      nothing: (() => undefined) as never,
      text: (() => ({ score: '1' })) as never,
    }
    for (const [name, scorer] of Object.entries(wrong)) {
      const { cases, summary } = await evaluate({
        agent,
        cases: capitals.slice(0, 1),
        score: { good: () => 1, [name]: scorer },
      })
      expect(cases[0]).toMatchObject({ score: null, passRate: null })
      const [run] = cases[0]?.runs ?? []
      expect(run).toMatchObject({ verdict: 'error', score: null, error: { scorer: name } })
      expect(run?.error?.message).toMatch(
        name === 'throws'
          ? /^Scorer 'throws' threw: No such file\.$/
          : /A score must be a number from 0 to 1/,
      )
      expect(summary).toMatchObject({
        mean: null,
        passRate: null,
        cases: 0,
        verdicts: { error: 1, failed: 0 },
      })
    }
  })

  test('reports a failing model as an error, but not a reached limit', async () => {
    const input = { type: 'object' as const }
    const tool = defineTool({ name: 'look', description: 'Looks.', input, execute: () => 'Nothing.' })
    const { model } = await answering((prompt) =>
      prompt.includes('France')
        ? { status: 400, error: { message: 'No.' } }
        : { toolCalls: [{ name: 'look', arguments: { at: String(Math.random()) } }] },
    )
    const agent = createAgent({ model, tools: [tool], limits: { maxSteps: 2 } })
    const { cases, summary } = await evaluate({ agent, cases: capitals.slice(0, 2) })
    expect(cases[0]?.runs[0]).toMatchObject({ verdict: 'error', state: 'ERROR', reason: 'provider_error' })
    expect(cases[1]?.runs[0]).toMatchObject({ verdict: 'failed', state: 'MAX_STEPS', steps: 2, score: 0 })
    expect(summary.states).toEqual({ 'ERROR provider_error': 1, 'MAX_STEPS max_steps': 1 })
  })

  test('reports a case that a shared budget cannot pay for as an error, not as zero', async () => {
    const usage = {
      inputTokens: 10,
      outputTokens: 200,
      totalTokens: 210,
      cachedInputTokens: 0,
      reasoningTokens: 0,
    }
    const model = {
      provider: 'own',
      model: 'own',
      request: () => Promise.resolve({ ...plainAnswer, text: 'Paris', usage }),
    }
    const budget = createBudget({ id: 'evaluation', tokens: 300, store: memoryStore() })
    const agent = createAgent({ model, sampling: { maxTokens: 250 } })
    const { cases, summary } = await evaluate({
      agent,
      cases: capitals,
      score: exact,
      concurrency: 1,
      budgets: [budget],
    })
    expect(cases.map(({ runs }) => runs[0]?.verdict)).toEqual(['passed', 'error', 'error'])
    expect(cases[1]?.runs[0]).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'shared_budget' })
    expect(cases[1]?.runs[0]?.error?.message).toContain("budget 'evaluation' is used up")
    expect(summary.passRate?.value).toBe(1)
    await expect(evaluate({ agent, cases: capitals, budgets: 5 as never })).rejects.toThrow(
      'budgets must be a list of budgets',
    )
  })

  test('names the guards that fired, and the state of a run that waits', async () => {
    const input = { type: 'object' as const }
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      input,
      readOnly: true,
      execute: () => 'Same.',
    })
    const send = defineTool({
      name: 'send',
      description: 'Sends.',
      input,
      needsApproval: true,
      execute: () => 1,
    })
    const { model } = await answering((prompt, results) => {
      if (prompt.includes('Send')) return { toolCalls: [{ name: 'send', arguments: {} }] }
      return results < 3 ? { toolCalls: [{ name: 'look', arguments: {} }] } : { text: 'Done.' }
    })
    const store = memoryStore()
    const agent = createAgent({ model, tools: [look, send], store })
    const cases = [
      { id: 'look', input: 'Look.' },
      { id: 'send', input: 'Send it.' },
    ]
    const report = await evaluate({ agent, cases, id: 'e' })
    expect(report.summary.guards).toEqual({ 'no_progress nudge': 1 })
    expect(report.cases[0]?.runs[0]?.guards[0]?.message).toContain('look')
    expect(report.cases[1]?.runs[0]).toMatchObject({
      verdict: 'failed',
      state: 'WAITING_FOR_INPUT',
      reason: 'approval',
    })
    // It has no lease owner, so another process may answer it.
    const rest = await runSession(agent, { session: 'e.send.1' })
    expect(rest.pending).toHaveLength(1)
  })

  test('measures the time of a run by its records, with the clock of the agent', async () => {
    const clock = new SimulatedClock()
    clock.set(1_000_000)
    const { model } = await answering(() => {
      clock.set(clock.now() + 250)
      return { text: 'Paris' }
    })
    const { summary } = await evaluate({
      agent: createAgent({ model, clock }),
      cases: capitals,
      concurrency: 1,
    })
    expect(summary.durationMs).toEqual({ mean: 250, p50: 250, p95: 250, max: 250 })
  })

  test('passes structured answers to scorers, and the app’s own object to tools', async () => {
    const whoami = defineTool({
      name: 'whoami',
      description: 'Says who asks.',
      input: { type: 'object' },
      execute: (_input, { context }) => (context as { user: string }).user,
    })
    const { model } = await answering((_said, results, { body }) =>
      results === 0
        ? { toolCalls: [{ name: 'whoami', arguments: {} }] }
        : { text: JSON.stringify({ name: body.messages.at(-1)?.content }) },
    )
    const output = {
      schema: { type: 'object', properties: { name: { type: 'string' } } },
      mode: 'response_format',
    }
    const agent = createAgent({ model, tools: [whoami], output: output as never })
    const { summary } = await evaluate({
      agent,
      cases: [{ id: 'a', input: 'Who am I?', expected: 'Ada' }],
      context: { user: 'Ada' },
      score: ({ object }, { expected }) => (object as { name?: string } | undefined)?.name === expected,
    })
    expect(summary.verdicts).toMatchObject({ passed: 1 })
  })

  test('runs as many cases at once as configured', async () => {
    let [now, most] = [0, 0]
    const waiting: (() => void)[] = []
    const { model } = await answering(async () => {
      now += 1
      most = Math.max(most, now)
      await new Promise<void>((resolve) => {
        waiting.push(resolve)
        if (waiting.length === 2) for (const go of waiting.splice(0)) go()
      })
      now -= 1
      return { text: 'Paris' }
    })
    const cases = Array.from({ length: 6 }, (_, i) => ({ id: `c${i}`, input: `Question ${i}` }))
    await evaluate({ agent: createAgent({ model }), cases, concurrency: 2 })
    expect(most).toBe(2)
  })

  test('reports completed scores when stopped, and continues under the same id', async () => {
    const stop = new AbortController()
    const { model, rehearsal } = await answering((prompt) => {
      if (prompt.includes('Poland')) stop.abort()
      return known(prompt)
    })
    const store = memoryStore()
    const agent = createAgent({ model })
    const options = { agent, store, cases: capitals, score: { exact }, id: 'e', concurrency: 1 }
    const first = await evaluate({ ...options, signal: stop.signal })
    expect(first.interrupted).toBe(true)
    expect(first.cases.map(({ id }) => id)).toEqual(['fr'])
    expect(first.summary).toMatchObject({ runs: 1, passRate: { value: 1 } })
    const requests = rehearsal.requests.length
    const second = await evaluate(options)
    expect(second.interrupted).toBeUndefined()
    expect(second.cases.map(({ id, score }) => [id, score])).toEqual([
      ['fr', 1],
      ['pl', 1],
      ['at', 0],
    ])
    // The question about France was not repeated.
    const after = rehearsal.requests
      .slice(requests)
      .map(({ body }) => JSON.stringify(body.messages.at(-1)?.content))
    expect(after.some((prompt) => prompt.includes('France'))).toBe(false)
    // The log contains the same scores.
    expect(second.cases[0]?.runs[0]).toEqual(first.cases[0]?.runs[0])
    expect((await evaluate(options)).cases).toEqual(second.cases)
    expect(rehearsal.requests).toHaveLength(requests + after.length)
  })

  test('stores an evaluation equally in a synchronous and an asynchronous store', async () => {
    const { model } = await answering(known)
    const agent = createAgent({ model, prices })
    const options = { agent, cases: capitals, score: { exact }, id: 'e', repeat: 2 }
    const atOnce = await evaluate({ ...options, store: memoryStore() })
    const store = answerLater(memoryStore())
    const later = await evaluate({ ...options, store })
    const again = await evaluate({ ...options, store })
    const shown = ({ cases }: typeof later) =>
      cases.map(({ id, score, runs }) => [id, score, runs.map((run) => run.session)])
    expect(shown(later)).toEqual(shown(atOnce))
    expect(again.cases).toEqual(later.cases)
    // They are marked as evaluation sessions.
    expect(await readSessionCases(store)).toEqual([])
  })

  test('refuses to continue with another agent, or with different input for the same case id', async () => {
    const { model } = await answering(known)
    const store = memoryStore()
    const options = { store, cases: capitals.slice(0, 1), id: 'e' }
    await evaluate({ ...options, agent: createAgent({ model }) })
    const other = createAgent({ model, instructions: 'Be brief.' })
    await expect(evaluate({ ...options, agent: other })).rejects.toThrow(
      /Session 'e\.fr\.1' .* was started with an agent with different instructions.* a new id/s,
    )
    const cases = [{ id: 'fr', input: 'Something else?' }]
    await expect(evaluate({ ...options, cases, agent: createAgent({ model }) })).rejects.toMatchObject({
      code: 'other_evaluation',
      subject: 'e.fr.1',
    })
  })

  test('reports its progress', async () => {
    const { model } = await answering(known)
    const seen: EvaluationProgress[] = []
    await evaluate({
      agent: createAgent({ model, prices }),
      cases: capitals,
      score: exact,
      concurrency: 1,
      onProgress: (progress) => seen.push(progress),
    })
    expect(seen.map(({ done, running, passed, failed }) => [done, running, passed, failed])).toEqual([
      [0, 1, 0, 0],
      [1, 0, 1, 0],
      [1, 1, 1, 0],
      [2, 0, 2, 0],
      [2, 1, 2, 0],
      [3, 0, 2, 1],
    ])
    expect(seen.at(-1)).toMatchObject({ total: 3, last: { case: 'at', run: { verdict: 'failed' } } })
    expect(seen.at(-1)?.cost).toBeGreaterThan(0)
  })

  test('accepts an id that no session can have', async () => {
    const { model } = await answering(known)
    const store = memoryStore()
    const cases = [{ id: 'Wie heißt die Hauptstadt? / 2', input: 'France?' }]
    const { cases: done } = await evaluate({ agent: createAgent({ model }), cases, store, id: 'e' })
    expect(done[0]?.id).toBe(cases[0]?.id)
    expect(done[0]?.runs[0]?.session).toMatch(/^e\.[0-9a-f]{32}\.1$/)
  })

  test('refuses unknown and invalid options', async () => {
    const { model } = await answering(known)
    const agent = createAgent({ model })
    const refused = async (options: object) =>
      evaluate({ agent, cases: capitals, ...options } as never).then(
        () => 'not refused',
        (error: Error) => error.message,
      )
    expect(await refused({ scorer: exact })).toMatch(/evaluate has no option 'scorer'\. Did you mean score\?/)
    expect(await refused({ agent: {} })).toMatch(/an agent created by createAgent\(\)/)
    expect(await refused({ repeat: 0 })).toMatch(/repeat must be a positive integer/)
    expect(await refused({ concurrency: -1 })).toMatch(/concurrency must be a positive integer/)
    expect(await refused({ passAt: Number.NaN })).toMatch(/passAt must be a number from 0 to 1/)
    expect(await refused({ id: 'a.b' })).toMatch(/without a dot/)
    expect(await refused({ score: { 'a b': exact } })).toMatch(/score\['a b'\]/)
    expect(await refused({ score: {} })).toMatch(/score must be a function/)
    expect(await refused({ cases: [] })).toMatch(/contains no cases/)
    expect(
      await refused({
        cases: [
          { id: 'a', input: 'x' },
          { id: 'a', input: 'y' },
        ],
      }),
    ).toMatch(/case 2 has the id "a" of case 1/)
    expect(await refused({ store: {} })).toMatch(/store must be a SessionStore/)
  })

  test('ends at an error that affects every case', async () => {
    const { model } = await answering(known)
    const agent = createAgent({ model, limits: { costLimit: 1 } })
    await expect(evaluate({ agent, cases: capitals })).rejects.toMatchObject({ name: 'ConfigError' })
  })
})

describe('judge', () => {
  const rubric = 'The answer names the capital.'
  const judging = (score: number) =>
    answering((_said, _results, { body }) => ({
      text: JSON.stringify({ why: `Asked ${body.messages.length}.`, score }),
    }))

  test('scores by a rubric, and its cost is counted separately', async () => {
    const { model } = await answering(known)
    const { model: judgeModel, rehearsal } = await judging(0.25)
    const score = judge({ model: judgeModel, rubric, prices })
    const agent = createAgent({ model, prices })
    const { cases, summary } = await evaluate({ agent, cases: capitals, score: { quality: score } })
    expect(cases[0]?.runs[0]?.scores).toEqual({ quality: { score: 0.25, passed: false, why: 'Asked 2.' } })
    expect(summary.verdicts.failed).toBe(3)
    expect(summary.cost.judges).toBeGreaterThan(0)
    expect(summary.cost.total).toBeCloseTo((summary.cost.agent ?? 0) + (summary.cost.judges ?? 0))
    const [system, user] = rehearsal.requests[0]?.body.messages ?? []
    expect(system?.content).toContain(rubric)
    expect(JSON.parse(user?.content as string)).toEqual({
      question: 'The capital of France?',
      expected: 'Paris',
      answer: 'Paris',
    })
  })

  test('is called once if a store has its verdict, and again with another rubric', async () => {
    const { model } = await answering(known)
    const { model: judgeModel, rehearsal } = await judging(1)
    const options = { agent: createAgent({ model }), cases: capitals, store: memoryStore(), id: 'e' }
    const first = await evaluate({
      ...options,
      score: { quality: judge({ model: judgeModel, rubric, prices }) },
    })
    expect(rehearsal.requests).toHaveLength(3)
    const second = await evaluate({
      ...options,
      score: { quality: judge({ model: judgeModel, rubric, prices }) },
    })
    expect(rehearsal.requests).toHaveLength(3)
    expect(second.cases).toEqual(first.cases)
    await evaluate({ ...options, score: { quality: judge({ model: judgeModel, rubric: 'It is short.' }) } })
    expect(rehearsal.requests).toHaveLength(6)
  })

  test('reads the calls of the run if configured', async () => {
    const input = { type: 'object' as const }
    const look = defineTool({ name: 'look', description: 'Looks.', input, execute: () => 'Seen.' })
    const { model } = await answering((_said, results) =>
      results === 0 ? { toolCalls: [{ name: 'look', arguments: { at: 'map' } }] } : { text: 'Paris' },
    )
    const { model: judgeModel, rehearsal } = await judging(1)
    const agent = createAgent({ model, tools: [look] })
    const options = { agent, cases: capitals.slice(0, 1) }
    await evaluate({ ...options, score: judge({ model: judgeModel, rubric }) })
    await evaluate({ ...options, score: judge({ model: judgeModel, rubric, transcript: true }) })
    const [without, all] = rehearsal.requests.map(({ body }) => JSON.stringify(body.messages.at(-1)?.content))
    expect(without).not.toContain('Seen.')
    expect(all).toMatch(/look.*map.*Seen\./s)
  })

  test('spends from the budgets of the evaluation, and a verdict that they cannot pay for is an error', async () => {
    const { model } = await answering(known)
    const { model: judgeModel, rehearsal } = await judging(1)
    const score = judge({ model: judgeModel, rubric, sampling: { maxTokens: 100 } })
    const budget = createBudget({ id: 'evaluation', tokens: 10_000, store: memoryStore() })
    const agent = createAgent({ model, sampling: { maxTokens: 100 } })
    const options = { agent, cases: capitals.slice(0, 1), score }
    await evaluate({ ...options, budgets: [budget] })
    const { spent } = await budget.status()
    const alone = createBudget({ id: 'alone', tokens: 10_000, store: memoryStore() })
    await evaluate({ ...options, score: () => 1, budgets: [alone] })
    const { spent: ofAgent } = await alone.status()
    expect(spent.tokens).toBeGreaterThan(ofAgent.tokens)
    expect(rehearsal.requests).toHaveLength(1)

    // Enough for the agent, which has the shorter request.
    const small = createBudget({ id: 'small', tokens: ofAgent.tokens + 200, store: memoryStore() })
    const { cases } = await evaluate({ ...options, budgets: [small] })
    expect(rehearsal.requests).toHaveLength(1)
    expect(cases[0]?.runs[0]).toMatchObject({
      verdict: 'error',
      error: { code: 'judge_failed', message: expect.stringContaining("budget 'small' is used up") },
    })
  })

  test('fails without a verdict', async () => {
    const { model } = await answering(known)
    const { model: judgeModel } = await answering(() => ({ text: 'I would say it is fine.' }))
    const { cases, summary } = await evaluate({
      agent: createAgent({ model }),
      cases: capitals.slice(0, 1),
      score: { quality: judge({ model: judgeModel, rubric }) },
    })
    expect(summary.verdicts).toMatchObject({ error: 1, failed: 0 })
    expect(cases[0]?.runs[0]?.error).toMatchObject({ code: 'judge_failed', scorer: 'quality' })
  })

  test('is refused without a rubric or a model', async () => {
    expect(() => judge({ rubric } as never)).toThrow(/model must be a ModelProvider/)
    const { model } = await answering(known)
    expect(() => judge({ model } as never)).toThrow(/rubric must describe/)
  })
})
