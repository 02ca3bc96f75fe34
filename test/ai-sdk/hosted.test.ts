import { anthropic } from '@ai-sdk/anthropic'
import { google } from '@ai-sdk/google'
import { openai } from '@ai-sdk/openai'
import { type AgentEvent, createAgent, memoryStore, patternShield } from '../../src/index.js'
import { languageModel } from '../../src/ai-sdk/index.js'
import { tool } from '../support/tools.js'
import { anthropicAnswer, gemini3Answer, geminiAnswer, responsesAnswer, searchId } from './hosted-answers.js'
import { serverOf } from './answer-server.js'
import { packages, stateless } from './support.js'

type Tools = Record<string, object>
const search: Tools = { web_search: anthropic.tools.webSearch_20250305() }
const code: Tools = { code_execution: google.tools.codeExecution({}) }
const googleSearch: Tools = { google_search: google.tools.googleSearch({}) }
const openaiSearch: Tools = { web_search: openai.tools.webSearch() }

const result = (name: string, input: unknown) => ({
  type: 'tool-result',
  toolName: name,
  ...(input as object),
})
const searched = {
  input: { query: 'herons' },
  result: [{ url: 'https://herons.test', title: 'Herons' }],
}
const ran = { input: { code: 'print(4)' }, result: { outcome: 'OUTCOME_OK', output: '4' } }

/** The answers, tools and hosted calls of each package. */
const played = Object.keys(packages).flatMap((name) => {
  if (name.startsWith('anthropic'))
    return [{ name, answerOf: anthropicAnswer, tools: search, item: result('web_search', searched) }]
  if (name.startsWith('openai responses'))
    return [{ name, answerOf: responsesAnswer, tools: openaiSearch, item: result('web_search', {}) }]
  if (!name.startsWith('google')) return []
  const runs = { name, answerOf: geminiAnswer, tools: code, item: result('code_execution', ran) }
  const three = {
    name,
    answerOf: gemini3Answer,
    tools: googleSearch,
    item: result('server:GOOGLE_SEARCH_WEB', { input: { queries: ['herons'] }, result: { found: 1 } }),
  }
  // AI SDK 5 does not support Gemini 3's own calls.
  return name.endsWith('v2') ? [runs] : [runs, three]
})

describe.each(played)('$name, $item.toolName', ({ name, answerOf, tools, item }) => {
  const make = packages[name]
  if (!make) throw new Error('There is no such package.')
  const add = () => tool('add', () => 'added', { readOnly: true })
  const answers = [
    answerOf({ text: 'Let me see.', calls: true, searches: true }),
    answerOf({ text: 'It is 4.', calls: false, searches: true }),
    answerOf({ text: 'Bye.', calls: false }),
  ]

  it.each([true, false])(
    'is emitted as a step, sent back, and is not a call of ours (stream: %s)',
    async (stream) => {
      for (const isShielded of [false, true]) {
        const { url, sent } = await serverOf(answers)
        const shields = { output: [patternShield({ name: 'numbers', patterns: [/4711/], action: 'redact' })] }
        const own = add()
        const agent = createAgent({
          model: languageModel(make(url), { providerTools: tools }),
          tools: [own],
          store: memoryStore(),
          stream,
          ...(isShielded && { shields }),
        })
        const run = agent.run('How many?', { session: 's' })
        const events: AgentEvent[] = []
        run.events$.subscribe((event) => void events.push(event))
        expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'It is 4.' })
        expect(own.inputs).toEqual([{ a: 1 }])
        const steps = events.flatMap((event) =>
          'stepType' in event && event.stepType === 'hosted' ? [event] : [],
        )
        const { toolName } = item
        expect(steps.map((step) => `${step.type} ${step.name}`)).toEqual(
          [1, 2].flatMap(() => [`step_started ${toolName}`, `step_completed ${toolName}`]),
        )
        expect(steps[1]).toMatchObject({ outcome: 'ok', payload: { item: isShielded ? null : item } })

        expect(await agent.run('And?', { session: 's' }).result).toMatchObject({ output: 'Bye.' })
        expect(sent).toHaveLength(3)
        for (const at of [1, 2]) expect(echoed(sent[at])).toEqual(wanted[toolName]?.(at, name) ?? [])
      }
    },
  )

  it.each([true, false])('that was truncated does not wait for an answer (stream: %s)', async (stream) => {
    const { url, sent } = await serverOf([
      answerOf({ text: 'I have to look.', calls: false, searches: 'unanswered' }),
      answerOf({ text: 'Bye.', calls: false }),
    ])
    const model = languageModel(make(url), { providerTools: tools })
    const agent = createAgent({ model, store: memoryStore(), stream })
    const run = agent.run('How many?', { session: 's' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'I have to look.' })
    expect(await agent.run('And?', { session: 's' }).result).toMatchObject({ output: 'Bye.' })
    // OpenAI's packages report call and result in one item.
    if (!name.startsWith('openai')) expect(echoed(sent[1])).toEqual([])
  })
})

/** The provider-executed parts to send back, once per answer. */
const wanted: Record<string, (times: number, name: string) => unknown> = {
  web_search: (times, name) =>
    Array.from({ length: times }, () =>
      name.startsWith('anthropic')
        ? ['server_tool_use srvtoolu_1', 'web_search_tool_result srvtoolu_1']
        : [`item_reference ${searchId}`],
    ).flat(),
  // The package does not support it, and Gemini would reject it as a function call.
  code_execution: () => [],
  'server:GOOGLE_SEARCH_WEB': (times) =>
    Array.from({ length: times }, () => ['toolCall search-1', 'toolResponse search-1']).flat(),
}

interface Wire {
  messages?: { content: unknown }[]
  input?: Record<string, string>[]
  contents?: { parts: Record<string, { id?: string; name?: string }>[] }[]
}

/** The provider-executed calls and results in a request, with their ids. */
function echoed(request: unknown): string[] {
  const { messages, input, contents } = request as Wire
  const blocks = messages?.flatMap(({ content }) =>
    Array.isArray(content) ? (content as Wire['input']) : [],
  )
  const parts = contents?.flatMap((one) => one.parts) ?? []
  return [
    ...(blocks ?? []).flatMap((block) =>
      block?.['type'] === 'server_tool_use' || block?.['type'] === 'web_search_tool_result'
        ? [`${block['type']} ${block['id'] ?? block['tool_use_id']}`]
        : [],
    ),
    ...(input ?? []).flatMap(({ type, id }) => (id?.startsWith('ws_') ? [`${type} ${id}`] : [])),
    ...parts.flatMap(({ toolCall, toolResponse, functionCall }) => {
      if (toolCall) return [`toolCall ${toolCall.id}`]
      if (toolResponse) return [`toolResponse ${toolResponse.id}`]
      return functionCall && functionCall.name !== 'add' ? [`functionCall ${functionCall.name}`] : []
    }),
  ]
}

it('OpenAI’s search is sent back unchanged if OpenAI stores nothing, with packages that support it', async () => {
  const { url, sent } = await serverOf([
    responsesAnswer({ text: 'It is 4.', calls: false, searches: true }),
    responsesAnswer({ text: 'Bye.', calls: false }),
  ])
  const make = packages['openai responses v3']
  if (!make) throw new Error('There is no such package.')
  const model = languageModel(make(url), { ...stateless, providerTools: openaiSearch })
  const agent = createAgent({ model, store: memoryStore() })
  await agent.run('How many?', { session: 's' }).result
  await agent.run('And?', { session: 's' }).result
  expect(echoed(sent[1])).toEqual([`web_search_call ${searchId}`])
})
