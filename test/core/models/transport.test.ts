import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { spawnSync } from 'node:child_process'
import { brotliCompressSync, createGzip, deflateSync, gzipSync } from 'node:zlib'
import { build } from 'esbuild'
// oxlint-disable-next-line import/no-unassigned-import -- Jest cannot load it for two concurrent requests
import '../../../src/core/models/openai/chat-wire.js'
import { openaiChat, type OpenAIChatOptions } from '../../../src/core/models/openai/openai-provider.js'
import type { ModelRequestOptions } from '../../../src/core/models/provider.js'
import { failureOf } from './failure-of.js'
import { raw, rawServer } from './raw-server.js'
import { type Answer, events, json, serve } from './server.js'
import { overTransport, transports } from './transports.js'
import { sampledKinds } from '../../support/extent.js'

// In a separate file, because the openai client sends its class name, which a bundle can change.
const completion = { choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] }
const piece = (content: string, finish: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason: finish }],
})

function ask(
  baseURL: string,
  options: Partial<OpenAIChatOptions> = {},
  callbacks: Partial<ModelRequestOptions> = {},
) {
  return openaiChat({ model: 'm', baseURL, apiKey: 'key-12345', ...options }).request(
    { instructions: null, messages: [], nudges: [], tools: [], sampling: {}, extraBody: {}, stream: true },
    {
      signal: new AbortController().signal,
      onDelta: () => undefined,
      onActivity: () => undefined,
      ...callbacks,
    },
  )
}

const encoded =
  (coding: string, body: Uint8Array): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding })
    response.end(body)
  }
const text = JSON.stringify(completion)

describe.each(sampledKinds(transports))('over %s,', (transport) => {
  overTransport(transport)

  test.each([
    ['gzip', gzipSync(text)],
    ['x-gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
    ['gzip, br', brotliCompressSync(gzipSync(text))],
    ['identity', Buffer.from(text)],
  ])('an answer in %s is read', async (coding, body) => {
    await using server = await serve(encoded(coding, body))
    expect(await ask(server.baseURL)).toMatchObject({ text: 'Hello', complete: true })
  })

  test('a compressed stream is shown chunk by chunk', async () => {
    let more: (() => void) | undefined
    await using server = await serve((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      const gzip = createGzip()
      gzip.pipe(response)
      gzip.write(`data: ${JSON.stringify(piece('Hel'))}\n\n`)
      gzip.flush()
      more = () => gzip.end(`data: ${JSON.stringify(piece('lo', 'stop'))}\n\ndata: [DONE]\n\n`)
    })
    const shown: string[] = []
    const answer = await ask(
      server.baseURL,
      {},
      {
        onDelta: (words) => {
          shown.push(words)
          if (words === 'Hel') more?.()
        },
      },
    )
    expect(shown).toEqual(['Hel', 'lo'])
    expect(answer.text).toBe('Hello')
  })

  test('a body that is not compressed as declared is a connection failure', async () => {
    await using server = await serve(encoded('gzip', Buffer.from(text)))
    expect(await failureOf(ask(server.baseURL))).toMatchObject({ kind: 'transient', code: 'connection' })
  })

  test('an error in gzip has its message', async () => {
    const body = gzipSync(JSON.stringify({ error: { message: 'No such model.', code: 'model_not_found' } }))
    await using server = await serve((response) => {
      response.writeHead(404, { 'content-encoding': 'gzip' })
      response.end(body)
    })
    const failure = await failureOf(ask(server.baseURL))
    expect(failure).toMatchObject({
      code: 'model_not_found',
      message: expect.stringContaining('No such model.'),
    })
  })

  test.each([301, 302, 303, 307, 308])(
    'a redirect of status %i is refused, and its target receives nothing',
    async (status) => {
      await using elsewhere = await serve(json(200, completion))
      await using server = await serve((response) => {
        response.writeHead(status, { location: `${elsewhere.baseURL}/chat/completions` })
        response.end()
      })
      const failure = await failureOf(ask(server.baseURL))
      expect(failure).toMatchObject({ kind: 'fatal', code: `http_${status}`, status })
      expect(failure.message).toContain(`redirects to ${elsewhere.baseURL}`)
      expect(failure.message).toMatch(/Set the base URL/)
      expect(elsewhere.requests).toEqual([])
    },
  )

  test('a server may have an IPv6 address', async () => {
    const loopback = Object.values(networkInterfaces())
      .flat()
      .some((one) => one?.address === '::1')
    if (!loopback) return console.log('IPv6: skipped, this machine has no ::1')
    const length = `200 OK\ncontent-length: ${text.length}`
    await using server = await rawServer((socket) => socket.write(raw(length, text)), '::1')
    expect(await ask(server.baseURL)).toMatchObject({ text: 'Hello' })
    return undefined
  })

  test('an unsigned certificate is refused', async () => {
    await using server = await secured()
    const failure = await failureOf(ask(server.baseURL))
    expect(failure).toMatchObject({ kind: 'fatal', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  })
})

async function secured() {
  const file = (name: string) => readFileSync(new URL(`./tls/${name}.pem`, import.meta.url), 'utf8')
  const certificate = file('certificate')
  const server = https.createServer({ key: file('key'), cert: certificate }, (request, response) => {
    request.resume()
    response.end(text)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    baseURL: `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    certificate,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

describe("over Node's HTTP,", () => {
  /** Headers that fetch adds. */
  const ofFetch = ['accept-encoding', 'accept-language', 'sec-fetch-mode']

  test.each([
    ['a key', {}],
    [
      'all options',
      { headers: { 'x-app': 'ä' }, query: { a: 'b c' }, organization: 'o', project: 'p', timeoutMs: 5000 },
    ],
    ['a function for the key', { apiKey: () => Promise.resolve('fresh-key') }],
  ])('address, headers and body are those of the client, with %s', async (_name, options) => {
    await using server = await serve(json(200, completion))
    await ask(server.baseURL, options)
    await ask(server.baseURL, { ...options, fetch: (input, init) => fetch(input, init) })
    const [direct, byFetch] = server.requests.map(({ url, headers, body }) => ({ url, headers, body }))
    const names = Object.keys(byFetch?.headers ?? {})
    expect(names).toEqual(expect.arrayContaining(ofFetch))
    // Headers that describe the client and its platform to OpenAI.
    const ofClient = names.filter((name) => name.startsWith('x-stainless-'))
    expect(ofClient.length).toBeGreaterThan(5)
    for (const name of [...ofFetch, ...ofClient]) delete byFetch?.headers[name]
    expect(byFetch?.headers['user-agent']).toMatch(/^OpenAI\/JS/)
    expect(direct).toEqual({ ...byFetch, headers: { ...byFetch?.headers, 'user-agent': 'Statewright' } })
  })

  test.each(['stream', 'document'])('one connection carries one %s after the other', async (kind) => {
    const answer = kind === 'stream' ? events(piece('Hello', 'stop'), '[DONE]') : json(200, completion)
    await using server = await serve(answer)
    let connections = 0
    server.server.on('connection', () => {
      connections += 1
    })
    for (let i = 0; i < 5; i += 1) await ask(server.baseURL)
    expect(connections).toBe(1)
  })

  test('an idle connection that was closed costs no attempt', async () => {
    const answer = raw(`200 OK\ncontent-length: ${text.length}`, text)
    let first: unknown
    await using server = await rawServer((socket, request) => {
      first ??= socket
      // The second request arrives just as the server closes the connection.
      if (request > 1 && socket === first) socket.resetAndDestroy()
      else socket.write(answer)
    })
    await ask(server.baseURL)
    expect(await ask(server.baseURL)).toMatchObject({ text: 'Hello' })
    expect(server).toMatchObject({ requests: 3, connections: 2 })
  })

  test('a new connection that is reset is a failure, and nothing is sent twice', async () => {
    await using server = await rawServer((socket) => socket.resetAndDestroy())
    expect(await failureOf(ask(server.baseURL))).toMatchObject({ kind: 'transient', code: 'connection' })
    expect(server).toMatchObject({ requests: 1, connections: 1 })
  })

  test('no limit but ours ends a slow answer', async () => {
    let finish: (() => void) | undefined
    await using server = await serve((response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write(text.slice(0, 9))
      finish = () => response.end(text.slice(9))
    })
    let received = 0
    const answer = ask(
      server.baseURL,
      {},
      {
        onActivity: () => {
          received += 1
          if (received !== 2) return
          const { port } = new URL(server.baseURL)
          const sockets = Object.entries(http.globalAgent.sockets)
            .filter(([name]) => name.includes(port))
            .flatMap(([, list]) => list ?? [])
          expect(sockets).toHaveLength(1)
          // As after this many idle seconds.
          for (const socket of sockets) socket.emit('timeout')
          finish?.()
        },
      },
    )
    expect(await answer).toMatchObject({ text: 'Hello', complete: true })
  })

  test("certificates of the process's agent apply", async () => {
    await using server = await secured()
    https.globalAgent.options.ca = server.certificate
    try {
      expect(await ask(server.baseURL)).toMatchObject({ text: 'Hello' })
    } finally {
      delete https.globalAgent.options.ca
    }
  })

  test('a wrapper of http.request sees every request', async () => {
    await using server = await serve(json(200, completion))
    const { request } = http
    const paths: unknown[] = []
    http.request = ((options: http.RequestOptions) => {
      paths.push(options.path)
      return request(options)
    }) as typeof http.request
    try {
      await ask(server.baseURL)
    } finally {
      http.request = request
    }
    expect(paths).toEqual(['/v1/chat/completions'])
  })

  test('a client that logs its requests sends them itself', async () => {
    await using server = await serve(json(200, completion))
    const environment = { ...process.env }
    process.env = { ...environment, OPENAI_LOG: 'info' }
    const info = console.info
    const lines: unknown[] = []
    console.info = (line) => lines.push(line)
    try {
      await ask(server.baseURL)
    } finally {
      process.env = environment
      console.info = info
    }
    expect(server.requests[0]?.headers['sec-fetch-mode']).toBe('cors')
    expect(lines.join()).toContain('succeeded with status 200')
  })
})

test('fetch is used if it has been replaced', async () => {
  const { outputFiles } = await build({
    entryPoints: ['src/core/models/openai/node-transport.ts'],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
  })
  const script = `
    ${outputFiles[0]?.text.replace(/^export \{[^]*$/m, '')}
    const uses = () => (findNodeHttp() === null ? 'fetch' : 'http')
    const said = { first: uses() }
    await fetch('http://127.0.0.1:9/').catch(() => undefined)
    said.afterFetch = uses()
    const nodes = globalThis.fetch
    globalThis.fetch = (...given) => nodes(...given)
    said.wrapped = uses()
    globalThis.fetch = nodes
    said.again = uses()
    const key = Symbol.for('undici.globalDispatcher.1')
    const plain = globalThis[key]
    class ProxyAgent extends plain.constructor {}
    class Agent extends plain.constructor {}
    for (const [name, agent] of Object.entries({
      proxy: new ProxyAgent(),
      agent: new Agent(),
      settings: new plain.constructor({ connect: { ca: 'x' } }),
      composed: new Proxy(plain, { get: (target, key) => (key === 'dispatch' ? () => true : target[key]) }),
    })) {
      globalThis[key] = agent
      said[name] = uses()
    }
    globalThis[key] = plain
    said.restored = uses()
    globalThis.document = {}
    console.log(JSON.stringify(said))`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual({
    first: 'http',
    afterFetch: 'http',
    wrapped: 'fetch',
    again: 'http',
    proxy: 'fetch',
    agent: 'http',
    settings: 'fetch',
    composed: 'fetch',
    restored: 'http',
  })
})
