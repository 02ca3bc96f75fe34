import {
  type AgentEvent,
  type AgentOptions,
  createAgent,
  defineTool,
  withFallbacks,
  memoryStore,
  type ModelProvider,
  openaiChat,
  openaiResponses,
  patternShield,
  toolContent,
} from '../../src/index.js'
import { SimulatedClock } from 'xstate'
import * as z from 'zod'
import { languageModel } from '../../src/ai-sdk/index.js'
import { type Rehearsal, startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { until } from '../support/play.js'
import { type Make, packages } from './support.js'

const rehearsals: Rehearsal[] = []

afterEach(async () => {
  await Promise.all(rehearsals.splice(0).map((one) => one.close()))
})

type At = (url: string) => ModelProvider
const packaged = (name: string): At => {
  const make = packages[name] as Make
  const thinking = { anthropic: { thinking: { type: 'enabled', budgetTokens: 2_000 } } }
  return (url) => languageModel(make(url), name.startsWith('anthropic') ? { providerOptions: thinking } : {})
}
const anthropic = packaged('anthropic v3')
const google = packaged('google v3')
const responses: At = (baseURL) => openaiResponses({ model: 'gpt', provider: 'p', baseURL, apiKey: 'none' })
const chat: At = (baseURL) => openaiChat({ model: 'deepseek', provider: 'deepseek', baseURL, apiKey: 'none' })

const orders: [name: string, first: At, second: At][] = [
  ['Anthropic’s package before the Responses API', anthropic, responses],
  ['the Responses API before Anthropic’s package', responses, anthropic],
  ['Google’s package before a chat', google, chat],
  ['a chat before Google’s package', chat, google],
  ['two packages', anthropic, google],
]

const overloaded: Turn = { status: 529, error: { message: 'Too many people.', type: 'overloaded_error' } }
const usage = { input: 10, output: 5 }
const png = 'iVBORw0KGgo='
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({}),
  needsApproval: true,
  execute: () =>
    toolContent([
      { type: 'text', text: 'The key is sk-123.' },
      { type: 'image', image: png },
    ]),
})

async function theatre(first: At, second: At, turns: [Turn[], Turn[]], options: Partial<AgentOptions> = {}) {
  const [one, two] = await Promise.all(
    turns.map((played) => startRehearsal({ scenario: { turns: played }, strict: true })),
  )
  if (!one || !two) throw new Error('There are two.')
  rehearsals.push(one, two)
  const clock = new SimulatedClock()
  const agent = () =>
    createAgent({ model: withFallbacks([first(one.url), second(two.url)]), tools: [look], clock, ...options })
  return { one, two, clock, agent }
}

const sentTo = ({ requests }: Rehearsal): string => JSON.stringify(requests.map(({ sent }) => sent))
/** The provider data that each package requires back, and the reasoning. */
const extras =
  /"signature"|thoughtSignature":"(?!skip_)|"encrypted_content":|"reasoning_content":"[^"]|"thinking":"/

describe.each(orders)('%s', (_name, first, second) => {
  it.each([true, false])(
    'models replace each other: calls, pictures, shields, a store and a resume (stream: %s)',
    async (stream) => {
      const turns: [Turn[], Turn[]] = [
        [
          { reasoning: 'I think.', text: 'Wait.', toolCalls: [{ name: 'look' }], usage },
          overloaded,
          { text: 'I am back.', usage },
        ],
        [
          { reasoning: 'So do I.', toolCalls: [{ name: 'look' }], usage },
          { text: 'A dot.', usage },
        ],
      ]
      const { one, two, agent } = await theatre(first, second, turns, {
        stream,
        store: memoryStore(),
        shields: { toolOutput: [patternShield({ name: 'keys', patterns: [/sk-\d+/], action: 'redact' })] },
      })
      const run = agent().run(
        [
          { type: 'text', text: 'What is it?' },
          { type: 'image', image: png },
        ],
        {
          session: 's',
        },
      )
      expect((await run.result).state).toBe('WAITING_FOR_INPUT')
      const resumed = await agent().resume('s')
      const retries: AgentEvent[] = []
      resumed.events$.subscribe((event) => event.type === 'retry' && retries.push(event))
      for (let requestCount = 0; requestCount < 2; requestCount++)
        for (const call of (await resumed.result).pending ?? []) resumed.approve(call)
      const result = await resumed.result
      expect(result.error).toBeUndefined()
      expect(result).toMatchObject({ state: 'COMPLETED', output: 'A dot.', steps: 3 })
      expect(result.usage).toMatchObject({ inputTokens: 30, outputTokens: 15, estimated: false })
      expect(retries).toHaveLength(1)
      // The second model received both images and the call with its result, but no provider data of the first.
      expect(sentTo(two).split(png).length - 1).toBeGreaterThanOrEqual(2)
      expect(JSON.stringify(two.requests[0]?.sent)).not.toMatch(extras)
      expect(JSON.stringify(two.requests[0]?.sent)).not.toContain('I think.')
      expect(JSON.stringify(two.requests[1]?.sent)).not.toContain('I think.')
      const next = await agent().run('And now?', { session: 's' }).result
      expect(next).toMatchObject({ state: 'COMPLETED', output: 'I am back.' })
      expect(sentTo(one)).not.toContain('So do I.')
      expect(sentTo(one) + sentTo(two)).not.toContain('sk-123')
      expect([...one.requests, ...two.requests].map(({ refused }) => refused).filter(Boolean)).toEqual([])
    },
  )

  it('text is removed if a model breaks off, and charged at its own price if the run is cancelled', async () => {
    const error = { message: 'It broke.', type: 'overloaded_error', code: 'server_error' }
    const { one, two, agent } = await theatre(
      first,
      second,
      [
        [{ text: 'Half an answer', chunkSize: 4, errorInStream: { after: 2, error } }],
        [{ text: 'Half of mine', chunkSize: 4, hang: 2 }],
      ],
      { prices: (_provider, model) => (model === first('http://127.0.0.1:9').model ? 1 : 0.01) },
    )
    const run = agent().run('Go.')
    let text = ''
    run.events$.subscribe((event) => {
      if (event.type === 'stream_chunk') text = (event.reset ? '' : text) + event.text
    })
    await until(() => two.requests.length === 1 && text === 'Half of ')
    run.cancel()
    const { state, usage: spent, output } = await run.result
    expect([state, output]).toEqual(['CANCELLED', 'Half of '])
    expect(spent.cost).toBeCloseTo(1.01, 9)
    expect(one.requests).toHaveLength(1)
  })
})

it('a sub-agent has its own fallback, and its cost counts for the run', async () => {
  const { two, agent } = await theatre(anthropic, responses, [[overloaded], [{ text: 'Found it.', usage }]], {
    tools: [],
  })
  const boss = await startRehearsal({
    scenario: {
      turns: [
        { toolCalls: [{ name: 'helper', arguments: { task: 'Find it.' } }], usage },
        { text: 'Done.', usage },
      ],
    },
  })
  rehearsals.push(boss)
  const helper = agent().asTool({ name: 'helper', description: 'Helps.', maxSteps: 3 })
  const run = createAgent({ model: anthropic(boss.url), tools: [helper] }).run('Go.')
  expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.', usage: { totalTokens: 45 } })
  expect(two.requests).toHaveLength(1)
})
