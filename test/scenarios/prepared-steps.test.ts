import { z } from 'zod'
import {
  type AgentOptions,
  ConfigError,
  createAgent,
  createEventFormatter,
  handoff,
  memoryStore,
  type ModelProvider,
  openaiChat,
  type PrepareStep,
  type StepQuestion,
  toolSearch,
  type Tool,
  withFallbacks,
} from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { skills } from '../../src/skills/index.js'
import { createRecordedAgent, recordSession, replaySession } from '../../src/testing/index.js'
import { again, played, stage, textOf } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

interface Sent {
  model?: string
  tools?: { function: { name: string } }[]
  tool_choice?: unknown
  temperature?: number
}
const sentIn = ({ sent }: { sent: unknown }): Sent => sent as Sent
const toolsIn = (request: { sent: unknown }): string[] =>
  (sentIn(request).tools ?? []).map(({ function: { name } }) => name)

/** A run that ends before it sends a request. */
async function unsent(options: Partial<AgentOptions>) {
  const theatre = await stage([text('Never.')], options)
  const result = await theatre.run().run.result
  expect(theatre.requests).toEqual([])
  return { result }
}

const pair = [tool('look', () => 'Seen.'), tool('book', () => 'Booked.')]

describe('prepareStep', () => {
  it('is called once before each request, with the results so far', async () => {
    const questions: StepQuestion[] = []
    const theatre = await stage([call('look', { at: 1 }), text('Done.')], {
      tools: pair,
      prepareStep: (question) => void questions.push(question),
    })
    const { run } = theatre.run('Go.', { context: { user: 'ann' } })
    const { usage } = await run.result
    expect(questions.map(({ step, context }) => [step, context])).toEqual([
      [1, { user: 'ann' }],
      [2, { user: 'ann' }],
    ])
    expect(questions[0]).toMatchObject({
      lastResults: [],
      messages: [{ role: 'user' }],
      usage: { totalTokens: 0 },
    })
    expect(questions[1]?.lastResults).toMatchObject([
      { name: 'look', arguments: { at: 1 }, status: 'ok', content: 'Seen.' },
    ])
    expect(questions[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(questions[1]?.usage.totalTokens).toBeLessThan(usage.totalTokens)
    expect(Object.isFrozen(questions[1]?.messages[0])).toBe(true)
  })

  it('changes the instructions, sampling, tool choice and tools of one request', async () => {
    const { stage: theatre } = await played([call('look'), text('Done.')], {
      tools: pair,
      instructions: 'Be brief.',
      sampling: { temperature: 1, topP: 0.5 },
      prepareStep: ({ step }) =>
        step === 1
          ? {
              instructions: 'Look first.',
              sampling: { temperature: 0 },
              toolChoice: { name: 'look' },
              tools: ['look'],
            }
          : undefined,
    })
    const [first, second] = theatre.requests
    expect(sentIn(first as never)).toMatchObject({ temperature: 0, top_p: 0.5 })
    expect(sentIn(first as never).tool_choice).toMatchObject({ function: { name: 'look' } })
    expect(theatre.requests.map(toolsIn)).toEqual([['look'], ['look', 'book']])
    expect(sentIn(second as never)).toMatchObject({ temperature: 1 })
    expect([textOf(theatre.wire(0)[0]), textOf(theatre.wire(1)[0])]).toEqual(['Look first.', 'Be brief.'])
  })

  it('can remove the tool choice with its tools', async () => {
    const { stage: theatre } = await played([text('Done.')], {
      tools: pair,
      toolChoice: { name: 'look' },
      prepareStep: () => ({ tools: [] }),
    })
    expect(sentIn(theatre.requests[0] as never)).not.toHaveProperty('tool_choice')
    expect(theatre.requests.map(toolsIn)).toEqual([[]])
  })

  it('restricts the chart: a call of an omitted tool is refused before it runs or is approved', async () => {
    const book = tool('book', () => 'Booked.', { needsApproval: true })
    const { result, of } = await played([calls([['book'], ['look']]), text('Done.')], {
      tools: [tool('look'), book],
      prepareStep: () => ({ tools: ['look'] }),
    })
    expect(result.state).toBe('COMPLETED')
    expect(book.inputs).toEqual([])
    expect(of('tool_result').map(({ name, status }) => [name, status])).toEqual([
      ['book', 'blocked'],
      ['look', 'ok'],
    ])
  })

  it.each(['append', 'dispatch'] as const)(
    'restricts deferred tools, whichever are loaded (%s)',
    async (loading) => {
      const deferred = (name: string): Tool => ({ ...tool(name, () => `${name}.`), defer: true })
      const through = (name: string) =>
        loading === 'append' ? call(name) : call('call_tool', { name, arguments: {} })
      const {
        result,
        of,
        stage: theatre,
      } = await played(
        [call('tool_search', { query: 'one' }), through('one'), through('two'), text('Done.')],
        {
          tools: [deferred('one'), deferred('two'), toolSearch({ loading, search: () => ['one', 'two'] })],
          prepareStep: ({ step }) =>
            step === 1 ? {} : { tools: ['one', 'tool_search'], instructions: 'Now.' },
        },
      )
      expect(result.state).toBe('COMPLETED')
      expect(of('tool_result').map(({ name, status }) => [name, status])).toEqual([
        ['tool_search', 'ok'],
        ['one', 'ok'],
        ['two', 'blocked'],
      ])
      expect(toolsIn(theatre.requests[1] as never)).toEqual(
        loading === 'append' ? ['tool_search', 'one'] : ['tool_search', 'call_tool'],
      )
      expect(textOf(theatre.wire(1)[0])).toMatch(/^Now\.\n\n[^]*- one/)
      expect(textOf(theatre.wire(1)[0])).not.toContain('- two')
    },
  )

  it('changes the messages of one request, and leaves the transcript unchanged', async () => {
    const { result, stage: theatre } = await played([call('look'), text('Done.')], {
      tools: pair,
      prepareStep: ({ step, messages }) =>
        step === 2 ? { messages: [...messages.slice(1), { role: 'user', content: 'Mind the time.' }] } : {},
    })
    expect(theatre.wire(1).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
    expect(textOf(theatre.wire(1).at(-1))).toBe('Mind the time.')
    expect(JSON.stringify(theatre.wire(1))).not.toContain('Go.')
    expect(result.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  })

  it('is not fitted if it has changed the messages, which must fit', async () => {
    const { result } = await unsent({
      tokenizer: { count: (words) => words.length },
      context: { window: 100 },
      prepareStep: () => ({ messages: [{ role: 'user', content: 'x'.repeat(500) }] }),
    })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'context_overflow' })
    expect(result.error?.message).toContain('prepareStep')
  })

  it('is not called again for another attempt at the step', async () => {
    let requestCount = 0
    const theatre = await stage([{ status: 500 } as never, text('Done.')], {
      prepareStep: () => ({ instructions: `Attempt ${(requestCount += 1)}.` }),
    })
    const play = theatre.run().skipBackOff()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(requestCount).toBe(1)
    expect([textOf(theatre.wire(0)[0]), textOf(theatre.wire(1)[0])]).toEqual(['Attempt 1.', 'Attempt 1.'])
  })

  it('lets a simultaneous pause take effect first, and is not called again after it', async () => {
    let requestCount = 0
    const theatre = await stage([text('Done.')], {
      prepareStep: () => {
        requestCount += 1
        play.run.pause()
        return {}
      },
    })
    const play = theatre.run()
    expect(await play.rest()).toMatchObject({ state: 'PAUSED' })
    play.run.resume()
    expect(await play.run.result).toMatchObject({ state: 'COMPLETED' })
    expect(requestCount).toBe(1)
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('Oh.')
      },
      'prepareStep threw: Oh.',
    ],
    ['rejects', () => Promise.reject(new Error('Oh.')), 'prepareStep threw: Oh.'],
    ['returns no object', () => 'fast', 'prepareStep must return an object'],
    [
      'returns an unknown key',
      () => ({ modell: 'fast' }),
      "prepareStep returned the unknown key 'modell'. Did you mean model?",
    ],
    [
      'names an unknown model',
      () => ({ model: 'fasst' }),
      "prepareStep returned the model 'fasst', but the models are fast. Did you mean fast?",
    ],
    [
      'names an unknown tool',
      () => ({ tools: ['loook'] }),
      "prepareStep returned the tool 'loook', which this agent does not have. Did you mean look?",
    ],
    [
      'returns no list of tools',
      () => ({ tools: 'look' }),
      'prepareStep returned tools that are not a list of names.',
    ],
    [
      'selects a tool that the step omits',
      () => ({ tools: ['look'], toolChoice: { name: 'book' } }),
      "prepareStep returned the toolChoice 'book'",
    ],
    [
      'requires a call without tools',
      () => ({ tools: [], toolChoice: 'required' }),
      "prepareStep returned the toolChoice 'required' without tools.",
    ],
    ['returns invalid sampling', () => ({ sampling: { temperature: 7 } }), 'temperature'],
    [
      'returns no messages',
      () => ({ messages: [] }),
      'prepareStep returned messages that are not a non-empty list.',
    ],
    [
      'returns a result without its call',
      () => ({ messages: [{ role: 'tool', tool_call_id: 'a', content: 'x' }] }),
      'prepareStep returned messages that are not valid in a request',
    ],
  ] as [string, PrepareStep, string][])(
    'ends the run with a failure that names the problem if it %s',
    async (_, prepareStep, message) => {
      const { result } = await unsent({
        tools: pair,
        prepareStep,
        models: { fast: openaiChat({ model: 'fast', apiKey: 'none' }) },
      })
      expect(result).toMatchObject({
        state: 'ERROR',
        reason: 'internal',
        error: { code: 'prepare_step_failed' },
      })
      expect(result.error?.message).toContain(message)
    },
  )

  it('must be a function, and models must be models', () => {
    const model = { request: () => undefined }
    expect(() => createAgent({ model, prepareStep: {} } as never)).toThrow(ConfigError)
    expect(() => createAgent({ model, models: { fast: 'gpt' } } as never)).toThrow(
      new ConfigError(
        'invalid_config',
        "models.fast must be a ModelProvider, such as openaiChat({ model: '…' }).",
        'models.fast',
      ),
    )
  })

  it('is logged, so that a replay, a resume in another process, a fork and a recorded agent do not call it again', async () => {
    const store = memoryStore()
    let requestCount = 0
    const create = (): Partial<AgentOptions> => ({
      store,
      tools: [tool('look'), tool('pay', () => 'Paid.', { needsApproval: true })],
      prepareStep: ({ step }) => {
        requestCount += 1
        return { instructions: `Asked ${requestCount}.`, ...(step === 1 && { tools: ['pay'] }) }
      },
    })
    const theatre = await stage([calls([['pay'], ['look']]), text('Done.'), text('Done.')], create())
    const first = theatre.run('Go.', { session: 's' })
    await first.rest()
    expect(requestCount).toBe(1)
    const other = again(theatre, create())
    const fork = await other.fork('s')
    for (const id of ['s', fork]) {
      const run = await other.resume(id)
      const [waiting] = (await run.result).pending ?? []
      run.approve(waiting?.callId ?? '')
      expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    }
    expect(requestCount).toBe(3)
    const recording = await recordSession(other, 's')
    expect(await replaySession(createRecordedAgent(recording), recording)).toMatchObject({
      state: 'COMPLETED',
    })
    expect((await other.replay('s')).run).toMatchObject({ state: 'COMPLETED' })
    expect(requestCount).toBe(3)
  })

  it('with an output schema still validates the answer', async () => {
    const { result } = await played([text('{"city":"Rome"}')], {
      output: { schema: z.object({ city: z.string() }), mode: 'response_format' },
      prepareStep: () => ({ instructions: 'Answer.' }),
    })
    expect(result).toMatchObject({ state: 'COMPLETED', object: { city: 'Rome' } })
  })

  it('reports differences in the step, if there are any', async () => {
    const fast = openaiChat({ model: 'fast', apiKey: 'none' })
    const theatre = await stage([call('look'), text('Never.')], {
      tools: pair,
      models: { fast },
      prepareStep: ({ step }) => (step === 1 ? { tools: ['look'], sampling: { temperature: 0 } } : {}),
    })
    const { run, of, events } = theatre.run()
    await run.result
    expect(of('step_prepared')).toMatchObject([
      { changes: ['tools', 'sampling'], tools: ['look'], stepId: of('tool_call')[0]?.stepId },
    ])
    const format = createEventFormatter({ color: false })
    const lines = events.map((event) => format(event)).filter((line) => line?.includes('prepared'))
    expect(lines).toEqual(['  ◇ step  prepared: tools look; sampling\n'])
  })

  it('restricts together with a loaded skill: a tool must be allowed by both', async () => {
    const write = tool('write')
    const theatre = await stage(
      [call('load_skill', { name: 'reading' }), calls([['look'], ['book'], ['write']]), text('Done.')],
      {
        tools: [...pair, write],
        skills: skills({
          list: [{ name: 'reading', description: 'How to read.', allowedTools: ['look', 'write'] }],
          load: () => 'Read.',
        }),
        prepareStep: ({ step }) => (step === 2 ? { tools: ['look', 'book'] } : {}),
      },
    )
    const { run, of } = theatre.run()
    expect((await run.result).state).toBe('COMPLETED')
    expect(toolsIn(theatre.requests[1] as never)).toEqual(['look', 'book'])
    expect(of('tool_result').map(({ name, status, content }) => [name, status, content])).toEqual([
      ['load_skill', 'ok', expect.stringContaining('Read.')],
      ['book', 'blocked', expect.stringContaining("the skill 'reading' is loaded")],
      ['write', 'blocked', 'Not executed: this step may not call this tool.'],
      ['look', 'ok', 'Seen.'],
    ])
    expect(write.inputs).toEqual([])
  })

  it('is called for the steps of a sub-agent', async () => {
    const requests: [string, number][] = []
    const theatre = await stage(
      [call('research', { task: 'Rivers.' }), call('look'), text('They flow.'), text('Done.')],
      {},
    )
    const child = again(theatre, {
      tools: pair,
      instructions: 'You research.',
      prepareStep: ({ step }) => {
        requests.push(['child', step])
        return { instructions: `Research ${step}.`, tools: ['look'] }
      },
    })
    const lead = again(theatre, {
      instructions: 'You lead.',
      tools: [child.asTool({ name: 'research', description: 'Researches.' })],
      prepareStep: ({ step }) => void requests.push(['lead', step]),
    })
    expect(await lead.run('Go.').result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(requests).toEqual([
      ['lead', 1],
      ['child', 1],
      ['child', 2],
      ['lead', 2],
    ])
    expect(theatre.requests.map((_, i) => textOf(theatre.wire(i)[0]))).toEqual([
      'You lead.',
      'Research 1.',
      'Research 2.',
      'You lead.',
    ])
    expect(theatre.requests.map(toolsIn)).toEqual([['research'], ['look'], ['look'], ['research']])
  })

  it('does not apply to the final answer at a limit', async () => {
    const { stage: theatre, result } = await played([call('look'), text('So far.')], {
      tools: pair,
      instructions: 'Be brief.',
      limits: { maxSteps: 1, onLimit: 'conclude' },
      prepareStep: () => ({ instructions: 'Look first.' }),
    })
    expect(result).toMatchObject({ state: 'MAX_STEPS', output: 'So far.' })
    expect([textOf(theatre.wire(0)[0]), textOf(theatre.wire(1)[0])]).toEqual(['Look first.', 'Be brief.'])
  })
})

describe('models', () => {
  it('are selected by name and priced separately; provider data of one is not sent to another', async () => {
    const rehearsal = await startRehearsal({
      scenario: { turns: [text('Done.', { usage: { input: 10, output: 5 } })] },
    })
    try {
      const fast = openaiChat({ model: 'fast', baseURL: rehearsal.url, apiKey: 'none' })
      const usage = { input: 10, output: 5 }
      const theatre = await stage([call('look', {}, { reasoning: 'Hm.', usage })], {
        tools: pair,
        models: { fast },
        prices: {
          'gpt-test': { inputPerMillion: 1, outputPerMillion: 1 },
          fast: { inputPerMillion: 100, outputPerMillion: 100 },
        },
        prepareStep: ({ step }) => (step === 2 ? { model: 'fast' } : {}),
      })
      const { run, of } = theatre.run()
      const result = await run.result
      expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
      expect(rehearsal.requests.map(sentIn)).toMatchObject([{ model: 'fast' }])
      expect(JSON.stringify(rehearsal.requests[0]?.sent)).not.toContain('Hm.')
      const costs = of('usage').map(({ step }) => step.cost ?? 0)
      expect((costs[1] ?? 0) / (costs[0] ?? 1)).toBeCloseTo(100)
    } finally {
      await rehearsal.close()
    }
  })

  it('can fall back: the next model of a list answers after a failure, without a retry of the run', async () => {
    const rehearsal = await startRehearsal({
      scenario: { turns: [{ status: 503, error: { message: 'Away.' } }, text('From the second.')] },
    })
    try {
      const [one, two] = ['one', 'two'].map((model) =>
        openaiChat({ model, baseURL: rehearsal.url, apiKey: 'none' }),
      ) as [ModelProvider, ModelProvider]
      const theatre = await stage([call('look')], {
        tools: pair,
        models: { safe: withFallbacks([one, two]) },
        prepareStep: ({ step }) => (step === 2 ? { model: 'safe' } : {}),
      })
      const { run } = theatre.run()
      expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'From the second.' })
      expect(rehearsal.requests.map((request) => sentIn(request).model)).toEqual(['one', 'two'])
      const { messages } = await run.result
      expect(messages.at(-1)).toMatchObject({ by: expect.stringMatching(/\/two$/) })
    } finally {
      await rehearsal.close()
    }
  })

  it('are validated before anything is sent, including fallbacks and handoffs, and are named', async () => {
    const key = process.env['OPENAI_API_KEY']
    delete process.env['OPENAI_API_KEY']
    try {
      const good = openaiChat({ model: 'good', apiKey: 'none', baseURL: 'http://127.0.0.1:9/' })
      const keyless = openaiChat({ model: 'keyless' })
      const missing = (place: string) =>
        expect.objectContaining({
          code: 'missing_api_key',
          message: expect.stringMatching(new RegExp(`^${place}: No API key`)),
        })
      const run = (options: Partial<AgentOptions>) => () =>
        createAgent({ model: good, ...options }).run('Go.')
      expect(run({ models: { good, fast: keyless } })).toThrow(missing('models.fast'))
      expect(run({ models: { safe: withFallbacks([good, keyless]) } })).toThrow(missing('models.safe'))
      const other = createAgent({ model: keyless })
      expect(run({ tools: [handoff(other, { name: 'other' })] })).toThrow(missing("model of 'other'"))
      const another = createAgent({ model: good, models: { fast: keyless } })
      expect(run({ tools: [handoff(another, { name: 'other' })] })).toThrow(missing("models.fast of 'other'"))
    } finally {
      if (key !== undefined) process.env['OPENAI_API_KEY'] = key
    }
  })

  it('that another process lacks end the run there, with the name', async () => {
    const store = memoryStore()
    const theatre = await stage([text('Never.')], {
      store,
      models: { fast: openaiChat({ model: 'fast', baseURL: 'http://127.0.0.1:9/', apiKey: 'none' }) },
      prepareStep: () => {
        play.run.pause()
        return { model: 'fast' }
      },
    })
    const play = theatre.run('Go.', { session: 's' })
    await play.rest()
    const run = await again(theatre, { store }).resume('s')
    run.resume()
    const { state, error } = await run.result
    expect([state, error?.code]).toEqual(['ERROR', 'unknown_model'])
    expect(error?.message).toContain("'fast'")
    expect(theatre.requests).toEqual([])
  })
})

describe('an instructions function', () => {
  it('is called for each step, with the context of the app', async () => {
    let written = 0
    const theatre = await stage([call('look'), text('Done.')], {
      tools: pair,
      instructions: (context) => `For ${(context as { user: string }).user}, ${(written += 1)}.`,
    })
    await theatre.run('Go.', { context: { user: 'ann' } }).run.result
    expect([textOf(theatre.wire(0)[0]), textOf(theatre.wire(1)[0])]).toEqual(['For ann, 1.', 'For ann, 2.'])
  })

  it('yields to prepareStep', async () => {
    const { stage: theatre } = await played([text('Done.')], {
      instructions: () => 'Written.',
      prepareStep: () => ({ instructions: 'Prepared.' }),
    })
    expect(textOf(theatre.wire(0)[0])).toBe('Prepared.')
  })

  it.each([
    [
      'throw',
      () => {
        throw new Error('Oh.')
      },
      'instructions threw: Oh.',
    ],
    ['returns no text', () => 7 as never, 'instructions must return a string.'],
  ] as [string, () => string, string][])('ends the run if it %s', async (_, instructions, message) => {
    const { result } = await unsent({ instructions })
    expect(result).toMatchObject({
      state: 'ERROR',
      reason: 'internal',
      error: { code: 'instructions_failed' },
    })
    expect(result.error?.message).toContain(message)
  })
})
