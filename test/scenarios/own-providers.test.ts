import {
  type AgentEvent,
  createAgent,
  createEventFormatter,
  memoryStore,
  ModelError,
  type ModelProvider,
  type ModelResponse,
} from '../../src/index.js'
import { tool } from '../support/tools.js'

const response: ModelResponse = {
  text: 'Done.',
  reasoning: '',
  refusal: null,
  toolCalls: [],
  finishReason: 'stop',
  complete: true,
  usage: null,
  model: null,
}
const calling = (name: string): Partial<ModelResponse> => ({
  text: '',
  toolCalls: [{ id: 'c1', type: 'function', function: { name, arguments: '{"task":"Go."}' } }],
})

/** A custom provider that returns these answers and repeats the last one. */
function provider(answers: readonly object[], model = 'mine-1'): ModelProvider {
  let requestCount = 0
  return {
    provider: 'mine',
    model,
    request: async () => {
      const answer = answers[Math.min(requestCount++, answers.length - 1)]
      if (answer instanceof Error) throw answer
      return { ...response, ...answer }
    },
  }
}

const counted = {
  inputTokens: 100,
  outputTokens: 50,
  totalTokens: 150,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}

describe('usage with only a total', () => {
  const model = provider([{ usage: { totalTokens: 5_000 } }])

  it('keeps the total, with estimated output', async () => {
    const { usage } = await createAgent({ model }).run('Go.').result
    expect(usage).toMatchObject({ totalTokens: 5_000, estimated: true })
    expect(usage.inputTokens + usage.outputTokens).toBe(5_000)
    expect(usage.outputTokens).toBeGreaterThan(0)
    expect(usage.outputTokens).toBeLessThan(10)
  })

  it('counts towards the budget, even without an estimate', async () => {
    const look = tool('look')
    const calls = provider([{ ...calling('look'), usage: { totalTokens: 5_000 } }])
    for (const onMissingUsage of ['estimate', 'zero'] as const) {
      const config = { limits: { tokenBudget: 4_000 }, budget: { onMissingUsage } } as const
      const result = await createAgent({ model: calls, tools: [look], ...config }).run('Go.').result
      expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', steps: 1, usage: { totalTokens: 5_000 } })
    }
  })

  it.each([{}, { totalTokens: 0 }, { totalTokens: Number.NaN }, { totalTokens: '5000' }])(
    'is ignored if it is not a number of tokens: %j',
    async (usage) => {
      const { usage: reported } = await createAgent({ model: provider([{ usage }]) }).run('Go.').result
      expect(reported.estimated).toBe(true)
      expect(reported.totalTokens).toBeLessThan(100)
    },
  )
})

test('empty options of a provider in JavaScript count as absent', async () => {
  const options = {
    fallbacks: false,
    media: null,
    endpoint: null,
    structuredOutput: '',
    echoesReasoning: false,
  }
  const model = { ...provider([{}]), ...options } as unknown as ModelProvider
  const run = createAgent({ model, models: { model } }).run([{ type: 'image', image: 'iVBORw0KGgo=' }])
  expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
})

describe('names and messages of a provider', () => {
  const escape = '\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e'
  const failure = new ModelError({ kind: 'fatal', code: `bad${escape}\ncode`, message: `No.${escape}` })
  // oxlint-disable-next-line no-control-regex -- the test searches for them
  const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/

  it('contain no control characters in program output', async () => {
    for (const model of [
      provider([failure]),
      provider([Object.assign(new Error(`No.${escape}`), { status: 400, code: `bad${escape}` })]),
      provider([{ model: `m${escape}`, finishReason: `stop${escape}`, usage: counted }]),
    ]) {
      const run = createAgent({ model }).run('Go.')
      const events: AgentEvent[] = []
      const format = createEventFormatter()
      let shown = ''
      for await (const event of run) {
        events.push(event)
        shown += format(event)
      }
      const { error } = await run.result
      const strings = [error?.code, error?.message, shown, ...events.flatMap(wordsOf)]
      expect(strings.filter((text) => control.test(text ?? ''))).toEqual([])
    }
  })

  it('keep their text, with the code on one line', async () => {
    const { error } = await createAgent({ model: provider([failure]) }).run('Go.').result
    expect(error).toMatchObject({ code: 'bad]0;owned[2J31m code', message: 'No.]0;owned[2J31m' })
  })

  /** The provider's names and messages in an event. */
  function wordsOf(event: AgentEvent): (string | null | undefined)[] {
    if (event.type === 'error') return [event.code, event.message]
    if (event.type !== 'step_completed' || event.stepType !== 'inference') return []
    const { modelResponse } = event.payload
    return [event.error?.code, event.error?.message, modelResponse?.model, modelResponse?.finishReason]
  }
})

describe('a sub-agent under a cost limit', () => {
  const prices = { 'mine-1': { inputPerMillion: 10, outputPerMillion: 20 } }
  const team = (more: object, stored = false) => {
    const child = createAgent({ model: provider([{ usage: counted }]), ...more })
    return createAgent({
      model: provider([{ ...calling('help'), usage: counted }, { usage: counted }]),
      tools: [child.asTool({ name: 'help', description: 'Helps.' })],
      limits: { costLimit: 1 },
      prices,
      ...(stored && { store: memoryStore() }),
    })
  }
  const once = (100 * 10 + 50 * 20) / 1_000_000

  it.each([false, true])('is priced by the prices of its parent (store: %s)', async (stored) => {
    const result = await team({}, stored).run('Go.').result
    expect(result).toMatchObject({ state: 'COMPLETED' })
    expect(result.usage.cost).toBeCloseTo(3 * once, 10)
    expect(result.messages.find(({ role }) => role === 'tool')?.content).toBe('Done.')
  })

  it('is priced by its own prices first', async () => {
    const own = { 'mine-1': { inputPerMillion: 1_000, outputPerMillion: 2_000 } }
    const { usage } = await team({ prices: own }).run('Go.').result
    expect(usage.cost).toBeCloseTo(2 * once + 100 * once, 10)
  })

  it('is refused if neither has its price', async () => {
    const { messages } = await team({ model: provider([{ usage: counted }], 'other-1') }).run('Go.').result
    expect(messages.find(({ role }) => role === 'tool')?.content).toContain("price of 'other-1'")
  })
})

test('the summary of a resumed run counts the steps of the run', async () => {
  const store = memoryStore()
  const model = provider([{ ...calling('ask'), usage: counted }, { usage: counted }])
  const ask = tool('ask', () => 'ok', { needsApproval: true })
  const agent = createAgent({ model, tools: [ask], store })
  const { pending } = await agent.run('Go.', { session: 's' }).result
  const run = await agent.resume('s')
  run.approve(pending?.[0]?.callId ?? '')
  const format = createEventFormatter()
  let shown = ''
  for await (const event of run) shown += format(event)
  expect((await run.result).steps).toBe(2)
  expect(shown).toMatch(/steps\s+2\b/)
})
