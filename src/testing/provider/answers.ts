import { classifyResponse } from '../../../machines/agent/model-response.js'
import type { AssistantMessage, MediaPart, Message, ToolCall } from '../../../machines/agent/messages.js'
import type { ToolSpec } from '../../core/models/provider.js'
import { holds, same, shown } from '../verdict.js'
import { ask, type Check, type Heard, hello } from './asking.js'
import { textOf } from './server.js'

const words = 'Héllo 👋 wörld — and so on.'

const add: ToolSpec = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
}

/** A transparent pixel. */
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const picture: MediaPart = { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } }

const twoCalls = [
  { name: 'add', arguments: { a: 1, b: 2 } },
  { name: 'add', arguments: { a: 3, b: 4 } },
]

/** What providers make of answers. */
export const answerChecks: readonly Check[] = [
  {
    name: 'text',
    turns: [{ text: words, chunkSize: 3 }],
    async run(scene) {
      const { response, text, pieces, activity } = await ask(scene)
      same('the text', response.text, words)
      same('what it is to the loop', classifyResponse(response), 'answer')
      same('complete', response.complete, true)
      same('the calls', response.toolCalls, [])
      holds(activity > 0, 'onActivity has to be called when something of the answer arrives')
      same(
        `whether the server was asked to stream`,
        Boolean(scene.server.requests[0]?.body.stream),
        scene.stream,
      )
      if (!scene.stream) return
      same('what onDelta was given', text, words)
      holds(pieces > 3, `a streamed answer has to come in pieces, not in ${pieces}`)
    },
  },
  {
    name: 'text, byte by byte',
    only: 'stream',
    turns: [{ text: words, split: 'bytes' }],
    async run(scene) {
      same('the text', (await ask(scene)).response.text, words)
    },
  },
  {
    name: 'reasoning',
    turns: [{ reasoning: 'Let me think.', text: 'So.' }],
    async run(scene) {
      const { response, reasoning } = await ask(scene)
      same('the text', response.text, 'So.')
      same('the reasoning', response.reasoning, 'Let me think.')
      if (scene.stream) same('the reasoning that onDelta was given', reasoning, 'Let me think.')
    },
  },
  {
    name: 'calls in parallel',
    turns: [{ text: 'Let me see.', toolCalls: twoCalls, chunkSize: 4 }],
    async run(scene) {
      const { response } = await ask(scene, { tools: [add] })
      same('the text', response.text, 'Let me see.')
      same('what it is to the loop', classifyResponse(response), 'calls')
      same('the calls', calledIn(response.toolCalls), twoCalls)
      const ids = new Set(response.toolCalls.map(({ id }) => id))
      holds(ids.size === 2, 'each call needs an id of its own')
      same('the tools that the server was offered', offered(scene), ['add'])
    },
  },
  {
    name: 'arguments that are empty',
    turns: [{ toolCalls: [{ name: 'add' }] }],
    async run(scene) {
      const { response } = await ask(scene, { tools: [add] })
      same('the calls', calledIn(response.toolCalls), [{ name: 'add', arguments: {} }])
    },
  },
  {
    name: 'results, and what goes back with them',
    turns: [{ reasoning: 'Two sums.', text: 'Let me see.', toolCalls: twoCalls }, { text: 'Done.' }],
    async run(scene) {
      const first = await ask(scene, { tools: [add] })
      const answer = messageOf(first)
      const results = resultsOf(answer, ['3', '7'])
      const second = await ask(scene, {
        tools: [add],
        instructions: 'Be brief.',
        messages: [hello, answer, ...results],
        nudges: ['Do not repeat yourself.'],
      })
      same('the second answer', second.response.text, 'Done.')
      const { messages } = scene.server.requests[1]?.body ?? { messages: [] }
      same(
        'the roles that the server got',
        messages.map(({ role }) => (role === 'developer' ? 'system' : role)),
        ['system', 'user', 'assistant', 'tool', 'tool', 'user'],
      )
      same('the results', messages.filter(({ role }) => role === 'tool').map(textOf), ['3', '7'])
      const [system, said, , , , nudge] = messages.map(textOf)
      same(
        'what the system, the user and the guards said',
        [system, said, nudge],
        ['Be brief.', 'Hello?', 'Do not repeat yourself.'],
      )
      const sent = messages[2]?.tool_calls ?? []
      same('the calls that went back', calledIn(sent as ToolCall[]), twoCalls)
      same(
        'the calls that the results are of',
        messages.filter(({ role }) => role === 'tool').map((message) => message.tool_call_id),
        sent.map(({ id }) => id),
      )
    },
  },
  {
    name: 'a picture',
    turns: [{ text: 'A dot.' }],
    async run(scene) {
      const content = [{ type: 'text' as const, text: 'What is this?' }, picture]
      await ask(scene, { messages: [{ role: 'user', id: 'm1', createdAt: 0, content }] })
      const [said] = scene.server.requests[0]?.body.messages ?? []
      same('the words beside the picture', said && textOf(said).trim(), 'What is this?')
      holds(
        JSON.stringify(said).includes(pixel),
        `the picture should be in the message, which is ${shown(said)}`,
      )
    },
  },
  {
    name: 'a picture in a result',
    turns: [{ toolCalls: [{ name: 'add' }] }, { text: 'A dot.' }],
    async run(scene) {
      const answer = messageOf(await ask(scene, { tools: [add] }))
      const [result] = resultsOf(answer, ['The chart:\n[image: image/png]'])
      const messages = [hello, answer, ...(result ? [{ ...result, media: [picture] } as Message] : [])]
      await ask(scene, { tools: [add], messages })
      const sent = scene.server.requests[1]?.body.messages ?? []
      const after = JSON.stringify(sent.slice(sent.findIndex(({ role }) => role === 'tool')))
      holds(
        after.includes(pixel),
        `the picture should be in the result or after it, where there is ${shown(after)}`,
      )
      holds(
        after.includes('The chart:'),
        `the words of the result should be there, where there is ${shown(after)}`,
      )
    },
  },
  {
    name: 'a prefix that stays',
    turns: [{ text: 'One.', toolCalls: [{ name: 'add' }] }, { text: 'Two.' }],
    async run(scene) {
      const answer = messageOf(await ask(scene, { tools: [add], instructions: 'Be brief.' }))
      const messages = [hello, answer, ...resultsOf(answer, ['3'])]
      await ask(scene, { tools: [add], instructions: 'Be brief.', messages })
      const [before, after] = scene.server.requests.map(({ body }) => body.messages)
      same('the beginning of a request', after?.slice(0, before?.length), before)
    },
  },
  {
    name: 'histories as they happen',
    turns: [{ text: 'Fine.' }],
    async run(scene) {
      const { response } = await ask(scene, { messages: troubled })
      same('the answer', response.text, 'Fine.')
    },
  },
  {
    name: 'usage',
    turns: [{ text: 'Hi.', usage: { input: 100, output: 20, cached: 60 } }],
    async run(scene) {
      const { usage } = (await ask(scene)).response
      const { inputTokens, outputTokens, totalTokens, cachedInputTokens } = usage ?? {}
      same(
        'the usage',
        { inputTokens, outputTokens, totalTokens, cachedInputTokens },
        { inputTokens: 100, outputTokens: 20, totalTokens: 120, cachedInputTokens: 60 },
      )
    },
  },
  {
    name: 'usage that is missing',
    turns: [{ text: 'Hi.', usage: null }],
    async run(scene) {
      same('the usage', (await ask(scene)).response.usage, null)
    },
  },
  {
    name: 'an answer that is cut off',
    turns: [{ text: 'Once upon', finishReason: 'length' }],
    async run(scene) {
      const { response } = await ask(scene)
      same('what it is to the loop', classifyResponse(response), 'truncated')
      same('the text', response.text, 'Once upon')
    },
  },
  {
    name: 'an answer that is filtered',
    turns: [{ text: 'Once', finishReason: 'content_filter' }],
    async run(scene) {
      const kind = classifyResponse((await ask(scene)).response)
      holds(
        kind === 'filtered' || kind === 'refusal',
        `it should be filtered or a refusal to the loop, but is ${shown(kind)}`,
      )
    },
  },
]

/** What runs leave behind: words that nobody should send as they are. */
const troubled: Message[] = [
  { role: 'assistant', id: 'm1', createdAt: 0, content: 'How can I help?' },
  { role: 'user', id: 'm2', createdAt: 0, content: ' ' },
  { role: 'user', id: 'm3', createdAt: 0, content: 'Half a pair: \ud83d' },
  {
    role: 'assistant',
    id: 'm4',
    createdAt: 0,
    content: null,
    tool_calls: [
      { id: 'no name/1', type: 'function', function: { name: 'what is this?', arguments: '{"a":' } },
      { id: 'c'.repeat(80), type: 'function', function: { name: 'add', arguments: '[1]' } },
    ],
  },
  { role: 'tool', id: 'm5', createdAt: 0, tool_call_id: 'no name/1', content: '' },
  { role: 'tool', id: 'm6', createdAt: 0, tool_call_id: 'c'.repeat(80), content: 'There is no such tool.' },
  { role: 'assistant', id: 'm7', createdAt: 0, content: '' },
  { role: 'user', id: 'm8', createdAt: 0, content: [{ type: 'text', text: 'Go on.' }] },
]

function calledIn(calls: readonly ToolCall[]) {
  return calls.map(({ function: { name, arguments: text } }) => ({ name, arguments: parsed(text) }))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function offered({ server }: Parameters<Check['run']>[0]) {
  return (server.requests[0]?.body.tools ?? []).map((tool) => tool.function?.name)
}

/** The message that the loop makes of an answer. */
function messageOf({ response }: Heard): AssistantMessage {
  const { text, toolCalls, reasoning, reasoningDetails, providerItems } = response
  return {
    role: 'assistant',
    id: 'm2',
    createdAt: 0,
    content: text === '' ? null : text,
    tool_calls: toolCalls,
    ...(reasoning !== '' && { reasoning }),
    ...(reasoningDetails && { reasoning_details: reasoningDetails }),
    ...(providerItems && { provider_items: providerItems }),
  }
}

function resultsOf({ tool_calls: calls = [] }: AssistantMessage, results: string[]): Message[] {
  return calls.map(({ id }, i) => ({
    role: 'tool',
    id: `m${i + 3}`,
    createdAt: 0,
    tool_call_id: id,
    content: results[i] ?? '',
  }))
}
