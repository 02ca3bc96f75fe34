import { jest } from '@jest/globals'
import type { OpenAIChatOptions } from '../../../src/core/models/openai/openai-provider.js'
import { json, serve } from './server.js'

// In a separate file, because it observes when the openai package loads.
let loads = 0
const real = await import('openai')
jest.unstable_mockModule('openai', () => {
  loads += 1
  return { ...real }
})
const { openaiChat } = await import('../../../src/core/models/openai/openai-provider.js')
// The first request loads two modules concurrently, and Jest sometimes fails to link them.
await import('../../../src/core/models/openai/chat-wire.js')
await import('../../../src/core/models/openai/exchange.js')

const completion = { choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] }
const environment = { ...process.env }
beforeEach(() => {
  process.env = { ...environment }
  for (const name of Object.keys(process.env)) if (name.startsWith('OPENAI_')) delete process.env[name]
})
afterAll(() => {
  process.env = environment
})

const ask = (baseURL: string, options: Partial<OpenAIChatOptions> = {}) =>
  openaiChat({ model: 'm', baseURL, ...options }).request(
    { instructions: null, messages: [], nudges: [], tools: [], sampling: {}, extraBody: {}, stream: true },
    {
      signal: new AbortController().signal,
      onDelta: () => undefined,
      onActivity: () => undefined,
    },
  )

/** The request from our client and from the openai client, without headers that identify the client. */
async function askBoth(
  options: Partial<OpenAIChatOptions>,
  suffix = '',
): Promise<{ url: unknown; headers: Record<string, unknown> }[]> {
  await using server = await serve(json(200, completion))
  await ask(server.baseURL + suffix, options)
  await ask(server.baseURL + suffix, { ...options, fetch: (input, init) => fetch(input, init) })
  return server.requests.map(({ url, headers }) => {
    const { 'user-agent': _agent, 'accept-encoding': _encoding, ...others } = headers
    const own = Object.entries(others).filter(
      ([name]) => !/^(x-stainless-.*|accept-language|sec-fetch-mode)$/.test(name),
    )
    return { url, headers: Object.fromEntries(own) as Record<string, unknown> }
  })
}

test("requests over Node's HTTP do not load the openai client, and requests with a custom fetch do", async () => {
  await using server = await serve(json(200, completion))
  expect(await ask(server.baseURL, { apiKey: 'key-12345' })).toMatchObject({ text: 'Hello' })
  expect(loads).toBe(0)
  await ask(server.baseURL, { apiKey: 'key-12345', fetch: (input, init) => fetch(input, init) })
  expect(loads).toBe(1)
})

const cases: [string, Partial<OpenAIChatOptions>, Record<string, string>, string?][] = [
  ['no key', {}, {}],
  ['a key of the environment', {}, { OPENAI_API_KEY: ' from-environment ' }],
  ['an empty key', { apiKey: '' }, { OPENAI_API_KEY: 'from-environment' }],
  ['a key with a line break', { apiKey: 'key-12345\n' }, {}],
  [
    'organization and project of the environment',
    { apiKey: 'k' },
    { OPENAI_ORG_ID: 'org', OPENAI_PROJECT_ID: 'p' },
  ],
  [
    'headers of the environment',
    { apiKey: 'k', headers: { 'x-own': 'mine' } },
    { OPENAI_CUSTOM_HEADERS: 'X-Team: blue\nx-own : theirs\nnonsense' },
  ],
  ['custom headers', { apiKey: 'k', headers: { Authorization: 'Basic x', ACCEPT: 'text/plain' } }, {}],
  ['another content type', { apiKey: 'k', headers: { 'Content-Type': 'text/plain' } }, {}],
  ['special characters in the query', { apiKey: 'k', query: { "a!'()*": 'ü &=+#/?', b: '' } }, {}],
  ['an address that ends in a slash', { apiKey: 'k' }, {}, '/'],
  [
    'neither organization nor project',
    { apiKey: 'k', organization: null, project: null } as never,
    { OPENAI_ORG_ID: 'org', OPENAI_PROJECT_ID: 'p' },
  ],
  ['headers as Headers', { apiKey: 'k', headers: new Headers({ 'x-b': '2' }) } as never, {}],
  ['headers as pairs', { apiKey: 'k', headers: [['x-c', '3']] } as never, {}],
  ['lists and null in the query', { apiKey: 'k', query: { a: null, b: ['1', '2'] } } as never, {}],
]

test.each(cases)('address and headers equal those of the openai client, with %s', async (...row) => {
  const [, options, set, suffix] = row
  Object.assign(process.env, set)
  const [plain, byClient] = await askBoth(options, suffix)
  expect(plain).toEqual(byClient)
})

test.each([
  ['an object', 429, { error: { message: 'Slow down.', code: 'rate_limited' } }],
  ['a text', 400, 'It is wrong.'],
  ['an error that is a text', 400, { error: 'It is wrong.' }],
  ['nothing', 500, ''],
  ['other JSON', 404, { detail: 'Not here.' }],
  ['an empty message', 400, { error: { message: '', code: 'c' } }],
  ['null', 400, null],
])('a status with %s is the same failure', async (_, status, body) => {
  const failures = await Promise.all(
    [{}, { fetch: (input: never, init: never) => fetch(input, init) }].map(async (options) => {
      await using server = await serve(json(status, body))
      const { failure } = (await ask(server.baseURL, options as never).catch((error: unknown) => error)) as {
        failure: object
      }
      return failure
    }),
  )
  expect(failures[0]).toEqual(failures[1])
  expect(failures[0]).toMatchObject({ status })
})

test.each([
  ['rejects', () => Promise.reject(new Error('No token today.')), 'No token today.'],
  ['returns nothing', () => Promise.resolve(''), "Expected 'apiKey' function argument to return a string"],
])('a key function that %s is the reason', async (_, apiKey, reason) => {
  await using server = await serve(json(200, completion))
  const pending = ask(server.baseURL, { apiKey: apiKey as () => Promise<string> })
  await expect(pending).rejects.toThrow(reason)
  expect(server.requests).toEqual([])
})

test.each([
  [{ OPENAI_LOG: 'info' }, true],
  [{ OPENAI_LOG: 'warn' }, false],
  [{ OPENAI_ADMIN_KEY: 'admin' }, true],
  [{ OPENAI_ADMIN_KEY: 'admin', OPENAI_API_KEY: 'k' }, false],
])('with %j, the openai client is needed: %s', async (set, isNeeded) => {
  const { isPlainClientEnough } = await import('../../../src/core/models/openai/request-client.js')
  expect(isPlainClientEnough({ model: 'm' })).toBe(true)
  Object.assign(process.env, set)
  expect(isPlainClientEnough({ model: 'm' })).toBe(!isNeeded)
})

test('the error of a status has the same fields as that of the openai client', async () => {
  const { createStatusError } = await import('../../../src/core/models/openai/request-client.js')
  const error = { message: 'Slow down.', code: 'rate_limited', param: null, type: 'requests' }
  const headers = new Headers({ 'x-request-id': 'req-1' })
  const thrown = createStatusError(429, JSON.stringify({ error }), headers)
  const created = real.APIError.generate(429, { error }, undefined, headers)
  const { status, code, param, type, requestID, message } = created
  expect(thrown).toMatchObject({ status, code, param, type, requestID, message, error })
})
