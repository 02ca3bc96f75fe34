import { z } from 'zod'
import {
  type AgentOptions,
  ConfigError,
  createAgent,
  defineGuard,
  defineShield,
  defineTool,
  memoryStore,
  orThrow,
  RunError,
  type StopQuestion,
  type Tool,
} from '../../src/index.js'
import { createRecordedAgent, recordSession, replaySession } from '../../src/testing/index.js'
import { again, played, stage } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'

/** A tool whose result ends the run. */
function endingTool(
  name = 'submit',
  execute: (input: never) => unknown = () => 'Submitted.',
  more = {},
): Tool {
  return defineTool({
    name,
    description: `The tool ${name}.`,
    input: { type: 'object' },
    execute,
    endsRun: true,
    ...more,
  } as never) as Tool
}

const isBooked = ({ results }: StopQuestion): boolean =>
  results.some(({ name, status }) => name === 'book' && status === 'ok')

describe('a tool that ends the run', () => {
  it('makes its result the output, without another request', async () => {
    const { result, of } = await played([call('submit')], { tools: [endingTool()] })
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: 'Submitted.', steps: 1 })
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', content: 'Submitted.' })
    expect(of('assistant_message')).toHaveLength(1)
  })

  it('takes precedence over text next to the call', async () => {
    const { result } = await played([call('submit', {}, { text: 'I submit it.' })], { tools: [endingTool()] })
    expect(result.output).toBe('Submitted.')
  })

  it.each([
    ['fails', { tools: [endingTool('submit', () => Promise.reject(new Error('No.')))] }, 'error'],
    [
      'has invalid arguments',
      { tools: [endingTool('submit', undefined, { input: z.object({ n: z.number() }) })] },
      'invalid_arguments',
    ],
    [
      'is refused by a guard',
      {
        tools: [endingTool()],
        guards: [
          defineGuard({
            name: 'no',
            verdict: (_, { fact }) =>
              fact.type === 'calls' ? { action: 'block', message: 'No.' } : undefined,
          }),
        ],
      },
      'blocked',
    ],
    [
      'has a result that a shield withholds',
      {
        tools: [endingTool()],
        shields: {
          toolOutput: [defineShield({ name: 'no', check: () => ({ action: 'block', message: 'No.' }) })],
        },
      },
      'blocked',
    ],
  ] as [string, Partial<AgentOptions>, string][])(
    'does not end the run if it %s: the model continues',
    async (_, options, status) => {
      const { result, of } = await played([call('submit'), text('Done otherwise.')], options)
      expect(of('tool_result').map((one) => one.status)).toEqual([status])
      expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done otherwise.' })
    },
  )

  it('does not end it when a person rejects the call, and ends it when the person approves', async () => {
    const turns = [call('submit'), text('Pity.'), call('submit')]
    const theatre = await stage(turns, { tools: [endingTool('submit', undefined, { needsApproval: true })] })
    const first = theatre.run()
    const [question] = (await first.rest()).pending ?? []
    first.run.reject(question?.callId ?? '', 'Not yet.')
    expect(await first.run.result).toMatchObject({ state: 'COMPLETED', output: 'Pity.' })
    const second = theatre.run()
    const [again] = (await second.rest()).pending ?? []
    second.run.approve(again?.callId ?? '')
    expect(await second.run.result).toMatchObject({ state: 'COMPLETED', output: 'Submitted.' })
  })

  it('waits for the other calls of its batch; the first such call is the output', async () => {
    const other = tool('look')
    const { result, of } = await played([calls([['look'], ['second'], ['first']])], {
      tools: [other, endingTool('first', () => 'One.'), endingTool('second', () => 'Two.')],
    })
    expect(
      of('tool_result')
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['first', 'look', 'second'])
    expect(result.output).toBe('Two.')
  })

  it('ends the run even if another call of the batch has failed', async () => {
    const broken = tool('look', () => Promise.reject(new Error('No.')))
    const { result } = await played([calls([['look'], ['submit']])], { tools: [broken, endingTool()] })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Submitted.' })
  })

  it('may be executed by the client', async () => {
    const pick = { ...clientTool('pick'), endsRun: true as const }
    const theatre = await stage([call('pick')], { tools: [pick] })
    const { run } = theatre.run()
    const [question] = (await run.result).pending ?? []
    run.addToolOutput(question?.callId ?? '', 'The red one.')
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'The red one.' })
  })

  it('may be a sub-agent', async () => {
    const theatre = await stage([call('research', { task: 'Find.' }), text('Found.')])
    const research = theatre.agent.asTool({ name: 'research', description: 'Finds.', endsRun: true })
    const lead = again(theatre, { tools: [research] })
    expect(await lead.run('Go.').result).toMatchObject({ state: 'COMPLETED', output: 'Found.', steps: 1 })
  })

  it('takes precedence over a pause and the last step, but not over steering', async () => {
    const pausing = tool('pause')
    const theatre = await stage([calls([['submit']]), call('submit'), call('submit'), text('Steered.')], {
      tools: [pausing, endingTool('submit', undefined)],
      limits: { maxSteps: 1 },
    })
    const paused = theatre.run()
    paused.run.events$.subscribe(({ type }) => type === 'tool_call' && paused.run.pause())
    expect(await paused.run.result).toMatchObject({ state: 'COMPLETED', output: 'Submitted.' })
    expect(await theatre.run().run.result).toMatchObject({ state: 'COMPLETED', output: 'Submitted.' })
    const steered = theatre.run('Go.', { limits: { maxSteps: 2 } })
    steered.run.events$.subscribe(({ type }) => type === 'tool_call' && steered.run.steer('Also this.'))
    expect(await steered.run.result).toMatchObject({ state: 'COMPLETED', output: 'Steered.', steps: 2 })
  })

  it.each([
    ['exceeded', 'BUDGET_EXCEEDED'],
    ['complete', 'COMPLETED'],
  ] as const)('follows onOvershoot if the budget is used up: %s', async (onOvershoot, state) => {
    const { result } = await played([call('submit')], {
      tools: [endingTool()],
      limits: { tokenBudget: 1 },
      budget: { finishBatch: true, onOvershoot },
    })
    expect(result).toMatchObject({ state, output: 'Submitted.' })
  })

  it('returns as output the text that the model would have read, truncated if too long', async () => {
    const { result } = await played([call('submit')], {
      tools: [endingTool('submit', () => 'x'.repeat(5_000))],
      toolCalls: { maxResultChars: 1_000 },
    })
    expect(result.output.length).toBeLessThanOrEqual(1_000)
    expect(result.output).toBe(result.messages.at(-1)?.content)
  })

  it('yields to a guard that halts the run', async () => {
    const halting = defineGuard({
      name: 'halting',
      verdict: (_, { fact }) => (fact.type === 'results' ? { action: 'halt', message: 'No.' } : undefined),
    })
    const { result } = await played([call('submit')], { tools: [endingTool()], guards: [halting] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'user_guard', output: '' })
  })

  it('lets an interactive run wait for the next message with its result as the output', async () => {
    const theatre = await stage([call('submit'), text('And on.')], {
      tools: [endingTool()],
      interactive: true,
    })
    const { run } = theatre.run()
    expect(await run.result).toMatchObject({
      state: 'WAITING_FOR_INPUT',
      reason: 'message',
      output: 'Submitted.',
    })
    run.reply('Go on.')
    expect(await run.result).toMatchObject({ state: 'WAITING_FOR_INPUT', output: 'And on.' })
  })
})

describe('with an output schema', () => {
  const output = z.object({ city: z.string() })

  it('the result of a tool that ends the run is the object', async () => {
    const { result } = await played([call('submit')], {
      tools: [endingTool('submit', () => ({ city: 'Paris' }))],
      output,
    })
    expect(result).toMatchObject({
      state: 'COMPLETED',
      output: '{"city":"Paris"}',
      object: { city: 'Paris' },
    })
  })

  it('an invalid result is requested again like any answer', async () => {
    const {
      result,
      of,
      stage: theatre,
    } = await played([call('submit'), text('{"city":"Rome"}')], {
      tools: [endingTool('submit', () => ({ town: 'Paris' }))],
      output: { schema: output, mode: 'response_format' },
    })
    expect(result).toMatchObject({ state: 'COMPLETED', object: { city: 'Rome' } })
    expect(of('guardrail')).toMatchObject([{ guard: 'invalid_output', action: 'recover' }])
    expect(JSON.stringify(theatre.wire(-1))).toContain('city')
  })

  it('a result that stays invalid ends the run like an answer', async () => {
    const { result } = await played([call('submit')], {
      tools: [endingTool('submit', () => 'Paris')],
      output,
      completion: { maxOutputRepairs: 0 },
    })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'invalid_output', output: 'Paris' })
  })
})

describe('output shields', () => {
  const shield = (action: 'block' | 'redact') =>
    defineShield({
      name: 'own',
      check: (content) =>
        !content.includes('secret')
          ? { action: 'allow' }
          : action === 'block'
            ? { action, message: 'Not that.' }
            : { action, content: content.replace('secret', '…') },
    })

  it('redact a result that is the answer', async () => {
    const { result, of } = await played([call('submit')], {
      tools: [endingTool('submit', () => 'The secret.')],
      shields: { output: [shield('redact')] },
    })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'The ….' })
    expect(of('shield')).toMatchObject([{ point: 'output', action: 'redact' }])
    expect(of('tool_result')).toMatchObject([{ content: 'The secret.' }])
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', content: 'The secret.' })
  })

  it('block such a result: the run ends in BLOCKED without that output', async () => {
    const { result } = await played([call('submit')], {
      tools: [endingTool('submit', () => 'The secret.')],
      shields: { output: [shield('block')] },
    })
    expect(result).toMatchObject({ state: 'BLOCKED', reason: 'shield', output: '' })
    expect(result.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Not that.' })
  })

  it('validate a redacted result against the schema, too', async () => {
    const { result } = await played([call('submit')], {
      tools: [endingTool('submit', () => ({ city: 'secret' }))],
      output: z.object({ city: z.string() }),
      shields: { output: [shield('redact')] },
    })
    expect(result).toMatchObject({ state: 'COMPLETED', object: { city: '…' } })
  })
})

describe('stopWhen', () => {
  it('ends the run with the last successful result', async () => {
    const questions: StopQuestion[] = []
    const { result } = await played([call('look'), calls([['book'], ['look'], ['fail']])], {
      tools: [
        tool('look', () => 'Seen.'),
        tool('book'),
        tool('fail', () => Promise.reject(new Error('No.'))),
      ],
      stopWhen: (question) => {
        questions.push(question)
        return isBooked(question)
      },
    })
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: 'Seen.', steps: 2 })
    expect(
      questions.map(({ step, results }) => [step, results.map(({ name, status }) => [name, status])]),
    ).toEqual([
      [1, [['look', 'ok']]],
      [
        2,
        [
          ['book', 'ok'],
          ['look', 'ok'],
          ['fail', 'error'],
        ],
      ],
    ])
  })

  it('receives the arguments and the context of the app, and may be asynchronous', async () => {
    const theatre = await stage([call('book', { city: 'Rome' })], {
      tools: [tool('book', () => 'Booked.')],
      stopWhen: async ({ results: [first], context }) =>
        JSON.stringify(first?.arguments) === JSON.stringify(context),
    })
    const { run } = theatre.run('Go.', { context: { city: 'Rome' } })
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Booked.' })
  })

  it("leaves the model's text as output if no result succeeded", async () => {
    const { result } = await played([call('fail', {}, { text: 'I try.' })], {
      tools: [tool('fail', () => Promise.reject(new Error('No.')))],
      stopWhen: ({ results }) => results.some(({ status }) => status === 'error'),
    })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'I try.' })
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('Oh.')
      },
      /^stopWhen threw: .*Oh\./,
    ],
    ['rejects', () => Promise.reject(new Error('Oh.')), /^stopWhen threw: .*Oh\./],
    ['returns no boolean', () => 'yes', /^stopWhen returned a string\./],
    ['returns nothing', () => undefined, /^stopWhen returned nothing\./],
  ] as [string, () => never, RegExp][])(
    'ends the run with its name if it %s',
    async (_, stopWhen, message) => {
      const { result } = await played([call('look')], { tools: [tool('look')], stopWhen })
      expect(result).toMatchObject({
        state: 'ERROR',
        reason: 'internal',
        error: { code: 'stop_when_failed' },
      })
      expect(result.error?.message).toMatch(message)
      expect(() => orThrow(result)).toThrow(RunError)
    },
  )

  it('must be a function', () => {
    const create = () => createAgent({ model: { request: () => undefined }, stopWhen: true } as never)
    expect(create).toThrow(
      new ConfigError(
        'invalid_config',
        'stopWhen must be a function: ({ results }) => true or false.',
        'stopWhen',
      ),
    )
  })

  it('is not called for a batch that ends the run by itself', async () => {
    const stopWhen = () => {
      throw new Error('It was.')
    }
    const { result } = await played([call('submit')], { tools: [endingTool()], stopWhen })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Submitted.' })
  })

  it('is not called if a guard halts the run', async () => {
    const stopWhen = () => {
      throw new Error('It was.')
    }
    const halting = defineGuard({
      name: 'halting',
      verdict: (_, { fact }) => (fact.type === 'results' ? { action: 'halt', message: 'No.' } : undefined),
    })
    const { result } = await played([call('look')], { tools: [tool('look')], stopWhen, guards: [halting] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'user_guard' })
  })

  it('is not called again by a replay, a recorded agent or another process', async () => {
    const store = memoryStore()
    let requestCount = 0
    const create = (): Partial<AgentOptions> => ({
      store,
      tools: [tool('book', () => 'Booked.')],
      stopWhen: (question) => (requestCount += 1) > 0 && isBooked(question),
    })
    const theatre = await stage([call('book')], create())
    await theatre.run('Go.', { session: 's' }).run.result
    expect(requestCount).toBe(1)
    const other = again(theatre, create())
    expect((await other.replay('s')).run).toMatchObject({ state: 'COMPLETED', output: 'Booked.' })
    const recording = await recordSession(other, 's')
    expect(await replaySession(createRecordedAgent(recording), recording)).toMatchObject({
      state: 'COMPLETED',
    })
    expect(requestCount).toBe(1)
  })
})
