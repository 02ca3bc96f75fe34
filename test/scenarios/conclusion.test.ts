import { z } from 'zod'
import { createAgent, withFallbacks, openaiChat, openaiResponses } from '../../src/index.js'
import { startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { call, text, tool } from '../support/tools.js'

const schema = z.object({ a: z.number() })

interface Sent {
  tools?: unknown[]
  tool_choice?: unknown
}

type Options = Partial<Parameters<typeof createAgent>[0]>
type Speak = (options: {
  model: string
  baseURL: string
  apiKey: string
  provider: string
}) => ReturnType<typeof openaiChat>

/** A run limited to one step that calls a tool and then concludes. */
async function concluded(speak: Speak, last: Turn, options: Options = {}, providers = ['openai']) {
  const rehearsal = await startRehearsal({
    scenario: { turns: [call('work', { n: 0 }), last] },
    strict: true,
  })
  const models = providers.map((provider) =>
    speak({ model: 'gpt-test', baseURL: rehearsal.url, apiKey: 'none', provider }),
  )
  const [first] = models
  if (!first) throw new Error('There is no model.')
  const work = tool('work')
  try {
    const result = await createAgent({
      model: models.length === 1 ? first : withFallbacks(models),
      tools: [work],
      limits: { maxSteps: 1, onLimit: 'conclude' },
      ...options,
    }).run('Go.').result
    expect(rehearsal.requests.map(({ refused }) => refused)).toEqual([null, null])
    return { result, work, sent: rehearsal.requests.map((request) => request.sent as Sent) }
  } finally {
    await rehearsal.close()
  }
}

const speaks: [api: string, speak: Speak][] = [
  ['chat', openaiChat],
  ['responses', openaiResponses],
]
const cases = speaks.flatMap(([api, speak]) => [true, false].map((stream) => [api, stream, speak] as const))

describe.each(cases)('the last request over the API %s (stream: %s)', (_api, stream, speak) => {
  it('keeps its tools and forbids calls, which are not executed', async () => {
    const { result, sent } = await concluded(speak, text('So far.'), { stream, toolChoice: 'required' })
    expect(result).toMatchObject({ state: 'MAX_STEPS', output: 'So far.' })
    expect(sent[0]?.tools).toHaveLength(1)
    expect(JSON.stringify(sent[1]?.tools)).toBe(JSON.stringify(sent[0]?.tools))
    expect(sent.map((body) => body.tool_choice)).toEqual(['required', 'none'])

    const unheeding = await concluded(speak, call('work', { n: 9 }), { stream })
    expect(unheeding.work.inputs).toEqual([{ n: 0 }])
    expect(unheeding.result.messages.at(-1)).toMatchObject({ role: 'tool', data: { status: 'not_executed' } })
  })

  it('keeps its tools with the format of an answer', async () => {
    const { result, sent } = await concluded(speak, text('{"a":1}'), { stream, output: { schema } })
    expect(result).toMatchObject({ state: 'MAX_STEPS', object: { a: 1 } })
    expect(sent.map(({ tools, tool_choice: choice }) => [tools?.length, choice])).toEqual([
      [1, undefined],
      [1, 'none'],
    ])
  })
})

describe('the last request', () => {
  const elsewhere: [what: string, options: Options, providers: string[]][] = [
    ['the model may ignore the tool choice', {}, ['mine']],
    ['another model may answer that ignores it', {}, ['openai', 'mine']],
    ['there are none', { tools: [] }, ['openai']],
    ['extraBody sets another choice', { extraBody: { tool_choice: null } }, ['openai']],
  ]

  it.each(elsewhere)('has no tools if %s', async (_what, options, providers) => {
    const { result, sent } = await concluded(openaiChat, text('So far.'), options, providers)
    expect(result).toMatchObject({ output: 'So far.' })
    expect(sent[1]?.tools).toBeUndefined()
    expect(sent[1]?.tool_choice ?? null).toBeNull()
  })

  it('has only the tool that gives the answer, if there is one', async () => {
    const answer = call('final_answer', { a: 1 })
    const { result, sent } = await concluded(openaiChat, answer, { output: { schema, mode: 'tool' } })
    expect(result).toMatchObject({ object: { a: 1 } })
    expect(sent.map(({ tools, tool_choice: choice }) => [tools?.length, choice])).toEqual([
      [2, undefined],
      [1, undefined],
    ])
  })

  it('has no tools if the transcript was fitted to a scarce window', async () => {
    const steps = 8
    const turns = [...Array.from({ length: steps }, (_, n) => call('work', { n })), text('So far.')]
    const rehearsal = await startRehearsal({ scenario: { turns }, strict: true })
    const result = await createAgent({
      model: openaiChat({ model: 'gpt-test', baseURL: rehearsal.url, apiKey: 'none', provider: 'openai' }),
      tools: [tool('work', () => 'word '.repeat(60))],
      limits: { maxSteps: steps, onLimit: 'conclude' },
      context: { window: 400, strategy: 'sliding_window' },
      tokenizer: { count: (words) => Math.ceil(words.length / 4) },
      guardrails: { progress: null },
    }).run('Go.').result
    const sent = rehearsal.requests.map((request) => request.sent as Sent)
    await rehearsal.close()
    expect(result).toMatchObject({ state: 'MAX_STEPS', output: 'So far.' })
    expect(sent.map(({ tools }) => tools?.length)).toEqual([
      ...Array.from({ length: steps }, () => 1),
      undefined,
    ])
  })
})
