import { brotliCompressSync, gzipSync } from 'node:zlib'
import { Agent, Pool } from 'undici'
// oxlint-disable-next-line import/no-unassigned-import -- Jest cannot load it for two concurrent requests
import '../../../src/core/models/openai/chat-wire.js'
import { createAgent } from '../../../src/index.js'
import { openaiChat, type OpenAIChatOptions } from '../../../src/core/models/openai/openai-provider.js'
import type { RequestDispatcher } from '../../../src/core/models/openai/node-transport.js'
import { failureOf } from './failure-of.js'
import { events, json, serve } from './server.js'

// In a separate file, because it replaces the global fetch.
const completion = { choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] }
const text = JSON.stringify(completion)
const piece = (content: string, finish: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason: finish }],
})

function ask(
  baseURL: string,
  options: Partial<OpenAIChatOptions>,
  signal: AbortSignal = new AbortController().signal,
) {
  return openaiChat({ model: 'm', baseURL, apiKey: 'key-12345', ...options }).request(
    { instructions: null, messages: [], nudges: [], tools: [], sampling: {}, extraBody: {}, stream: true },
    { signal, onDelta: () => undefined, onActivity: () => undefined },
  )
}

const agents: Agent[] = []
function createDispatcher(): Agent {
  const agent = new Agent({ connections: 1 })
  agents.push(agent)
  return agent
}
afterEach(async () => {
  await Promise.all(agents.splice(0).map((agent) => agent.destroy()))
})

test('a run over an undici pool sends the same request on one connection, whatever fetch the app has', async () => {
  await using server = await serve(events(piece('Hello', 'stop'), '[DONE]'))
  let connections = 0
  server.server.on('connection', () => {
    connections += 1
  })
  const pool = new Pool(new URL(server.baseURL).origin, { connections: 1 })
  const nodes = globalThis.fetch
  globalThis.fetch = () => Promise.reject(new Error('fetch was used'))
  try {
    const options = { model: 'm', baseURL: server.baseURL, apiKey: 'key-12345', query: { a: 'b c' } }
    const agent = createAgent({ model: openaiChat({ ...options, dispatcher: pool }) })
    for (let i = 0; i < 3; i += 1) {
      expect(await agent.run('Hi.').result).toMatchObject({ state: 'COMPLETED', output: 'Hello' })
    }
    expect(connections).toBe(1)
  } finally {
    globalThis.fetch = nodes
    await pool.destroy()
  }
  const [request] = server.requests
  expect(request).toMatchObject({
    url: '/v1/chat/completions?a=b%20c',
    headers: {
      authorization: 'Bearer key-12345',
      'content-type': 'application/json',
      'user-agent': 'Statewright',
    },
    body: { model: 'm', messages: [{ role: 'user', content: 'Hi.' }] },
  })
})

test.each([
  ['gzip', gzipSync(text)],
  ['br', brotliCompressSync(text)],
  ['identity', Buffer.from(text)],
])('an answer in %s is read', async (coding, body) => {
  await using server = await serve((response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding })
    response.end(body)
  })
  expect(await ask(server.baseURL, { dispatcher: createDispatcher() })).toMatchObject({
    text: 'Hello',
    complete: true,
  })
})

test('a character that is split between two chunks is whole', async () => {
  await using server = await serve((response) => {
    const bytes = Buffer.from(`data: ${JSON.stringify(piece('Grüße 🚀', 'stop'))}\n\ndata: [DONE]\n\n`)
    const cut = bytes.indexOf(Buffer.from('🚀')) + 2
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(bytes.subarray(0, cut), () => setImmediate(() => response.end(bytes.subarray(cut))))
  })
  expect(await ask(server.baseURL, { dispatcher: createDispatcher() })).toMatchObject({ text: 'Grüße 🚀' })
})

test('a status, a redirect, a broken body and a closed port fail like over Node', async () => {
  await using refusing = await serve(json(429, { error: { message: 'Slow down.' } }, { 'retry-after': '7' }))
  await using elsewhere = await serve(json(200, completion))
  await using redirecting = await serve((response) => {
    response.writeHead(307, { location: `${elsewhere.baseURL}/chat/completions` })
    response.end()
  })
  await using broken = await serve((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify(piece('Hel'))}\n\n`, () => response.destroy())
  })
  for (const baseURL of [refusing.baseURL, redirecting.baseURL, broken.baseURL, 'http://127.0.0.1:1/v1']) {
    const over = await failureOf(ask(baseURL, { dispatcher: createDispatcher() }))
    const direct = await failureOf(ask(baseURL, {}))
    expect(over).toEqual({ ...direct, message: over.message })
    expect(over.message).not.toBe('')
  }
  expect(elsewhere.requests).toEqual([])
})

test('aborting closes the connection, before and within the answer', async () => {
  for (const begins of [false, true]) {
    const controller = new AbortController()
    let closed: (() => void) | undefined
    const isClosed = new Promise<void>((resolve) => {
      closed = resolve
    })
    await using server = await serve((response) => {
      response.on('close', () => closed?.())
      if (begins) response.write(`data: ${JSON.stringify(piece('Hel'))}\n\n`)
      setTimeout(() => controller.abort(new Error('stop')), 0)
    })
    await expect(ask(server.baseURL, { dispatcher: createDispatcher() }, controller.signal)).rejects.toThrow()
    await isClosed
  }
})

test('headers that do not arrive in time are a timeout', async () => {
  const late: RequestDispatcher = {
    request: ({ headersTimeout, bodyTimeout }) => {
      expect({ headersTimeout, bodyTimeout }).toEqual({ headersTimeout: 1234, bodyTimeout: 0 })
      return Promise.reject(
        Object.assign(new Error('Headers Timeout Error'), { code: 'UND_ERR_HEADERS_TIMEOUT' }),
      )
    },
  }
  const failure = await failureOf(ask('http://127.0.0.1:1/v1', { dispatcher: late, timeoutMs: 1234 }))
  expect(failure).toMatchObject({
    kind: 'transient',
    message: expect.stringContaining('did not answer in time'),
  })
})

test.each([
  ['not a dispatcher', { dispatcher: {} }, /dispatcher must be an undici dispatcher/],
  ['null', { dispatcher: null }, /dispatcher must be an undici dispatcher/],
  [
    'next to a fetch',
    { dispatcher: new Agent(), fetch },
    /dispatcher cannot be combined with client or fetch/,
  ],
])('refused: %s', (_name, options, message) => {
  expect(() => openaiChat({ model: 'm', ...(options as object) })).toThrow(message)
})
