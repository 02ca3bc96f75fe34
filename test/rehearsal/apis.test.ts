import type { Rehearsal, Turn } from '../../src/rehearsal/index.js'
import { dataOf, start } from './support.js'

interface Api {
  ask: (rehearsal: Rehearsal, stream: boolean, extra?: object) => Promise<Response>
  /** The text, reasoning, calls, finish reason and usage of an answer. */
  read: (whole: unknown) => unknown
  readStream: (events: readonly unknown[]) => unknown
  /** The text, the finish reason and the usage: 10 input tokens, 4 of them cached, and 6 output tokens. */
  output: object
  overloaded: { status: number; error: object }
}

interface Block {
  type: string
  text?: string
  thinking?: string
  signature?: string
  name?: string
  input?: unknown
}

interface Chunk {
  candidates: {
    content: { parts: { text?: string; thought?: true; functionCall?: object }[] }
    finishReason?: string
  }[]
  usageMetadata?: object
}

interface Event {
  type: string
  message?: { usage: object }
  content_block?: Block
  delta?: Record<string, string | null>
  usage?: object
}

function addTo(
  block: Block,
  { text, thinking, signature, partial_json: input }: NonNullable<Event['delta']>,
): void {
  if (text) block.text += text
  if (thinking) block.thinking += thinking
  if (signature) block.signature = signature
  if (input) block.input = `${typeof block.input === 'string' ? block.input : ''}${input}`
}

function post(url: string, body: object): Promise<Response> {
  return fetch(url, { method: 'POST', body: JSON.stringify(body) })
}

const messages: Api = {
  ask: ({ url }, stream, extra = {}) =>
    post(`${url}/messages`, {
      model: 'claude',
      max_tokens: 9,
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [{ role: 'user', content: 'Hello?' }],
      tools: [{ name: 'add', description: 'Adds.', input_schema: { type: 'object' } }],
      stream,
      ...extra,
    }),
  read(whole) {
    const { content, stop_reason, usage } = whole as { content: Block[]; stop_reason: string; usage: object }
    return { content, stop_reason, usage }
  },
  readStream(events) {
    const blocks: Block[] = []
    let end: Event['delta'] = {}
    let usage: object = {}
    for (const event of events as Event[]) {
      if (event.message) usage = event.message.usage
      if (event.content_block) blocks.push({ ...event.content_block })
      const block = blocks.at(-1)
      if (event.type === 'content_block_delta' && block) addTo(block, event.delta ?? {})
      if (event.type !== 'message_delta') continue
      end = event.delta ?? {}
      usage = { ...usage, ...event.usage }
    }
    const content = blocks.map((block) =>
      typeof block.input === 'string' ? { ...block, input: JSON.parse(block.input) as unknown } : block,
    )
    return { content, stop_reason: end['stop_reason'], usage }
  },
  output: {
    content: [
      { type: 'thinking', thinking: 'I have to add these two.', signature: expect.stringMatching(/^.{44}$/) },
      { type: 'text', text: 'Let me see, it is so easy.' },
      {
        type: 'tool_use',
        id: expect.stringMatching(/^call_\d_1$/),
        name: 'add',
        input: { a: 19, b: 23, c: 'and more' },
      },
    ],
    stop_reason: 'tool_use',
    usage: { input_tokens: 4, cache_read_input_tokens: 4, cache_creation_input_tokens: 2, output_tokens: 6 },
  },
  overloaded: {
    status: 529,
    error: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
  },
}

const gemini: Api = {
  ask: ({ url }, stream, extra = {}) =>
    post(`${url}beta/models/gemini-3-pro:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`, {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text: 'Hello?' }] }],
      tools: [{ functionDeclarations: [{ name: 'add', description: 'Adds.' }] }],
      ...extra,
    }),
  read: (whole) => gemini.readStream([whole]),
  readStream(events) {
    const chunks = events as Chunk[]
    const parts = chunks.flatMap(({ candidates: [first] }) => first?.content.parts ?? [])
    const textOf = (thought: boolean) =>
      parts.flatMap((part) => (Boolean(part.thought) === thought ? [part.text ?? ''] : [])).join('')
    return {
      thoughts: textOf(true),
      text: textOf(false),
      calls: parts.filter(({ functionCall }) => functionCall !== undefined),
      finishReason: chunks.at(-1)?.candidates[0]?.finishReason,
      usage: chunks.at(-1)?.usageMetadata,
    }
  },
  output: {
    thoughts: 'I have to add these two.',
    text: 'Let me see, it is so easy.',
    calls: [
      {
        functionCall: { name: 'add', args: { a: 19, b: 23, c: 'and more' } },
        thoughtSignature: expect.stringMatching(/^.{44}$/),
      },
    ],
    finishReason: 'STOP',
    usage: {
      promptTokenCount: 10,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 1,
      cachedContentTokenCount: 4,
      totalTokenCount: 16,
    },
  },
  overloaded: { status: 503, error: { error: { code: 503, status: 'UNAVAILABLE' } } },
}

const turn: Turn = {
  reasoning: 'I have to add these two.',
  text: 'Let me see, it is so easy.',
  toolCalls: [{ name: 'add', arguments: { a: 19, b: 23, c: 'and more' } }],
  usage: { input: 10, output: 6, cached: 4, cacheWrite: 2, reasoning: 1 },
}

function eventsIn(text: string): unknown[] {
  return dataOf(text.replaceAll('\r', '')).map(
    (data) => JSON.parse(data.replace(/^event: \w+\n/, '')) as unknown,
  )
}

describe.each(Object.entries({ messages, gemini }))(
  '%s',
  (name, { ask, read, readStream, output, overloaded }) => {
    it('writes a turn in its own format, with the same content streamed and whole', async () => {
      const rehearsal = await start({
        scenario: { turns: [turn], onExhausted: 'repeatLast' },
        strict: true,
      })
      expect(read(await (await ask(rehearsal, false)).json())).toMatchObject(output)
      expect(readStream(eventsIn(await (await ask(rehearsal, true)).text()))).toMatchObject(output)
      expect(rehearsal.requests[0]).toMatchObject({
        api: name,
        body: {
          messages: [
            { role: 'system', content: 'Be brief.' },
            { role: 'user', content: 'Hello?' },
          ],
          tools: [{ type: 'function', function: { name: 'add' } }],
        },
      })
    })

    it('breaks off, fails and refuses like its provider', async () => {
      const { status, error } = overloaded
      const rehearsal = await start({
        turns: [{ status }, { text: 'One two', errorInStream: { after: 1, error: { message: 'Lost.' } } }],
      })
      const refused = await ask(rehearsal, true)
      expect([refused.status, await refused.json()]).toMatchObject([status, error])
      expect(eventsIn(await (await ask(rehearsal, true)).text()).at(-1)).toMatchObject({
        error: { message: 'Lost.' },
      })
      const exhausted = await ask(rehearsal, false)
      expect([exhausted.status, await exhausted.json()]).toMatchObject([
        400,
        { error: { message: expect.stringContaining('rehearsal_exhausted') } },
      ])
      const broken = await ask(rehearsal, false, { [name === 'gemini' ? 'contents' : 'messages']: [] })
      expect(broken.status).toBe(400)
    })
  },
)

const strict: [what: string, api: Api, extra: object, says: RegExp][] = [
  [
    'more than four cache markers',
    messages,
    {
      messages: [
        {
          role: 'user',
          content: Array.from({ length: 5 }, () => ({
            type: 'text',
            text: 'x',
            cache_control: { type: 'ephemeral' },
          })),
        },
      ],
    },
    /5 cache_control marks, but the maximum is 4/,
  ],
  [
    'edited reasoning',
    messages,
    {
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm', signature: 'x' },
            { type: 'text', text: 'So.' },
          ],
        },
        { role: 'user', content: 'Hi' },
      ],
    },
    /Invalid `signature` in `thinking` block/,
  ],
  [
    'calls without their reasoning',
    messages,
    {
      thinking: { type: 'enabled' },
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'add', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: '3' }] },
      ],
    },
    /Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
  ],
  [
    'an id that is not a name',
    messages,
    {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a.b', name: 'add', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a.b', content: '3' }] },
      ],
    },
    /should match/,
  ],
  [
    'a call without its signature',
    gemini,
    {
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'model', parts: [{ functionCall: { name: 'add', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'add', response: { content: '3' } } }] },
      ],
    },
    /missing a thought_signature/,
  ],
]

it.each(strict)('strict, refuses %s', async (_what, { ask }, extra, says) => {
  const rehearsal = await start({ scenario: { turns: [turn] }, strict: true })
  const response = await ask(rehearsal, true, extra)
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { error: { message: expect.stringMatching(says) } },
  ])
})
