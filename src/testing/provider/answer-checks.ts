import { classifyResponse } from '../../../machines/agent/model-response.js'
import type { AssistantMessage, MediaPart, Message, ToolCall } from '../../../machines/agent/messages.js'
import type { ToolSpec } from '../../core/models/provider.js'
import { expectTrue, expectSame, formatValue } from '../check-assertions.js'
import {
  askProvider,
  type ProviderCheckSpec,
  type ProviderAnswer,
  hello,
  getMessageText,
} from './ask-provider.js'
import { parseJsonOr } from '../../core/base/json.js'

const sampleText = 'Héllo 👋 wörld — and so on.'

const add: ToolSpec = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
}

const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const picture: MediaPart = { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } }

const twoCalls = [
  { name: 'add', arguments: { a: 1, b: 2 } },
  { name: 'add', arguments: { a: 3, b: 4 } },
]

export const answerChecks: readonly ProviderCheckSpec[] = [
  {
    name: 'text',
    turns: [{ text: sampleText, chunkSize: 3 }],
    async run(scene) {
      const { response, text, pieces, activity } = await askProvider(scene)
      expectSame('the text', response.text, sampleText)
      expectSame('the kind of response', classifyResponse(response), 'answer')
      expectSame('complete', response.complete, true)
      expectSame('the calls', response.toolCalls, [])
      expectTrue(activity > 0, 'onActivity must be called when content arrives')
      expectSame(
        `whether the server was asked to stream`,
        Boolean(scene.server.requests[0]?.body.stream),
        scene.stream,
      )
      if (!scene.stream) return
      expectSame('the text passed to onDelta', text, sampleText)
      expectTrue(pieces > 3, `a streamed answer must arrive in several chunks, not ${pieces}`)
    },
  },
  {
    name: 'text, byte by byte',
    only: 'stream',
    turns: [{ text: sampleText, split: 'bytes' }],
    async run(scene) {
      expectSame('the text', (await askProvider(scene)).response.text, sampleText)
    },
  },
  {
    name: 'reasoning',
    turns: [{ reasoning: 'Let me think.', text: 'So.' }],
    async run(scene) {
      const { response, reasoning } = await askProvider(scene)
      expectSame('the text', response.text, 'So.')
      expectSame('the reasoning', response.reasoning, 'Let me think.')
      if (scene.stream) expectSame('the reasoning that onDelta was given', reasoning, 'Let me think.')
    },
  },
  {
    name: 'calls in parallel',
    turns: [{ text: 'Let me see.', toolCalls: twoCalls, chunkSize: 4 }],
    async run(scene) {
      const { response } = await askProvider(scene, { tools: [add] })
      expectSame('the text', response.text, 'Let me see.')
      expectSame('the kind of response', classifyResponse(response), 'calls')
      expectSame('the calls', toPlainCalls(response.toolCalls), twoCalls)
      const ids = new Set(response.toolCalls.map(({ id }) => id))
      expectTrue(ids.size === 2, 'each call needs a unique id')
      expectSame('the tools sent to the server', listOfferedTools(scene), ['add'])
    },
  },
  {
    name: 'empty arguments',
    turns: [{ toolCalls: [{ name: 'add' }] }],
    async run(scene) {
      const { response } = await askProvider(scene, { tools: [add] })
      expectSame('the calls', toPlainCalls(response.toolCalls), [{ name: 'add', arguments: {} }])
    },
  },
  {
    name: 'results and the messages sent with them',
    turns: [{ reasoning: 'Two sums.', text: 'Let me see.', toolCalls: twoCalls }, { text: 'Done.' }],
    async run(scene) {
      const first = await askProvider(scene, { tools: [add] })
      const answer = toMessage(first)
      const results = toResults(answer, ['3', '7'])
      const second = await askProvider(scene, {
        tools: [add],
        instructions: 'Be brief.',
        messages: [hello, answer, ...results],
        nudges: ['Do not repeat yourself.'],
      })
      expectSame('the second answer', second.response.text, 'Done.')
      const { messages } = scene.server.requests[1]?.body ?? { messages: [] }
      expectSame(
        'the roles sent to the server',
        messages.map(({ role }) => (role === 'developer' ? 'system' : role)),
        ['system', 'user', 'assistant', 'tool', 'tool', 'user'],
      )
      expectSame('the results', messages.filter(({ role }) => role === 'tool').map(getMessageText), [
        '3',
        '7',
      ])
      const [system, userMessage, , , , nudge] = messages.map(getMessageText)
      expectSame(
        'the system, user and guard messages',
        [system, userMessage, nudge],
        ['Be brief.', 'Hello?', 'Do not repeat yourself.'],
      )
      const sent = messages[2]?.tool_calls ?? []
      expectSame('the calls sent back', toPlainCalls(sent as ToolCall[]), twoCalls)
      expectSame(
        'the call ids of the results',
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
      await askProvider(scene, { messages: [{ role: 'user', id: 'm1', createdAt: 0, content }] })
      const [userMessage] = scene.server.requests[0]?.body.messages ?? []
      expectSame(
        'the text next to the picture',
        userMessage && getMessageText(userMessage).trim(),
        'What is this?',
      )
      expectTrue(
        JSON.stringify(userMessage).includes(pixel),
        `the picture should be in the message, which is ${formatValue(userMessage)}`,
      )
    },
  },
  {
    name: 'a picture in a result',
    turns: [{ toolCalls: [{ name: 'add' }] }, { text: 'A dot.' }],
    async run(scene) {
      const answer = toMessage(await askProvider(scene, { tools: [add] }))
      const [result] = toResults(answer, ['The chart:\n[image: image/png]'])
      const messages = [hello, answer, ...(result ? [{ ...result, media: [picture] } as Message] : [])]
      await askProvider(scene, { tools: [add], messages })
      const sent = scene.server.requests[1]?.body.messages ?? []
      const after = JSON.stringify(sent.slice(sent.findIndex(({ role }) => role === 'tool')))
      expectTrue(
        after.includes(pixel),
        `the picture should be in the result or after it, where there is ${formatValue(after)}`,
      )
      expectTrue(
        after.includes('The chart:'),
        `the words of the result should be there, where there is ${formatValue(after)}`,
      )
    },
  },
  {
    name: 'a stable prefix',
    turns: [{ text: 'One.', toolCalls: [{ name: 'add' }] }, { text: 'Two.' }],
    async run(scene) {
      const answer = toMessage(await askProvider(scene, { tools: [add], instructions: 'Be brief.' }))
      const messages = [hello, answer, ...toResults(answer, ['3'])]
      await askProvider(scene, { tools: [add], instructions: 'Be brief.', messages })
      const [before, after] = scene.server.requests.map(({ body }) => body.messages)
      expectSame('the beginning of a request', after?.slice(0, before?.length), before)
    },
  },
  {
    name: 'real-world histories',
    turns: [{ text: 'Fine.' }],
    async run(scene) {
      const { response } = await askProvider(scene, { messages: troubledHistory })
      expectSame('the answer', response.text, 'Fine.')
    },
  },
  {
    name: 'usage',
    turns: [{ text: 'Hi.', usage: { input: 100, output: 20, cached: 60 } }],
    async run(scene) {
      const { usage } = (await askProvider(scene)).response
      const { inputTokens, outputTokens, totalTokens, cachedInputTokens } = usage ?? {}
      expectSame(
        'the usage',
        { inputTokens, outputTokens, totalTokens, cachedInputTokens },
        { inputTokens: 100, outputTokens: 20, totalTokens: 120, cachedInputTokens: 60 },
      )
    },
  },
  {
    name: 'missing usage',
    turns: [{ text: 'Hi.', usage: null }],
    async run(scene) {
      expectSame('the usage', (await askProvider(scene)).response.usage, null)
    },
  },
  {
    name: 'a truncated answer',
    turns: [{ text: 'Once upon', finishReason: 'length' }],
    async run(scene) {
      const { response } = await askProvider(scene)
      expectSame('the kind of response', classifyResponse(response), 'truncated')
      expectSame('the text', response.text, 'Once upon')
    },
  },
  {
    name: 'a filtered answer',
    turns: [{ text: 'Once', finishReason: 'content_filter' }],
    async run(scene) {
      const kind = classifyResponse((await askProvider(scene)).response)
      expectTrue(
        kind === 'filtered' || kind === 'refusal',
        `it should be filtered or a refusal, but is ${formatValue(kind)}`,
      )
    },
  },
]

/** A history with problems that runs can leave behind. It must not be sent unchanged. */
const troubledHistory: Message[] = [
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

function toPlainCalls(calls: readonly ToolCall[]) {
  return calls.map(({ function: { name, arguments: text } }) => ({
    name,
    arguments: parseJsonOr(text, text),
  }))
}

function listOfferedTools({ server }: Parameters<ProviderCheckSpec['run']>[0]) {
  return (server.requests[0]?.body.tools ?? []).map((tool) => tool.function?.name)
}

function toMessage({ response }: ProviderAnswer): AssistantMessage {
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

function toResults({ tool_calls: calls = [] }: AssistantMessage, results: string[]): Message[] {
  return calls.map(({ id }, i) => ({
    role: 'tool',
    id: `m${i + 3}`,
    createdAt: 0,
    tool_call_id: id,
    content: results[i] ?? '',
  }))
}
