import OpenAI from 'openai'
import { openaiChat, type OpenAIChatOptions } from '../../../src/core/models/openai/openai-provider.js'
import { createStatusError } from '../../../src/core/models/openai/request-client.js'
import { json, serve } from './server.js'

const completion = { choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] }
const environment = { ...process.env }
beforeEach(() => {
  process.env = { ...environment }
  for (const name of Object.keys(process.env)) if (name.startsWith('OPENAI_')) delete process.env[name]
})
afterAll(() => {
  process.env = environment
})

const request = (options: OpenAIChatOptions) =>
  openaiChat(options).request(
    { instructions: null, messages: [], nudges: [], tools: [], sampling: {}, extraBody: {}, stream: true },
    {
      signal: new AbortController().signal,
      onDelta: () => undefined,
      onActivity: () => undefined,
    },
  )

const ask = (baseURL: string, options: Partial<OpenAIChatOptions> = {}) =>
  request({ model: 'm', baseURL, ...options })

/** An openai client with the same settings. Unlike ours, it insists on a key. */
const toClient = (baseURL: string, options: Partial<OpenAIChatOptions>) =>
  new OpenAI({
    baseURL,
    apiKey:
      options.apiKey || process.env['OPENAI_API_KEY'] || process.env['OPENAI_ADMIN_KEY'] || 'no-key-needed',
    organization: options.organization,
    project: options.project,
    defaultHeaders: options.headers,
    defaultQuery: options.query,
  })

/** The requests over Node's HTTP, over fetch and by the openai client, without headers that identify these. */
async function askAll(options: Partial<OpenAIChatOptions>, suffix = '') {
  await using server = await serve(json(200, completion))
  const baseURL = server.baseURL + suffix
  await ask(baseURL, options)
  await ask(baseURL, { ...options, fetch: (input, init) => fetch(input, init) })
  await request({ model: 'm', client: toClient(baseURL, options) })
  return server.requests.map(({ url, headers, body }) => {
    const { 'user-agent': _agent, 'accept-encoding': _encoding, ...others } = headers
    const own = Object.entries(others).filter(
      ([name]) => !/^(x-stainless-.*|accept-language|sec-fetch-mode|connection)$/.test(name),
    )
    return { url, headers: Object.fromEntries(own), body }
  })
}

const cases: [string, Partial<OpenAIChatOptions>, Record<string, string>, string?][] = [
  ['no key', {}, {}],
  ['a key of the environment', {}, { OPENAI_API_KEY: 'from-environment' }],
  ['an admin key of the environment', {}, { OPENAI_ADMIN_KEY: 'admin' }],
  ['both keys of the environment', {}, { OPENAI_ADMIN_KEY: 'admin', OPENAI_API_KEY: 'k' }],
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
]

test.each(cases)('address, headers and body equal those of the openai client, with %s', async (...row) => {
  const [, options, set, suffix] = row
  Object.assign(process.env, set)
  const [byNode, byFetch, byClient] = await askAll(options, suffix)
  expect(byNode).toEqual(byClient)
  expect(byFetch).toEqual(byClient)
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
  await using server = await serve(json(status, body))
  const failures = await Promise.all(
    [ask(server.baseURL), ask(server.baseURL, { fetch: (input, init) => fetch(input, init) })].map((answer) =>
      answer.catch(({ failure }: { failure: object }) => failure),
    ),
  )
  expect(failures[1]).toEqual(failures[0])
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

test('the error of a status has the same fields as that of the openai client', () => {
  const error = { message: 'Slow down.', code: 'rate_limited', param: null, type: 'requests' }
  const headers = new Headers({ 'x-request-id': 'req-1' })
  const thrown = createStatusError(429, JSON.stringify({ error }), headers)
  const created = OpenAI.APIError.generate(429, { error }, undefined, headers)
  const { status, code, param, type, requestID, message } = created
  expect(thrown).toMatchObject({ status, code, param, type, requestID, message, error })
})
