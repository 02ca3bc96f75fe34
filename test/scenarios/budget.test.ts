import { type AgentOptions, createSession, memoryJournal } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { played, stage } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

/** One dollar per token, input or output. */
const prices = { 'gpt-test': { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000 } }
const usage = { input: 90, output: 10 }
const asks = call('work', { n: 1 }, { usage })
const answers = text('Done.', { usage })

function budgeted(turns: Turn[], options: Partial<AgentOptions>) {
  return played(turns, { prices, tools: [tool('work')], ...options })
}

describe('a budget', () => {
  it.each([
    ['token_budget', { tokenBudget: 100 }, 'limits.tokenBudget'],
    ['output_tokens', { outputTokens: 10 }, 'limits.outputTokens'],
    ['cost_limit', { costLimit: 100 }, 'limits.costLimit'],
  ])('ends the run right after the response that reaches it: %s', async (reason, limits, key) => {
    const work = tool('work')
    const { result } = await budgeted([asks], { limits, tools: [work] })
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', reason, steps: 1 })
    expect(result.error).toMatchObject({ code: reason, recoverable: true })
    expect(result.error?.message).toContain(`Raise ${key}`)
    expect(work.inputs).toEqual([])
    expect(result.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringContaining('Not executed'),
      data: { status: 'not_executed' },
    })
  })

  it.each([{ tokenBudget: 102 }, { outputTokens: 11 }, { costLimit: 101.5 }])(
    'continues the run if it is not reached: %j',
    async (limits) => {
      const { result } = await budgeted([asks, text('Done.', { usage: { input: 1, output: 0 } })], { limits })
      expect(result.state).toBe('COMPLETED')
    },
  )

  it('names the first of tokens, output tokens and cost if several are reached', async () => {
    const all = { tokenBudget: 100, outputTokens: 10, costLimit: 100 }
    expect((await budgeted([asks], { limits: all })).result.reason).toBe('token_budget')
    const two = { ...all, tokenBudget: 0 }
    expect((await budgeted([asks], { limits: two })).result.reason).toBe('output_tokens')
  })

  describe('with a reserve for the final answer', () => {
    const limits = { onNearBudget: 'conclude' } as const
    const guardrails = { reserveTokens: 100, reserveCostFraction: 0.5 }
    const last = text('So far.', { usage })

    it.each([
      ['token_budget', { tokenBudget: 200 }, '200 of 200 tokens'],
      ['token_budget', { tokenBudget: 201, costLimit: 1_000 }, '200 of 201 tokens'],
      ['cost_limit', { costLimit: 201 }, '200 of 201 USD'],
    ])('spends it on an answer, and ends for %s: %j', async (reason, limit, spent) => {
      const work = tool('work')
      const { result, stage: opened } = await budgeted([asks, last], {
        limits: { ...limits, ...limit },
        guardrails: { ...guardrails, reserveTokens: 101, reserveCostFraction: 0.51 },
        tools: [work],
      })
      expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', reason, output: 'So far.', steps: 2 })
      expect(result.error).toMatchObject({ code: reason, recoverable: true })
      expect(result.error?.message).toContain(spent)
      expect(work.inputs).toEqual([{ n: 1 }])
      expect(JSON.stringify(opened.wire(-1))).toContain('This is your final answer')
    })

    it('continues while more than the reserve is left', async () => {
      const { result } = await budgeted([asks, answers], {
        limits: { ...limits, tokenBudget: 201 },
        guardrails,
      })
      expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    })

    it('ends without an answer if the last request fails', async () => {
      const { result, of } = await budgeted([asks, { status: 401 }], {
        limits: { ...limits, tokenBudget: 200 },
        guardrails,
      })
      expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'token_budget', output: '' })
      expect(result.error?.message).toMatch(/nearly used up: 100 of 200 tokens/)
      expect(of('warning').map(({ code }) => code)).toContain('no_conclusion')
    })

    it('delivers earlier steering', async () => {
      const opened = await stage([asks, last], {
        prices,
        limits: { ...limits, tokenBudget: 200 },
        guardrails,
        tools: [tool('work', () => play.run.steer('In French.'))],
      })
      const play = opened.run()
      expect(await play.end(2)).toMatchObject({ state: 'BUDGET_EXCEEDED', output: 'So far.' })
      expect(JSON.stringify(opened.wire(-1))).toContain('In French.')
    })
  })

  it('finishes the batch first with budget.finishBatch', async () => {
    const work = tool('work')
    const { result } = await budgeted([asks], {
      limits: { tokenBudget: 100 },
      budget: { finishBatch: true },
      tools: [work],
    })
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', steps: 1 })
    expect(work.inputs).toHaveLength(1)
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', content: 'ok' })
  })

  it('keeps the answer that crosses the limit, and completes with onOvershoot complete', async () => {
    const limits = { tokenBudget: 50 }
    const exceeded = await budgeted([answers], { limits })
    expect(exceeded.result).toMatchObject({ state: 'BUDGET_EXCEEDED', output: 'Done.' })
    expect(exceeded.result.messages.at(-1)).toMatchObject({ content: 'Done.' })
    const complete = await budgeted([answers], { limits, budget: { onOvershoot: 'complete' } })
    expect(complete.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })

  it('excludes cached input with countCached false', async () => {
    const cached = text('Done.', { usage: { input: 90, output: 9, cached: 80 } })
    const limits = { tokenBudget: 99 }
    expect((await budgeted([cached], { limits })).result.state).toBe('BUDGET_EXCEEDED')
    const uncounted = await budgeted([cached], { limits, budget: { countCached: false } })
    expect(uncounted.result.state).toBe('COMPLETED')
  })

  it('that the session has used up ends a run with zero calls, and the session continues after a raise', async () => {
    const theatre = await stage([answers, answers], { limits: { tokenBudget: 100 } })
    const session = createSession()
    await theatre.run('One.', { session }).end(1)
    const journal = memoryJournal()
    const play = theatre.run('Two.', { session, journal })
    const spent = await play.end(1)
    expect(spent).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'token_budget', steps: 0 })
    expect(spent.error?.message).toMatch(/100 of 100 tokens.*Raise limits\.tokenBudget/)
    expect(journal.entries).toMatchObject([{ type: 'start', input: { runId: play.run.id } }])
    const late: string[] = []
    play.run.state$.subscribe((state) => late.push(state))
    expect(late).toEqual(['BUDGET_EXCEEDED'])
    const raised = await theatre.run('Three.', { session, limits: { tokenBudget: 500 } }).end(2)
    expect(raised).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(theatre.wire(1).map(({ content }) => content)).toEqual([
      'One.',
      'Done.',
      // The second message has no answer. Some chat templates reject two user messages in a row.
      'Two.\n\nThree.',
    ])
  })

  it('of scope run starts at zero with each run', async () => {
    const theatre = await stage([answers, answers], {
      limits: { tokenBudget: 101 },
      budget: { scope: 'run' },
    })
    const session = createSession()
    for (const calls of [1, 2]) {
      expect((await theatre.run('Go.', { session }).end(calls)).state).toBe('COMPLETED')
    }
    expect(session.usage.totalTokens).toBe(200)
  })

  it('refuses a request whose input alone exceeds it with budget.preflight', async () => {
    const theatre = await stage([answers], { limits: { tokenBudget: 60 }, budget: { preflight: true } })
    const refused = await theatre.run('word '.repeat(100)).end(0, 1)
    expect(refused).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'token_budget', steps: 0 })
    expect(refused.error?.message).toMatch(
      /next request needs about \d+ tokens, but 60 of limits\.tokenBudget \(60\) are left/,
    )
    expect(refused.error).toMatchObject({ code: 'token_budget', recoverable: true })
    expect((await theatre.run('Short.').end(1, 1)).output).toBe('Done.')
  })
})

describe('a nearly exhausted budget', () => {
  it('causes one warning per session, and isNearBudget() is true', async () => {
    const theatre = await stage([asks, asks, answers, answers], {
      limits: { tokenBudget: 600, maxSteps: 50 },
      tools: [tool('work')],
    })
    const session = createSession()
    const near: boolean[] = []
    const play = theatre.run('Go.', { session })
    play.run.events$.subscribe(({ type }) => {
      if (type === 'state_changed') near.push(play.run.isNearBudget())
    })
    await play.end(3)
    expect(near[0]).toBe(false)
    expect(near.at(-1)).toBe(true)
    expect(play.of('budget_warning')).toMatchObject([{ remainingTokens: 500, remainingCost: null }])
    const next = theatre.run('Go.', { session })
    await next.end(4)
    expect(next.of('budget_warning')).toEqual([])
    expect(next.run.isNearBudget()).toBe(true)
  })

  it('can also be near by cost at reserveCostFraction', async () => {
    const { of, run } = await budgeted([text('Hi.', { usage: { input: 85, output: 5 } })], {
      limits: { costLimit: 100 },
    })
    expect(of('budget_warning')).toMatchObject([{ remainingCost: 10 }])
    expect(run.isNearBudget()).toBe(true)
    const far = await budgeted([text('Hi.', { usage: { input: 84, output: 5 } })], {
      limits: { costLimit: 100 },
    })
    expect(far.of('budget_warning')).toEqual([])
  })

  it('does not exist without a limit', async () => {
    const { of, run } = await budgeted([answers], {})
    expect(of('budget_warning')).toEqual([])
    expect(run.isNearBudget()).toBe(false)
  })
})

describe('a call that is not executed', () => {
  it('leaves a history that the next run can send', async () => {
    const batch = calls(
      [
        ['work', { n: 1 }],
        ['work', { n: 2 }],
      ],
      { usage },
    )
    const theatre = await stage([batch, text('Fine.')], {
      limits: { tokenBudget: 100 },
      tools: [tool('work')],
    })
    await theatre.run('Go.', { session: 's' }).end(1)
    await theatre.run('Go on.', { session: 's', limits: { tokenBudget: 0 } }).end(2)
    expect(theatre.wire(1).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user'])
  })
})
