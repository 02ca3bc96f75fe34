import { estimateRequestTokens } from '../../../src/core/prices/estimate-tokens.js'
import {
  type AgentEvent,
  createSession,
  createEventFormatter,
  openaiChat,
  type ModelProvider,
  openaiResponses,
  restoreSession,
  toolContent,
  type Message,
  type TurnEnd,
} from '../../../src/index.js'
import { chatTransport } from '../../../src/ui/client/index.js'
import { toAGUI, toAGUIEnds, toAGUIMessages } from '../../../src/agui/index.js'
import {
  toEventStreamResponse,
  foldTranscript,
  toUIMessages,
  toUIMessageStream,
  toUIMessageStreamResponse,
} from '../../../src/ui/index.js'
import { parseScenario } from '../../../src/rehearsal/index.js'
import { loadAttachment, memory, parseSnippets, restoreMemory } from '../../../src/memory/index.js'
import { findHistoryProblem } from '../../../src/testing/index.js'
import { type Row, row } from '../measure.js'
import { agentOf, calling, serving, stepping, streaming, transcript } from '../scripted.js'

/** The events of a run of this many steps. */
async function events(steps: number): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  const run = agentOf(stepping(steps)).run('Look.')
  run.events$.subscribe((event) => events.push(event))
  await run.result
  return events
}

/** The events of a streamed answer of this many characters. */
async function pieces(characters: number): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  const run = agentOf(streaming('word '.repeat(characters / 5))).run('Tell.')
  run.events$.subscribe((event) => events.push(event))
  await run.result
  return events
}

const folded = (events: readonly AgentEvent[]) => foldTranscript(undefined, events)

/** The events of n calls, each with its own answer. Real runs of this length take too long to prepare. */
const calls = (n: number): AgentEvent[] =>
  Array.from({ length: n }, (_, i): object[] => {
    const [stepId, callId] = [`s${i}`, `c${i}`]
    const call = { id: callId, type: 'function', function: { name: 'look', arguments: '{}' } }
    return [
      { type: 'stream_chunk', stepId, text: 'word ', finished: false },
      { type: 'tool_call_delta', stepId, callId, name: 'look', delta: '{}' },
      { type: 'assistant_message', stepId, message: { content: 'word ', tool_calls: [call] } },
      { type: 'tool_call', stepId, call },
      { type: 'tool_result', callId, status: 'ok', content: 'seen' },
    ]
  }).flat() as AgentEvent[]

const formatted = (events: readonly AgentEvent[]) => events.map(createEventFormatter())

const stored = (n: number) =>
  ({ ...JSON.parse(JSON.stringify(createSession())), messages: transcript(n) }) as unknown

/** A streamed answer in pieces of five characters, in Chat Completions format. */
const chatBody = (n: number): string => {
  const piece = `data: {"id":"a","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n`
  return `${piece.repeat(n / 5)}data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`
}

/** The same with empty reasoning tags. */
const thinkingBody = (n: number): string => chatBody(n).replaceAll('word ', '<think></think>')

/** One call whose arguments arrive in pieces. */
const callBody = (n: number): string => {
  const piece = (delta: string) =>
    `data: {"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,${delta}}]}}]}\n\n`
  const begin = piece('"id":"c","type":"function","function":{"name":"look","arguments":"{\\"at\\":1"}')
  const more = piece('"function":{"arguments":"     "}').repeat(n / 5)
  const end = piece('"function":{"arguments":"}"}')
  return `${begin}${more}${end}data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n`
}

const responsesBody = (n: number): string => {
  const event = (type: string, rest: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
  const text = 'word '.repeat(n / 5)
  const item = {
    type: 'message',
    id: 'm',
    role: 'assistant',
    content: [{ type: 'output_text', text, annotations: [] }],
  }
  const delta = event('response.output_text.delta', {
    output_index: 0,
    item_id: 'm',
    content_index: 0,
    delta: 'word ',
  })
  const response = { id: 'r', object: 'response', status: 'completed', output: [item], usage: null }
  return delta.repeat(n / 5) + event('response.completed', { response })
}

const ask = {
  instructions: null,
  messages: transcript(1).slice(0, 1),
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
  stream: true,
}

const requestOnce = async (model: ModelProvider): Promise<unknown> =>
  model.request(ask, {
    signal: new AbortController().signal,
    onDelta: () => undefined,
    onActivity: () => undefined,
  })

const account = { model: 'm', apiKey: 'none', baseURL: 'http://localhost:1/v1' }

const overChat = (body: string) =>
  requestOnce(openaiChat({ ...account, fetch: serving(body, 'text/event-stream') }))

const overResponses = (body: string) =>
  requestOnce(openaiResponses({ ...account, fetch: serving(body, 'text/event-stream') }))

async function drained(stream: AsyncIterable<unknown>): Promise<number> {
  let parts = 0
  for await (const _ of stream) parts += 1
  return parts
}

const streamed = (n: number): string => 'word '.repeat(n / 5)

const startRun = (text: string) => agentOf(streaming(text)).run('Tell.')

const document = (n: number) => [{ source: 'a.md', text: 'Everyone has 30 days of it. '.repeat(n / 28) }]

const answerSize = { from: 5_000, atMost: 80_000 }

export const messageRows: readonly Row[] = [
  row({
    name: 'openaiChat reading an answer',
    covers: ['statewright openaiChat'],
    ...answerSize,
    prepare: chatBody,
    run: overChat,
  }),
  row({
    name: 'openaiChat reading thoughts',
    covers: [],
    ...answerSize,
    prepare: thinkingBody,
    run: overChat,
  }),
  row({ name: 'openaiChat reading a call', covers: [], ...answerSize, prepare: callBody, run: overChat }),
  row({
    name: 'openaiResponses reading an answer',
    covers: ['statewright openaiResponses'],
    ...answerSize,
    prepare: responsesBody,
    run: overResponses,
  }),
  row({
    name: 'toUIMessageStream',
    covers: ['statewright/ui toUIMessageStream'],
    ...answerSize,
    prepare: streamed,
    run: (text) => drained(toUIMessageStream(startRun(text))),
  }),
  row({
    name: 'toUIMessageStreamResponse',
    covers: ['statewright/ui toUIMessageStreamResponse'],
    ...answerSize,
    prepare: streamed,
    run: (text) => toUIMessageStreamResponse(startRun(text)).text(),
  }),
  row({
    name: 'chatTransport reading an answer',
    covers: ['statewright/ui/client chatTransport'],
    ...answerSize,
    prepare: (n) => toUIMessageStreamResponse(startRun(streamed(n))).text(),
    run: async (body) => {
      const headers = { 'content-type': 'text/event-stream' }
      const transport = chatTransport({ fetch: () => Promise.resolve(new Response(body, { headers })) })
      const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Tell.' }] }]
      const request = { trigger: 'submit-message', chatId: 'c', messageId: undefined, messages }
      return drained(await transport.sendMessages(request as never))
    },
  }),
  row({
    name: 'toEventStreamResponse',
    covers: ['statewright/ui toEventStreamResponse'],
    ...answerSize,
    prepare: streamed,
    run: (text) => toEventStreamResponse(startRun(text)).text(),
  }),
  row({
    name: 'toAGUI',
    covers: ['statewright/agui toAGUI'],
    ...answerSize,
    prepare: streamed,
    run: (text) => drained(toAGUI(startRun(text))),
  }),
  row({
    name: 'toAGUI over many calls',
    covers: [],
    from: 50,
    atMost: 400,
    prepare: (n) => n,
    run: (n) => drained(toAGUI(agentOf(calling(n)).run('Look.'))),
  }),
  row({
    name: 'toUIMessageStream over many calls',
    covers: [],
    from: 50,
    atMost: 400,
    prepare: (n) => n,
    run: (n) => drained(toUIMessageStream(agentOf(calling(n)).run('Look.'))),
  }),
  row({
    name: 'findHistoryProblem',
    covers: ['statewright/testing findHistoryProblem'],
    from: 500,
    atMost: 8_000,
    prepare: transcript,
    run: findHistoryProblem,
  }),
  row({
    name: 'parseScenario',
    covers: ['statewright/rehearsal parseScenario'],
    from: 500,
    atMost: 8_000,
    prepare: (n) => ({ turns: Array.from({ length: n }, (_, i) => ({ text: `Turn ${i}.` })) }),
    run: (value) => parseScenario(value),
  }),
  row({
    name: 'toolContent',
    covers: ['statewright toolContent'],
    from: 10_000,
    prepare: (n) => [
      { type: 'text' as const, text: 'word '.repeat(n / 5) },
      { type: 'image' as const, image: new Uint8Array(n), mediaType: 'image/png' },
    ],
    run: (parts) => toolContent(parts),
  }),
  row({
    name: 'parseSnippets',
    covers: ['statewright/memory parseSnippets'],
    from: 500,
    atMost: 16_000,
    prepare: (n) => Array.from({ length: n }, (_, i) => ({ source: `${i}.md`, text: `Page ${i}.` })),
    run: (found) => parseSnippets(found),
  }),
  row({
    name: 'memory',
    covers: ['statewright/memory memory'],
    from: 20_000,
    atMost: 160_000,
    prepare: document,
    run: (documents) => memory({ documents }).retrieve('days'),
  }),
  row({
    name: 'restoreMemory',
    covers: ['statewright/memory restoreMemory'],
    from: 20_000,
    atMost: 160_000,
    prepare: (n) => JSON.parse(JSON.stringify(memory({ documents: document(n) }))) as never,
    run: (input) => restoreMemory(input),
  }),
  row({
    name: 'loadAttachment',
    covers: ['statewright/memory loadAttachment'],
    from: 20_000,
    prepare: (n) => 'word\n'.repeat(n / 5),
    run: (data) => loadAttachment({ data, name: 'a.txt' }),
  }),
  row({
    name: 'toUIMessages',
    covers: ['statewright/ui toUIMessages'],
    from: 500,
    atMost: 8_000,
    prepare: transcript,
    run: (list) => toUIMessages(list),
  }),
  row({
    name: 'toAGUIMessages',
    covers: ['statewright/agui toAGUIMessages'],
    from: 500,
    atMost: 8_000,
    prepare: transcript,
    run: toAGUIMessages,
  }),
  row({
    name: 'toAGUIEnds',
    covers: ['statewright/agui toAGUIEnds'],
    from: 2_000,
    atMost: 32_000,
    prepare: (size) => {
      const messages = Array.from(
        { length: size },
        (_, i): Message => ({ role: 'user', id: `m${i + 1}`, createdAt: 0, content: 'Go.' }),
      )
      const ends = messages.map(
        ({ id }): TurnEnd => ({ messageId: id, state: 'CANCELLED', reason: 'cancelled' }),
      )
      return { messages, ends }
    },
    run: ({ messages, ends }) => toAGUIEnds(ends, messages),
  }),
  row({
    name: 'foldTranscript over steps',
    covers: ['statewright/ui foldTranscript'],
    from: 50,
    atMost: 200,
    prepare: events,
    run: folded,
  }),
  row({
    name: 'foldTranscript over calls',
    covers: ['statewright/ui foldTranscript'],
    from: 1_000,
    atMost: 16_000,
    prepare: calls,
    run: folded,
  }),
  row({
    name: 'foldTranscript over pieces',
    covers: ['statewright/ui foldTranscript'],
    from: 10_000,
    atMost: 160_000,
    prepare: pieces,
    run: folded,
  }),
  row({
    name: 'createEventFormatter over steps',
    covers: ['statewright createEventFormatter'],
    from: 100,
    atMost: 800,
    prepare: events,
    run: formatted,
  }),
  row({
    name: 'createEventFormatter over pieces',
    covers: ['statewright createEventFormatter'],
    from: 10_000,
    atMost: 160_000,
    prepare: pieces,
    run: formatted,
  }),
  row({
    name: 'restoreSession',
    covers: ['statewright restoreSession'],
    from: 500,
    atMost: 8_000,
    prepare: stored,
    run: restoreSession,
  }),
  row({
    name: 'estimating a request',
    covers: [],
    from: 500,
    atMost: 8_000,
    prepare: (n) => ({
      instructions: null,
      messages: transcript(n),
      nudges: [],
      tools: [],
      sampling: {},
      extraBody: {},
      stream: false,
    }),
    run: (request) => estimateRequestTokens({ ...request, messages: structuredClone(request.messages) }),
  }),
]
