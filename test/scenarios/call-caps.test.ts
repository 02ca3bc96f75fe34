import { createAgent, defineTool, memoryStore } from '../../src/index.js'
import { plainAnswer } from '../support/manual-model.js'
import { played, stage } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

const three = calls([
  ['look', { n: 1 }],
  ['look', { n: 2 }],
  ['look', { n: 3 }],
])
const resultsOf = (messages: readonly { role: string; content?: unknown }[]) =>
  messages.filter(({ role }) => role === 'tool').map(({ content }) => content)

describe('limits.maxToolCalls', () => {
  it('allows exactly that many calls, and ends the run when one more is requested', async () => {
    const look = tool('look')
    const { result, stage: opened } = await played([call('look', { n: 1 }), three], {
      limits: { maxToolCalls: 2 },
      tools: [look],
    })
    expect(result).toMatchObject({ state: 'MAX_STEPS', reason: 'max_tool_calls', steps: 2 })
    expect(result.error).toMatchObject({ code: 'max_tool_calls', recoverable: true })
    expect(result.error?.message).toContain('Raise limits.maxToolCalls')
    expect(look.inputs).toEqual([{ n: 1 }, { n: 1 }])
    expect(resultsOf(result.messages).slice(-2)).toEqual(
      Array(2).fill('Not executed: all 2 tool calls of this run are used.'),
    )
    expect(opened.requests).toHaveLength(2)
  })

  it('lets the model answer after the last call', async () => {
    const { result } = await played([call('look'), text('Done.')], {
      limits: { maxToolCalls: 1 },
      tools: [tool('look')],
    })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })

  it('requests a final answer with onLimit: conclude', async () => {
    const { result } = await played([three, text('That is what I know.')], {
      limits: { maxToolCalls: 1, onLimit: 'conclude' },
      tools: [tool('look')],
    })
    expect(result).toMatchObject({
      state: 'MAX_STEPS',
      reason: 'max_tool_calls',
      output: 'That is what I know.',
    })
  })

  it('counts from zero with each user message', async () => {
    const opened = await stage([call('look'), text('One.'), call('look'), text('Two.')], {
      limits: { maxToolCalls: 1 },
      tools: [tool('look')],
      store: memoryStore(),
    })
    const first = await opened.run('Go.', { session: 'a' }).end(2)
    expect(first.output).toBe('One.')
    const second = await opened.run('Again.', { session: 'a' }).end(4)
    expect(second).toMatchObject({ state: 'COMPLETED', output: 'Two.' })
  })

  it('counts failed calls, but not calls refused by a cap', async () => {
    const fails = tool('fails', () => {
      throw new Error('No.')
    })
    const capped = { ...tool('capped'), maxCalls: 1 }
    const { result } = await played(
      [calls([['fails'], ['capped'], ['capped'], ['nowhere']]), call('capped'), text('Done.')],
      { limits: { maxToolCalls: 3 }, tools: [fails, capped] },
    )
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect([fails.inputs.length, capped.inputs.length]).toEqual([1, 1])
  })

  it('counts a call of a sub-agent as one, regardless of its own calls', async () => {
    const inner = tool('look')
    const child = await stage([call('look'), call('look'), text('Found.')], { tools: [inner] })
    const research = child.agent.asTool({ name: 'research', description: 'Researches.' })
    const { result } = await played([call('research', { task: 'Go.' }), text('Done.')], {
      limits: { maxToolCalls: 1 },
      tools: [research],
    })
    expect(result.state).toBe('COMPLETED')
    expect(inner.inputs).toHaveLength(2)
  })

  it('survives a resume in another process', async () => {
    const store = memoryStore()
    const ask = tool('ask', () => 'ok', { needsApproval: true })
    const opened = await stage([call('ask'), call('ask'), text('Never.')], {
      limits: { maxToolCalls: 1 },
      tools: [ask],
      store,
    })
    const rest = await opened.agent.run('Go.', { session: 'a' }).result
    expect(rest.state).toBe('WAITING_FOR_INPUT')
    const run = await opened.agent.resume('a')
    const [pending] = (await run.result).pending ?? []
    run.approve(pending as never)
    const events = []
    for await (const event of run) events.push(event)
    expect(await run.result).toMatchObject({ state: 'MAX_STEPS', reason: 'max_tool_calls' })
    expect(ask.inputs).toHaveLength(1)
  })
})

it('limits.maxToolCallsPerResponse answers excess calls with the reason, and the run continues', async () => {
  const look = tool('look')
  const { result } = await played([three, call('look', { n: 4 }), text('Done.')], {
    limits: { maxToolCallsPerResponse: 2 },
    tools: [look],
  })
  expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(look.inputs).toEqual([{ n: 1 }, { n: 2 }, { n: 4 }])
  expect(resultsOf(result.messages)[2]).toBe(
    'Not executed: only the first 2 tool calls of a response run. Make this call in your next response if you still need it.',
  )
})

it('maxCalls of a tool answers excess calls with the reason, and the run continues', async () => {
  const ran: number[] = []
  const search = defineTool({
    name: 'search',
    description: 'Searches.',
    input: { type: 'object' },
    maxCalls: 2,
    execute: ({ n }) => ran.push(n as number),
  })
  const other = tool('look')
  const searches = (...numbers: number[]) => calls(numbers.map((n) => ['search', { n }] as const))
  const { result, events } = await played(
    [searches(1), searches(2, 3), call('look'), searches(4), text('Done.')],
    {
      tools: [search, other],
    },
  )
  expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(ran).toEqual([1, 2])
  expect(other.inputs).toHaveLength(1)
  const refused = events.filter((event) => event.type === 'tool_result' && event.status === 'blocked')
  expect(refused).toMatchObject(
    [1, 2].map(() => ({
      name: 'search',
      content: 'Not executed: search may be called only 2 times in a run. Continue without it.',
    })),
  )
})

test.each([
  ['maxToolCalls', 0],
  ['maxToolCalls', -1],
  ['maxToolCalls', 1.5],
  ['maxToolCalls', Number.NaN],
  ['maxToolCallsPerResponse', 0],
])('limits.%s refuses %s', (key, value) => {
  const model = { provider: 'own', model: 'own', request: () => Promise.reject(new Error('Never.')) }
  expect(() => createAgent({ model, limits: { [key]: value } })).toThrow(
    expect.objectContaining({ code: 'invalid_config', subject: `limits.${key}` }),
  )
})

it('maxCalls of asTool caps the calls of a sub-agent', async () => {
  const helperModel = {
    provider: 'own',
    model: 'own',
    request: () => Promise.resolve({ ...plainAnswer, text: 'Found.' }),
  }
  const helper = createAgent({ model: helperModel, prices: null })
  const research = helper.asTool({ name: 'research', description: 'Researches.', maxCalls: 1 })
  const { result } = await played(
    [call('research', { task: 'Herons.' }), call('research', { task: 'Owls.' }), text('Done.')],
    { tools: [research] },
  )
  expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(resultsOf(result.messages)).toEqual([
    'Found.',
    'Not executed: research may be called only once in a run. Continue without it.',
  ])
  expect(() => helper.asTool({ name: 'research', description: 'Researches.', maxCalls: 0 })).toThrow(
    expect.objectContaining({ code: 'invalid_tool', subject: 'research.maxCalls' }),
  )
})

test.each([0, -1, 1.5, Number.NaN, '2'])('maxCalls refuses %p', (maxCalls) => {
  const make = () =>
    defineTool({
      name: 'look',
      description: 'Looks.',
      input: { type: 'object' },
      execute: () => 1,
      maxCalls: maxCalls as number,
    })
  expect(make).toThrow(expect.objectContaining({ code: 'invalid_tool', subject: 'look.maxCalls' }))
})
