import { jest } from '@jest/globals'
import { once } from 'node:events'
import OpenAI, { AzureOpenAI } from 'openai'
import type { ServerResponse } from 'node:http'
// oxlint-disable-next-line import/no-unassigned-import -- Jest cannot load it twice concurrently
import '../../../src/core/models/openai/chat-wire.js'
import { ConfigError } from '../../../src/core/base/errors.js'
import { openaiChat, type OpenAIChatOptions } from '../../../src/core/models/openai/openai-provider.js'
import { type ModelProvider, type ModelRequest } from '../../../src/core/models/provider.js'
import { failureOf } from './failure-of.js'
import { type Answer, events, json, serve } from './server.js'
import { overTransport, transports } from './transports.js'
import { sampledKinds } from '../../support/extent.js'

const question: ModelRequest = {
  instructions: 'Be brief.',
  messages: [{ id: 'u', createdAt: 1, role: 'user', content: 'hi' }],
  nudges: [],
  tools: [],
  sampling: { maxTokens: 9 },
  extraBody: {},
  stream: true,
}
const piece = (content: string, finish: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason: finish }],
})
const callPiece = (fields: object) => ({
  choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...fields }] } }],
})
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const completion = {
  model: 'm-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage,
}

async function ask(
  model: ModelProvider,
  request: Partial<ModelRequest> = {},
  signal = new AbortController().signal,
) {
  const deltas: string[] = []
  let activity = 0
  const response = await model.request(
    { ...question, ...request },
    {
      signal,
      onDelta: (text) => deltas.push(text),
      onActivity: () => {
        activity += 1
      },
    },
  )
  return { response, deltas, activity }
}

const local = (baseURL: string, options: Partial<OpenAIChatOptions> = {}) =>
  openaiChat({ model: 'm', apiKey: 'key-12345', baseURL, ...options })

async function answered(answer: Answer, request: Partial<ModelRequest> = {}) {
  await using server = await serve(answer)
  return await ask(local(server.baseURL), request)
}

const failing = (answer: Answer, request: Partial<ModelRequest> = {}) => failureOf(answered(answer, request))

describe.each(sampledKinds(transports))('over %s,', (transport) => {
  overTransport(transport)

  describe('an answer', () => {
    test('is streamed', async () => {
      await using server = await serve(
        events({ model: 'm-1', ...piece('Hel') }, piece('lo', 'stop'), { choices: [], usage }, '[DONE]'),
      )
      const { response, deltas, activity } = await ask(local(server.baseURL))
      expect(response).toMatchObject({
        text: 'Hello',
        model: 'm-1',
        finishReason: 'stop',
        complete: true,
        usage: { totalTokens: 5 },
      })
      expect(deltas.join('')).toBe('Hello')
      expect(activity).toBeGreaterThan(0)
      const [seen] = server.requests
      expect(seen).toMatchObject({
        url: '/v1/chat/completions',
        headers: { authorization: 'Bearer key-12345', 'content-type': 'application/json' },
      })
      expect(seen?.body).toEqual({
        model: 'm',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'hi' },
        ],
        max_tokens: 9,
        stream: true,
        stream_options: { include_usage: true },
      })
    })

    test('arrives whole if it was requested whole', async () => {
      const { response, deltas } = await answered(json(200, completion), { stream: false })
      expect(response).toMatchObject({ text: 'Hello', complete: true, usage: { totalTokens: 5 } })
      expect(deltas).toEqual([])
    })

    test('that arrives whole for a streaming request is shown in one piece', async () => {
      const { response, deltas } = await answered(json(200, completion))
      expect(response).toMatchObject({ text: 'Hello', complete: true })
      expect(deltas).toEqual(['Hello'])
    })

    test('is the same streamed and whole', async () => {
      const streamed = await answered(events({ model: 'm-1', ...piece('Hello', 'stop'), usage }, '[DONE]'))
      const whole = await answered(json(200, completion), { stream: false })
      expect(streamed.response).toEqual(whole.response)
    })

    test('with neither finish reason nor [DONE] is incomplete', async () => {
      expect((await answered(events(piece('Hel')))).response).toMatchObject({ text: 'Hel', complete: false })
      expect((await answered((response) => response.end())).response).toMatchObject({
        text: '',
        complete: false,
      })
      expect((await answered(json(200, '{"choices":[{"mess'), { stream: false })).response.complete).toBe(
        false,
      )
    })

    test('is complete at [DONE], even if the server keeps the connection open', async () => {
      const { response } = await answered((stream) => {
        stream.writeHead(200, { 'content-type': 'text/event-stream' })
        stream.write(`data: ${JSON.stringify(piece('Hi'))}\n\ndata: [DONE]\n\n`)
      })
      expect(response).toMatchObject({ text: 'Hi', complete: true })
    })

    test('leaves its connection open for the next request', async () => {
      await using server = await serve(events(piece('a', 'stop'), '[DONE]'))
      let connections = 0
      server.server.on('connection', () => {
        connections += 1
      })
      const model = local(server.baseURL)
      for (let i = 0; i < 5; i += 1) {
        await ask(model)
        // The rest of the body arrives after [DONE].
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(connections).toBeLessThan(5)
    })

    test('with ten megabytes of arguments is read whole', async () => {
      const args = `{"x":"${'é'.repeat(5_000_000)}"}`
      const { response } = await answered(
        events(
          callPiece({ id: 'c', function: { name: 'f', arguments: args.slice(0, 5_000_000) } }),
          callPiece({ function: { arguments: args.slice(5_000_000) } }),
          '[DONE]',
        ),
      )
      expect(response.toolCalls[0]?.function.arguments === args).toBe(true)
    })

    test('with invalid UTF-8 has replacement characters', async () => {
      const [before, after] = JSON.stringify(piece('a|b', 'stop')).split('|')
      const { response } = await answered((stream) => {
        stream.writeHead(200, { 'content-type': 'text/event-stream' })
        stream.end(
          Buffer.concat([
            Buffer.from(`data: ${before}`),
            Buffer.from([0xff, 0xc3]),
            Buffer.from(`${after}\n\n`),
          ]),
        )
      })
      expect(response).toMatchObject({ text: 'a\u{fffd}\u{fffd}b', complete: true })
    })
  })

  describe('an abort', () => {
    test('rejects with its reason immediately and closes the connection', async () => {
      let stream: ServerResponse | undefined
      await using server = await serve((response) => {
        stream = response
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(`data: ${JSON.stringify(piece('Hel'))}\n\n`)
      })
      const controller = new AbortController()
      const reason = new Error('enough')
      const request = { ...question, stream: true }
      const answer = local(server.baseURL).request(request, {
        signal: controller.signal,
        onDelta: () => {
          controller.abort(reason)
        },
        onActivity: () => undefined,
      })
      await expect(answer).rejects.toBe(reason)
      if (stream !== undefined && !stream.destroyed) await once(stream, 'close')
    })

    test('before the headers rejects immediately, even if fetch ignores the signal', async () => {
      const controller = new AbortController()
      const model = local('http://nowhere.example/v1', { fetch: () => new Promise(() => undefined) })
      const answer = ask(model, {}, controller.signal)
      controller.abort('stop')
      await expect(answer).rejects.toBe('stop')
    })

    test('before the request sends none', async () => {
      await using server = await serve(json(200, completion))
      await expect(ask(local(server.baseURL), {}, AbortSignal.abort('early'))).rejects.toBe('early')
      expect(server.requests).toEqual([])
    })

    test('leaves no listener on the signal of a long run', async () => {
      await using server = await serve(json(200, completion))
      const { signal } = new AbortController()
      const added = jest.spyOn(signal, 'addEventListener')
      const removed = jest.spyOn(signal, 'removeEventListener')
      for (let i = 0; i < 3; i += 1) await ask(local(server.baseURL), {}, signal)
      expect(added).toHaveBeenCalledTimes(3)
      expect(removed).toHaveBeenCalledTimes(3)
    })
  })

  describe('a failure', () => {
    test('of the socket keeps the received text', async () => {
      const failure = await failing((response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(`data: ${JSON.stringify({ ...piece('Hel'), usage })}\n\n`, () => response.destroy())
      })
      expect(failure).toMatchObject({
        kind: 'transient',
        code: 'connection',
        partialText: 'Hel',
        usage: { totalTokens: 5 },
      })
    })

    test('to connect is transient', async () => {
      const server = await serve(json(200, completion))
      await server[Symbol.asyncDispose]()
      expect(await failureOf(ask(local(server.baseURL)))).toMatchObject({
        kind: 'transient',
        code: 'connection',
        message: expect.stringContaining('ECONNREFUSED'),
      })
    })

    test.each([
      ['a web page', '<!doctype html><p>Welcome</p>', /127\.0\.0\.1.*web page.*\/v1/],
      ['something else', 'OK, it works', /neither JSON nor an event stream/],
      ['other JSON', '{"status":"up"}', /not a chat completion/],
    ])('because the base URL leads to %s has a message about it', async (_what, body, message) => {
      for (const stream of [true, false]) {
        expect(await failing(json(200, body), { stream })).toMatchObject({
          kind: 'fatal',
          code: 'invalid_response',
          message: expect.stringMatching(message),
        })
      }
    })

    test('with a status keeps the provider’s message, in any format', async () => {
      expect(await failing(json(401, { detail: 'Invalid API Key' }))).toMatchObject({
        kind: 'fatal',
        code: 'http_401',
        status: 401,
        message: expect.stringMatching(/Invalid API Key.*OPENAI_API_KEY/),
      })
      expect(
        await failing(json(404, { error: { code: 'model_not_found', message: 'No such model.' } })),
      ).toMatchObject({
        kind: 'fatal',
        code: 'model_not_found',
        message: expect.stringContaining('Check the model name'),
      })
      expect(await failing(json(429, { error: { message: 'slow' } }, { 'retry-after': '7' }))).toMatchObject({
        kind: 'rate_limit',
        retryAfterMs: 7000,
      })
      expect(
        await failing(
          json(400, { object: 'error', message: "This model's maximum context length is 9 tokens" }),
        ),
      ).toMatchObject({ kind: 'context_overflow' })
      expect(await failing(json(503, '<html>down</html>'))).toMatchObject({
        kind: 'transient',
        code: 'http_503',
      })
    })

    test('is not retried by the client', async () => {
      await using server = await serve(json(500, {}))
      await failureOf(ask(local(server.baseURL)))
      expect(server.requests).toHaveLength(1)
    })

    test('inside the stream is reported, with the text before it', async () => {
      const failure = await failing(
        events(piece('par'), { error: { message: 'Overloaded', type: 'overloaded_error', code: 529 } }),
      )
      expect(failure).toMatchObject({ kind: 'transient', code: 'overloaded_error', partialText: 'par' })
    })

    test('that is a named event is recognized', async () => {
      const failure = await failing((response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end('event: error\ndata: {"message":"Too fast","code":"rate_limit_exceeded"}\n\n')
      })
      expect(failure).toMatchObject({ kind: 'rate_limit', code: 'rate_limit_exceeded' })
    })

    test('never shows the key', async () => {
      expect((await failing(json(400, { error: { message: 'bad key key-12345!' } }))).message).not.toContain(
        'key-12345',
      )
      const control = await failureOf(
        ask(openaiChat({ model: 'm', apiKey: 'secret\nvalue', baseURL: 'http://127.0.0.1:9/v1' })),
      )
      expect(control.message).not.toContain('secret')
    })

    test('to send headers in time is transient', async () => {
      await using server = await serve(() => undefined)
      expect(await failureOf(ask(local(server.baseURL, { timeoutMs: 20 })))).toMatchObject({
        kind: 'transient',
        status: null,
      })
    })

    test('because the body broke without a reason is transient', async () => {
      const body = new ReadableStream({
        start: (controller) => controller.error(),
      })
      const model = local('http://x.example/v1', { fetch: () => Promise.resolve(new Response(body)) })
      expect(await failureOf(ask(model))).toMatchObject({ kind: 'transient', code: 'connection' })
    })

    test('because a line never ends is fatal', async () => {
      const megabyte = 'x'.repeat(1024 * 1024)
      let left = 80
      const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
        pull(controller) {
          left -= 1
          if (left < 0) controller.close()
          else controller.enqueue(new TextEncoder().encode(left === 79 ? `data: {"a":"` : megabyte))
        },
      })
      const model = local('http://x.example/v1', { fetch: () => Promise.resolve(new Response(body)) })
      expect(await failureOf(ask(model))).toMatchObject({ kind: 'fatal', code: 'response_too_large' })
      expect(left).toBeGreaterThan(0)
    })
  })

  describe('the client', () => {
    const environment = { ...process.env }
    afterEach(() => {
      process.env = { ...environment }
    })
    const withEnvironment = (variables: Record<string, string>) => {
      process.env = {
        ...environment,
        OPENAI_API_KEY: '',
        OPENAI_ADMIN_KEY: '',
        OPENAI_BASE_URL: '',
        ...variables,
      }
    }

    test('of the user is used unchanged', async () => {
      await using server = await serve(json(200, completion))
      const client = new OpenAI({ apiKey: 'own', baseURL: server.baseURL, defaultHeaders: { 'x-own': '1' } })
      await ask(openaiChat({ model: 'm', client }))
      expect(server.requests[0]).toMatchObject({
        headers: { authorization: 'Bearer own', 'x-own': '1' },
        body: { model: 'm', stream: true },
      })
    })

    test('may be Azure, whose deployments are part of the path', async () => {
      await using server = await serve(events(piece('Hi', 'stop'), '[DONE]'))
      const endpoint = server.baseURL.replace('/v1', '')
      const client = new AzureOpenAI({ endpoint, apiKey: 'azure-key', apiVersion: '2024-10-21' })
      const { response } = await ask(openaiChat({ model: 'my-deployment', client }))
      expect(response).toMatchObject({ text: 'Hi', complete: true })
      expect(server.requests[0]).toMatchObject({
        url: '/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21',
        headers: { 'api-key': 'azure-key' },
      })
    })

    test('gets its key, headers and query from the options', async () => {
      await using server = await serve(json(200, completion))
      const keys = ['one', 'two']
      const model = local(server.baseURL, {
        apiKey: () => Promise.resolve(keys.shift() ?? ''),
        headers: { 'x-app': 'a' },
        query: { 'api-version': 'v' },
        organization: 'org',
        project: 'proj',
      })
      await ask(model)
      await ask(model)
      expect(server.requests).toMatchObject([
        {
          url: '/v1/chat/completions?api-version=v',
          headers: {
            authorization: 'Bearer one',
            'x-app': 'a',
            'openai-organization': 'org',
            'openai-project': 'proj',
          },
        },
        { headers: { authorization: 'Bearer two' } },
      ])
    })

    test('gets its key and address from the environment', async () => {
      await using server = await serve(json(200, completion))
      withEnvironment({ OPENAI_API_KEY: 'from-env', OPENAI_BASE_URL: server.baseURL })
      const model = openaiChat({ model: 'm' })
      await ask(model)
      expect(server.requests[0]?.headers.authorization).toBe('Bearer from-env')
      expect(model.provider).toBe('127.0.0.1')
    })

    test('needs no key for a custom server', async () => {
      await using server = await serve(json(200, completion))
      withEnvironment({})
      const { response } = await ask(openaiChat({ model: 'm', baseURL: server.baseURL }))
      expect(response.text).toBe('Hello')
    })

    test('without a key for OpenAI names the variable to set, and finds it once it is set', async () => {
      withEnvironment({})
      const model = openaiChat({ model: 'm' })
      expect(await failureOf(ask(model))).toMatchObject({
        kind: 'fatal',
        code: 'missing_api_key',
        message: expect.stringContaining('OPENAI_API_KEY'),
      })
    })
  })
})

test.each([
  [{ model: '' }, 'model'],
  [{ model: 'm', baseURL: 'localhost:11434' }, 'baseURL'],
  [{ model: 'm', baseURL: 'http://user:word@localhost/v1' }, 'baseURL'],
  [{ model: 'm', timeoutMs: 0 }, 'timeoutMs'],
  [{ model: 'm', timeoutMs: Number.NaN }, 'timeoutMs'],
  [{ model: 'm', client: new OpenAI({ apiKey: 'k' }), apiKey: 'k' }, 'client'],
  [{ model: 'm', client: {} as OpenAI }, 'client'],
])('options that cannot make a request are refused: %#', (options, subject) => {
  try {
    openaiChat(options)
    throw new Error('was accepted')
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    expect(error).toMatchObject({ code: 'invalid_option', subject })
  }
})

test.each([
  ['https://api.openai.com/v1', 'openai'],
  ['https://my.openai.azure.com/openai/v1', 'azure'],
  ['https://api.deepseek.com', 'deepseek'],
  ['https://api.groq.com/openai/v1', 'groq'],
  ['https://api.mistral.ai/v1', 'mistral'],
  ['https://openrouter.ai/api/v1', 'openrouter'],
  ['https://generativelanguage.googleapis.com/v1beta/openai', 'google'],
  ['http://localhost:11434/v1', 'ollama'],
  ['http://192.168.1.5:8000/v1', 'vllm'],
  ['https://llm.example.com/v1', 'llm.example.com'],
  ['https://notopenai.example:11434/v1', 'notopenai.example'],
])('the provider behind %s is %s', (baseURL, provider) => {
  expect(openaiChat({ model: 'm', baseURL }).provider).toBe(provider)
})
