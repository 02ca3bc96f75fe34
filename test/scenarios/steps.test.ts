import { ConfigError, createAgent, openaiChat } from '../../src/index.js'
import { played, stage } from '../support/play.js'
import { call, calls, text, times, tool } from '../support/tools.js'

/** Distinct calls, so that no guard acts. */
const busy = (count: number) => Array.from({ length: count }, (_, n) => call('work', { n }))

describe('limits.maxSteps', () => {
  it.each([1, 2, 7])(
    'of %i allows exactly that many model calls, and the last batch completes',
    async (maxSteps) => {
      const work = tool('work')
      const { result } = await played(busy(maxSteps), { limits: { maxSteps }, tools: [work] })
      expect(result).toMatchObject({ state: 'MAX_STEPS', reason: 'max_steps', steps: maxSteps })
      expect(work.inputs).toHaveLength(maxSteps)
      expect(result.messages.at(-1)).toMatchObject({ role: 'tool', content: 'ok' })
      expect(result.error).toMatchObject({ code: 'max_steps', recoverable: true })
      expect(result.error?.message).toMatch(/limits\.maxSteps/)
    },
  )

  it('does not affect an answer in the last step', async () => {
    const { result } = await played([...busy(2), text('Done.')], {
      limits: { maxSteps: 3 },
      tools: [tool('work')],
    })
    expect(result).toMatchObject({ state: 'COMPLETED', steps: 3 })
  })

  it('defaults to 50, and null disables it', async () => {
    const tools = [tool('work', ({ n }) => `did ${n}`)]
    expect((await played(busy(50), { tools })).result).toMatchObject({ state: 'MAX_STEPS', steps: 50 })
    const unlimited = await played([...busy(60), text('Done.')], { tools, limits: { maxSteps: null } })
    expect(unlimited.result).toMatchObject({ state: 'COMPLETED', steps: 61 })
  })

  it('is overridden by the run, key by key', async () => {
    const theatre = await stage(busy(2), { tools: [tool('work')], limits: { maxSteps: 9, timeoutMs: 500 } })
    const result = await theatre.run('Go.', { limits: { maxSteps: 2 } }).end(2)
    expect(result).toMatchObject({ state: 'MAX_STEPS', steps: 2 })
    expect(theatre.agent.config.limits).toMatchObject({ maxSteps: 9, timeoutMs: 500 })
  })

  it('outputs the last text of the model, and adds no words', async () => {
    const { result } = await played([call('work', {}, { text: 'Looking into it.' })], {
      limits: { maxSteps: 1 },
      tools: [tool('work')],
    })
    expect(result.output).toBe('Looking into it.')
    expect(result.messages).toHaveLength(3)
  })

  it('restarts its count with a new message', async () => {
    const theatre = await stage([...busy(1), text('Done.')], {
      limits: { maxSteps: 1 },
      tools: [tool('work')],
    })
    await theatre.run('Go.', { session: 's' }).end(1)
    expect((await theatre.run('Go on.', { session: 's' }).end(2)).output).toBe('Done.')
  })
})

describe('limits.onLimit conclude', () => {
  const limits = { maxSteps: 2, onLimit: 'conclude' } as const
  const look = tool('look', () => 'same', { readOnly: true })

  it('sends one more request without tools at the step cap, and keeps the state of the limit', async () => {
    const { result, stage } = await played([...busy(2), text('What I know so far.')], {
      limits,
      tools: [tool('work')],
    })
    expect(result).toMatchObject({ state: 'MAX_STEPS', reason: 'max_steps', steps: 3 })
    expect(result.output).toBe('What I know so far.')
    expect(stage.requests.map(({ body }) => body.tools?.length ?? 0)).toEqual([1, 1, 0])
    expect(stage.wire(2).at(-1)?.content).toMatch(/final answer/)
    expect(JSON.stringify(result.messages)).not.toMatch(/final answer/)
  })

  it('sends one more request after a guard halts, and still states the reason', async () => {
    const turns = [...times(4, call('look')), text('It is always the same.')]
    const { result } = await played(turns, {
      limits: { onLimit: 'conclude' },
      guardrails: { repeatedCall: {} },
      tools: [look],
    })
    expect(result).toMatchObject({
      state: 'ERROR',
      reason: 'repeated_call',
      output: 'It is always the same.',
    })
    expect(result.error?.code).toBe('repeated_call')
    expect(result.error?.message).toMatch(/maxRepeatedToolSteps/)
  })

  it('executes no calls of the conclusion', async () => {
    const work = tool('work')
    const { result } = await played([...busy(2), call('work', { n: 9 })], { limits, tools: [work] })
    expect(result.state).toBe('MAX_STEPS')
    expect(work.inputs).toEqual([{ n: 0 }, { n: 1 }])
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', data: { status: 'not_executed' } })
  })

  it('ends without a conclusion if that request fails', async () => {
    const { result, of } = await played([...busy(2), { status: 500 }], { limits, tools: [tool('work')] })
    expect(result).toMatchObject({ state: 'MAX_STEPS', steps: 2 })
    expect(result.error?.code).toBe('max_steps')
    expect(of('warning')).toMatchObject([{ code: 'no_conclusion' }])
  })

  it('sends no conclusion request if the budget is spent', async () => {
    const usage = { input: 100, output: 10 }
    const { result } = await played([call('work', {}, { usage })], {
      limits: { maxSteps: 1, tokenBudget: 100, onLimit: 'conclude' },
      budget: { finishBatch: true },
      tools: [tool('work')],
    })
    expect(result).toMatchObject({ state: 'MAX_STEPS', steps: 1 })
  })
})

describe('an invalid limit', () => {
  const wrong: [limits: object, subject: string][] = [
    [{ maxSteps: 0 }, 'limits.maxSteps'],
    [{ maxSteps: -1 }, 'limits.maxSteps'],
    [{ maxSteps: 1.5 }, 'limits.maxSteps'],
    [{ maxSteps: Number.NaN }, 'limits.maxSteps'],
    [{ maxSteps: Infinity }, 'limits.maxSteps'],
    [{ maxSteps: '5' }, 'limits.maxSteps'],
    [{ timeoutMs: -1 }, 'limits.timeoutMs'],
    [{ timeoutMs: Infinity }, 'limits.timeoutMs'],
    [{ tokenBudget: Number.NaN }, 'limits.tokenBudget'],
    [{ outputTokens: -1 }, 'limits.outputTokens'],
    [{ costLimit: -0.01 }, 'limits.costLimit'],
    [{ costLimit: Infinity }, 'limits.costLimit'],
    [{ onLimit: 'shout' }, 'limits.onLimit'],
    [{ maxStep: 5 }, 'limits.maxStep'],
  ]

  it.each(wrong)(
    '%p is refused before anything is sent, with the key and the valid values',
    async (limits, subject) => {
      const theatre = await stage([text('Never.')])
      const model = openaiChat({ model: 'gpt-test', baseURL: theatre.rehearsal.url })
      expect(() => createAgent({ model, limits })).toThrow(ConfigError)
      const refusal = caught(() => theatre.agent.run('Go.', { limits: limits as never, session: 's' }))
      expect(refusal).toBeInstanceOf(ConfigError)
      expect(refusal).toMatchObject({ code: 'invalid_config', subject })
      expect((await theatre.run('Go.', { session: 's' }).end(1)).output).toBe('Never.')
    },
  )

  it('0 and null disable the other limits', async () => {
    const off = { timeoutMs: 0, tokenBudget: null, outputTokens: 0, costLimit: null }
    const { result } = await played([text('Fine.')], { limits: off })
    expect(result.state).toBe('COMPLETED')
  })
})

describe('a batch', () => {
  it('runs at most toolCalls.concurrency calls at once', async () => {
    let running = 0
    let most = 0
    const work = tool('work', async () => {
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running--
    })
    const batch = calls(Array.from({ length: 6 }, (_, n) => ['work', { n }] as const))
    await played([batch, text('Done.')], { tools: [work], toolCalls: { concurrency: 2 } })
    expect([work.inputs.length, most]).toEqual([6, 2])
  })
})

function caught(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}
