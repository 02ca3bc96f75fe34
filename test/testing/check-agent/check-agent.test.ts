import fc from 'fast-check'
import { z } from 'zod'
import {
  type AgentConfigInput,
  createAgent,
  defineShield,
  defineTool,
  memoryStore,
  type Message,
  type ModelProvider,
  type ModelRequest,
  type ModelResponse,
} from '../../../src/index.js'
import { createBudget } from '../../../src/fleet/index.js'
import { checkAgent, type CheckAgentOptions, formatAgentReport } from '../../../src/testing/index.js'
import { sampleValue } from '../../../src/testing/check-agent/agent-facts.js'
import { runsAll } from '../../support/extent.js'

const executed: string[] = []

const read = defineTool({
  name: 'read',
  description: 'Reads a file.',
  input: z.object({ path: z.string() }),
  execute: ({ path }) => void executed.push(path),
})

const remove = defineTool({
  name: 'remove',
  description: 'Removes a file.',
  input: z.object({ path: z.string() }),
  needsApproval: true,
  execute: ({ path }) => void executed.push(path),
})

const sound = (model: ModelProvider) => createAgent({ model, tools: [read, remove] })
const withConfig = (config: AgentConfigInput) => (model: ModelProvider) =>
  createAgent({ model, tools: [read], ...config })

/** An agent with a wrapper around its model. */
const between =
  (change: {
    request?: (request: ModelRequest) => ModelRequest
    response?: (response: ModelResponse) => ModelResponse
  }) =>
  (model: ModelProvider) =>
    createAgent({
      tools: [read],
      model: {
        provider: model.provider,
        model: model.model,
        request: async (input, options) => {
          const { request = (same) => same, response = (same) => same } = change
          return response(await model.request(request(input), options))
        },
      },
    })

test.each([{ baseDelayMs: 1, maxDelayMs: 2 }, { baseDelayMs: 0, maxDelayMs: 0 }, { maxAttempts: 1 }])(
  'short retries of an agent are not reported: %j',
  async (retry) => {
    const { broken, checks } = await checkAgent(withConfig({ retry }), { only: ['cancel/in-retry'] })
    expect(broken).toEqual([])
    const outcome = 'maxAttempts' in retry ? 'skipped' : 'kept'
    expect(checks.find(({ name }) => name === 'cancel/in-retry')?.outcome).toBe(outcome)
  },
)

const isUser = ({ role }: Message) => role === 'user'
const forgetful = between({
  request: (one) => ({ ...one, messages: one.messages.slice(one.messages.findLastIndex(isUser)) }),
})
const hidingTheEnd = between({
  response: (one) => ({ ...one, finishReason: one.toolCalls.length > 0 ? 'tool_calls' : 'stop' }),
})

const check = (make: Parameters<typeof checkAgent>[0], options?: CheckAgentOptions) =>
  checkAgent(make, options)

test('an agent with the defaults passes, and none of its tools is executed', async () => {
  const report = await check(sound)
  expect(report.broken).toEqual([])
  expect(report.checks.filter(({ outcome }) => outcome !== 'kept')).toEqual([])
  expect(report.checks.find(({ name }) => name === 'resume/after-each-write')?.seen).toMatch(
    /at each of \d+ writes$/,
  )
  expect(executed).toEqual([])
})

test('the store, the budgets and the telemetry of the agent are not used', async () => {
  const store = memoryStore()
  const budget = createBudget({ id: 'shared', store, tokens: 1_000 })
  const telemetry = {
    begin: () => {
      throw new Error('Measured.')
    },
  }
  const make = (model: ModelProvider) =>
    createAgent({ model, tools: [read], store, budgets: [budget], telemetry })
  expect((await check(make, { only: ['basics', 'history/end'] })).broken).toEqual([])
  expect([store.list(), (await budget.status()).left]).toEqual([[], { tokens: 1_000 }])
})

test('a sub-agent is a tool like any other, and does not run', async () => {
  const below = createAgent({ model: { ...silent, request: () => Promise.reject(new Error('Asked.')) } })
  const make = (model: ModelProvider) =>
    createAgent({ model, tools: [below.asTool({ name: 'research', description: 'Finds out.' })] })
  const { broken, checks } = await check(make, { only: ['basics', 'history/tool-throws'] })
  expect(broken).toEqual([])
  expect(checks[1]?.seen).toContain('research')
})

test('an undecided predicate of a tool requires approval, as in a run', async () => {
  const tools = [{ ...read, needsApproval: () => undefined as never }]
  const { broken, checks } = await check((model) => createAgent({ model, tools }), {
    only: ['approvals/refused'],
  })
  expect(broken).toEqual([])
  expect(checks.at(-1)).toMatchObject({ name: 'approvals/refused', outcome: 'kept' })
})

test('the shields and guards of the agent are called', async () => {
  const shield = defineShield({ name: 'mine', check: () => ({ action: 'block', message: 'No.' }) })
  const { broken } = await check((model) => createAgent({ model, shields: { output: [shield] } }))
  expect(broken).toEqual([expect.stringContaining('basics/answer: it ended BLOCKED')])
})

describe('a problem of an agent is found:', () => {
  const isLoose = { guardrails: { progress: null }, limits: { maxSteps: 1000 } } as const

  test.each<[string, Parameters<typeof checkAgent>[0], string]>([
    ['a custom model', () => sound({ ...silent }), 'basics/answer'],
    ['no limit that stops a loop', withConfig(isLoose), 'loops/new-arguments'],
    ['no own limit', withConfig(isLoose), 'limits/own-limit'],
    ['no time limit for tools', withConfig({ toolCalls: { timeoutMs: 0 } }), 'faults/tool-deaf'],
    ['no time limit for silence', withConfig({ streamIdleMs: 0, contentIdleMs: 0 }), 'faults/stalled'],
    [
      'streams without an end that count',
      withConfig({ completion: { onMissingEnd: 'accept' } }),
      'truncation/unfinished-stream',
    ],
    ['a model wrapper that hides the finish reason', hidingTheEnd, 'truncation/whole-looking-call'],
    ['a model wrapper that hides half an answer', hidingTheEnd, 'truncation/cut-text'],
    [
      'a model wrapper that drops the first user message',
      between({ request: (one) => ({ ...one, messages: one.messages.filter(isNoResult) }) }),
      'history/end',
    ],
    [
      'a model wrapper that fills empty answers',
      between({ response: (one) => ({ ...one, text: one.text || '…' }) }),
      'faults/empty',
    ],
    ['a model wrapper that drops the messages before the last', forgetful, 'concurrency/two-runs'],
    ['a model wrapper that drops the messages before the last', forgetful, 'concurrency/two-processes'],
    ['a model wrapper that sends the results of one run in another', mixing, 'concurrency/many-runs'],
    [
      'usage that is not counted',
      between({ response: (one) => ({ ...one, usage: noUsage }) }),
      'limits/paid-usage',
    ],
  ])('%s', async (_, make, name) => {
    const { checks, broken } = await check(make, {
      only: [name],
      withinMs: name.startsWith('faults/') ? 500 : 3000,
    })
    const found = checks.find((one) => one.name === name || one.outcome === 'broken')
    expect(found?.outcome).toBe('broken')
    expect(broken.length).toBeGreaterThan(0)
  })
})

function mixing(model: ModelProvider) {
  const results = new Map<string, Message>()
  return between({
    request: (one) => ({
      ...one,
      messages: one.messages.map((message) => {
        if (message.role !== 'tool') return message
        if (!results.has('')) results.set('', message)
        return { ...message, content: results.get('')?.content ?? '' } as Message
      }),
    }),
  })(model)
}

const isNoResult = ({ role }: Message) => role !== 'tool'
const noUsage = { inputTokens: 0, outputTokens: 0, totalTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 }
const silent: ModelProvider = {
  provider: 'other',
  model: 'other-1',
  request: async () => ({
    text: 'Hello.',
    reasoning: '',
    refusal: null,
    toolCalls: [],
    finishReason: 'stop',
    complete: true,
    usage: noUsage,
    model: null,
  }),
}

describe('the report', () => {
  test('lists the attempts, the failures and how to reproduce them', async () => {
    const report = await check(withConfig({ completion: { onMissingEnd: 'accept' } }), {
      only: ['truncation'],
      seed: 7,
    })
    const text = formatAgentReport(report)
    const repeat = "checkAgent(make, { only: ['truncation/unfinished-stream'], seed: 7 })"
    expect(text).toContain('9 checks with seed 7: 8 kept, 1 broken')
    expect(text).toContain(
      '✗ unfinished-stream: A call is not executed when the stream closes without an end marker',
    )
    expect(text).toContain('the call was executed with {"path":"sample-0"}')
    expect(text).toContain(`repeat: ${repeat}`)
    expect(report.broken).toEqual([expect.stringMatching(/^truncation\/unfinished-stream: .*Repeat it: /)])
  })

  test('states why each check was skipped', async () => {
    const make = (model: ModelProvider) => createAgent({ model })
    const report = await check(make, { skip: { faults: 'tried elsewhere' } })
    expect(report.broken).toEqual([])
    const reasons = new Set(report.checks.map(({ problem }) => problem))
    expect([...reasons]).toEqual([
      null,
      'the agent has no tool that runs without approval',
      'the agent has no tool that needs approval',
      'tried elsewhere',
    ])
    expect(formatAgentReport(report)).toContain('Skipped: tried elsewhere')
  })

  test('of a broken agent has one failure, not fifty', async () => {
    const { broken, checks } = await check(() => sound({ ...silent }))
    expect(broken).toEqual([expect.stringContaining('was not called; pass it to createAgent')])
    expect(checks.at(-1)).toMatchObject({ outcome: 'skipped', problem: 'basics/answer is broken' })
  })
})

describe('the inputs of tools', () => {
  const exact = defineTool({
    name: 'exact',
    description: 'Takes one path.',
    input: z.object({ path: z.string().regex(/^\/home\//) }),
    execute: () => 'text',
  })
  const make = (model: ModelProvider) => createAgent({ model, tools: [exact] })

  test('are required if none can be generated', async () => {
    const { checks } = await check(make, { only: ['basics'] })
    expect(checks[1]?.problem).toBe('the agent has no tool that runs without approval; pass inputs for exact')
    const passed = await check(make, { only: ['basics'], inputs: { exact: { path: '/home/ada' } } })
    expect(passed.checks[1]?.outcome).toBe('kept')
  })

  test('are generated for any schema that only has type constraints', () => {
    const leaf = fc.constantFrom<object>(
      { type: 'string', minLength: 3, maxLength: 5 },
      { type: 'integer', minimum: 4, maximum: 9 },
      { type: 'number', exclusiveMinimum: 0 },
      { type: 'boolean' },
      { enum: ['a', 'b'] },
      { const: 7 },
      { type: 'array', items: { type: 'string', format: 'date' }, minItems: 2 },
    )
    fc.assert(
      fc.property(fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), leaf), fc.nat(50), (properties, n) => {
        const schema = { type: 'object', properties, required: Object.keys(properties) }
        const parsed = z.fromJSONSchema(schema as never).safeParse(sampleValue(schema as never, n))
        expect(parsed.success).toBe(true)
      }),
    )
  })

  test('differ by their number', () => {
    const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }
    expect([sampleValue(schema, 0), sampleValue(schema, 1)]).toEqual([
      { path: 'sample-0' },
      { path: 'sample-1' },
    ])
  })
})

test('the answers for an agent with an output schema are objects', async () => {
  const make = (model: ModelProvider) =>
    createAgent({ model, tools: [read], output: z.object({ title: z.string(), pages: z.int().min(1) }) })
  const { broken, checks } = await check(make, {
    only: runsAll ? ['truncation', 'history', 'cancel'] : ['truncation'],
  })
  expect(broken).toEqual([])
  expect(checks.find(({ name }) => name === 'truncation/cut-text')?.problem).toBe(
    "the agent's answers are objects",
  )
})

describe('checkAgent refuses', () => {
  test.each<[string, CheckAgentOptions, string]>([
    ['an unknown check', { only: ['cancel/nothing'] }, "only: unknown check 'cancel/nothing'"],
    ['an empty list', { only: [] }, 'only must be a list of at least one name'],
    ['a seed that is not a number', { seed: 0.5 }, 'seed must be a whole number'],
    ['an input of an unknown tool', { inputs: { nothing: {} } }, "the agent has no tool 'nothing'"],
    ['an input that the tool refuses', { inputs: { read: { path: 7 } } }, "tool 'read' does not accept it"],
    ['an empty message', { input: ' ' }, 'input must be a non-empty string'],
    ['an empty time limit', { withinMs: 0 }, 'withinMs must be a positive number of milliseconds'],
    ['an unknown option', { onl: ['cancel'] } as never, "checkAgent has no option 'onl'. Did you mean only?"],
  ])('%s', async (_, options, why) => {
    await expect(check(sound, options)).rejects.toThrow(why)
  })

  test('a function that returns no agent', async () => {
    await expect(check(() => ({}) as never)).rejects.toMatchObject({ code: 'not_an_agent' })
    await expect(checkAgent(undefined as never)).rejects.toThrow('checkAgent(make) must be a function')
  })
})
