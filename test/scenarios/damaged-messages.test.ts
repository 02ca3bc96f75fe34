import {
  createAgent,
  memoryStore,
  openaiChat,
  openaiResponses,
  restoreSession,
  StatewrightError,
} from '../../src/index.js'
import { toAGUIMessages } from '../../src/agui/index.js'
import { type RecordContent, sealRecord } from '../../src/core/sessions/log/log-record.js'
import { toUIMessages } from '../../src/ui/index.js'
import { sampled } from '../support/extent.js'

/** One message of each kind, each with every optional field. */
const messages = [
  {
    role: 'user',
    id: 'm1',
    createdAt: 1,
    data: { note: 'x' },
    content: [
      { type: 'text', text: 'Look.' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' } },
    ],
  },
  {
    role: 'assistant',
    id: 'm2',
    createdAt: 2,
    content: 'I look.',
    reasoning: 'Hm.',
    reasoning_details: [{ type: 'reasoning.text', text: 'Hm.' }],
    by: 'p/m',
    provider_items: { from: 'responses/openai', items: [{ type: 'reasoning', id: 'rs_1', summary: [] }] },
    annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.test', title: 'A' } }],
    media: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
    tool_calls: [
      {
        id: 'c1',
        type: 'function',
        function: { name: 'look', arguments: '{}' },
        extra_content: { a: 1 },
        hosted: { from: 'responses/openai', server: 'zip' },
      },
    ],
  },
  {
    role: 'tool',
    id: 'm3',
    createdAt: 3,
    tool_call_id: 'c1',
    content: 'Seen.',
    media: [{ type: 'file', file: { file_id: 'f1', filename: 'b.pdf' } }],
  },
  { role: 'assistant', id: 'm4', createdAt: 4, content: null, refusal: 'No.' },
  { role: 'system', id: 'm5', createdAt: 5, internal: true, content: 'Mind.' },
]

/** The paths to all nested values, outermost first. */
const listPaths = (value: unknown, path: (string | number)[] = []): (string | number)[][] => [
  path,
  ...(typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, inner]) => listPaths(inner, [...path, key]))
    : []),
]

const gone = Symbol('gone')
const values = [gone, null, 7, 'x', [], {}, [7], true]

function damage(path: (string | number)[], value: unknown): unknown[] {
  const copy: unknown[] = structuredClone(messages)
  const last = path.at(-1) as string
  const holder = path
    .slice(0, -1)
    .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], copy) as Record<string, unknown>
  if (value !== gone) holder[last] = value
  else if (Array.isArray(holder)) holder.splice(Number(last), 1)
  else delete holder[last]
  return copy
}

const answer = {
  chat: JSON.stringify({
    choices: [{ message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
  }),
  responses: JSON.stringify({
    id: 'r',
    object: 'response',
    status: 'completed',
    output: [
      {
        type: 'message',
        id: 'o',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Yes.', annotations: [] }],
      },
    ],
  }),
}
const serving = (body: string) => () =>
  Promise.resolve(new Response(body, { headers: { 'content-type': 'application/json' } }))
const account = { model: 'gpt-test', apiKey: 'none', baseURL: 'http://localhost:1/v1' }
const models = [
  openaiChat({ ...account, fetch: serving(answer.chat) }),
  openaiResponses({ ...account, fetch: serving(answer.responses) }),
]

const damages = listPaths(messages)
  .filter((path) => path.length > 0)
  .flatMap((path) => values.map((value) => [path, value] as const))
const played = damages.filter((_, i) => i % Math.ceil(damages.length / sampled(damages.length)) === 0)

test('a damaged stored message is refused at load, and a loaded message causes no crash', async () => {
  const stored = JSON.parse(JSON.stringify(restoreSession({ id: 's', messages }))) as object
  const problems: string[] = []
  let refused = 0
  for (const [path, value] of played) {
    const name = `${path.join('.')} = ${value === gone ? 'gone' : JSON.stringify(value)}`
    try {
      const session = restoreSession({ ...stored, messages: damage(path, value) })
      toUIMessages(session.messages)
      toAGUIMessages(session.messages)
      for (const model of models) {
        const copy = restoreSession({ ...stored, messages: damage(path, value) })
        const { error } = await createAgent({ model, stream: false }).run('And?', { session: copy }).result
        if (/TypeError|undefined|not a function|not iterable/.test(error?.message ?? ''))
          problems.push(`${name}: ${error?.message}`)
      }
    } catch (error) {
      refused += 1
      if (!(error instanceof StatewrightError)) problems.push(`${name}: ${String(error)}`)
    }
  }
  expect(problems).toEqual([])
  expect(refused).toBeGreaterThan(played.length / 3)
})

test('the messages of a log are checked the same way: corrupt_log', async () => {
  const problems: string[] = []
  let refused = 0
  for (const damaged of [messages, ...played.map(([path, value]) => damage(path, value))]) {
    const store = memoryStore()
    const opened = {
      type: 'opened',
      version: 1,
      state: { ...JSON.parse(JSON.stringify(emptyState)), messages: damaged },
    } as unknown as RecordContent
    const lease = store.acquire('s', { holder: 'the test', ttlMs: 1000 })
    store.append(lease, [sealRecord(1, 0, opened)])
    store.release(lease)
    const [model] = models
    if (!model) throw new Error('There is no model.')
    try {
      await createAgent({ model, stream: false, store }).run('And?', { session: 's' }).result
    } catch (error) {
      refused += 1
      const isExpected = error instanceof StatewrightError && error.code === 'corrupt_log'
      if (!isExpected || damaged === messages) problems.push(`${JSON.stringify(damaged)}: ${String(error)}`)
    }
  }
  expect(problems).toEqual([])
  expect(refused).toBeGreaterThan(played.length / 3)
})

const emptyState = (() => {
  const { usage, metadata } = restoreSession({ id: 's', messages: [] })
  return { usage, ...metadata }
})()
