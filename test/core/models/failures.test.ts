import * as fc from 'fast-check'
import { toModelFailure } from '../../../src/core/models/to-model-failure.js'
import { ModelError } from '../../../src/core/models/provider.js'

const now = Date.parse('2030-01-01T00:00:00Z')
const http = (status: number, error: unknown, headers: unknown = {}) =>
  toModelFailure({ status, error, headers }, now)

test.each([408, 409, 425, 500, 502, 503, 504, 529])('status %i is transient', (status) => {
  expect(http(status, { message: 'busy' })).toMatchObject({
    kind: 'transient',
    code: `http_${status}`,
    status,
  })
})

test.each([
  [400, /parameters/],
  [401, /API key/],
  [402, /balance/],
  [403, /may use this model/],
  [404, /model name and the base URL/],
  [422, /parameters/],
])('status %i is fatal and has a remedy', (status, advice) => {
  expect(http(status, { message: 'no' })).toMatchObject({
    kind: 'fatal',
    message: expect.stringMatching(advice),
  })
})

test.each([
  'Your team has used all available credits or reached its monthly spending limit.',
  'You are out of credits.',
  'Your credit balance is too low to access the API.',
  'Insufficient balance',
])('429 is fatal if its message reports an empty account: %s', (message) => {
  expect(http(429, { message, type: 'unheard_of' })).toMatchObject({ kind: 'fatal' })
})

test('429 is transient, unless the account is exhausted', () => {
  expect(http(429, { code: 'rate_limit_exceeded' })).toMatchObject({
    kind: 'rate_limit',
    code: 'rate_limit_exceeded',
  })
  for (const code of ['insufficient_quota', 'billing_hard_limit_reached', 'exceeded_current_quota_error']) {
    expect(http(429, { code })).toMatchObject({ kind: 'fatal', code })
  }
})

test('an overload is transient with any status', () => {
  expect(http(400, { type: 'overloaded_error' }).kind).toBe('transient')
})

test.each([
  "This model's maximum context length is 1048565 tokens. However, you requested 1250025 tokens.",
  'Please reduce the length of the messages or completion.',
  'prompt is too long: 210000 tokens > 200000 maximum',
  'Input is too long for requested model.',
  'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  'the request exceeds the available context size, try increasing it',
  'input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000',
  'Invalid request: Your request exceeded model token limit: 131072',
  'Prompt contains 40000 tokens, too large for model with 32768 maximum context length',
  'invalid params, context window exceeds limit',
])('a request that is too long is a context overflow: %s', (message) => {
  expect(http(400, { message, code: 'invalid_request_error' }).kind).toBe('context_overflow')
})

test('a context overflow is also recognized by its code or status', () => {
  expect(http(400, { code: 'context_length_exceeded' }).kind).toBe('context_overflow')
  expect(http(413, undefined).kind).toBe('context_overflow')
})

test('other messages about context are not an overflow', () => {
  expect(http(400, { message: "Invalid value for 'context'." }).kind).toBe('fatal')
  expect(http(429, { message: 'Rate limit reached for the context window tier.' }).kind).toBe('rate_limit')
})

const wait = (headers: unknown) => http(429, {}, headers).retryAfterMs

describe('Retry-After', () => {
  test('is read in milliseconds, in seconds and as a date', () => {
    expect(wait({ 'retry-after-ms': '250', 'retry-after': '9' })).toBe(250)
    expect(wait({ 'Retry-After': '2' })).toBe(2000)
    expect(wait(new Headers({ 'retry-after': '1.5' }))).toBe(1500)
    expect(wait({ 'retry-after': 'Tue, 01 Jan 2030 00:00:30 GMT' })).toBe(30_000)
    expect(wait({ 'retry-after': 'Mon, 31 Dec 2029 00:00:00 GMT' })).toBe(0)
  })

  test('in zero milliseconds does not override the seconds', () => {
    expect(wait({ 'retry-after-ms': '0', 'retry-after': '1' })).toBe(1000)
  })

  test.each(['soon', '-5', '1e999', '', '  '])('is ignored if it is %j', (value) => {
    expect(wait({ 'retry-after': value })).toBeNull()
  })
})

test.each([
  [
    'a mistyped host',
    { message: 'Connection error.', cause: { message: 'fetch failed', cause: { code: 'ENOTFOUND' } } },
    'connection',
  ],
  ['a refused connection', Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 'connection'],
  [
    'a closed socket',
    Object.assign(new TypeError('terminated'), { cause: { code: 'UND_ERR_SOCKET' } }),
    'connection',
  ],
  ['a browser without a network', new TypeError('Failed to fetch'), 'connection'],
  ['a body that breaks off in Deno', new TypeError('error reading a body from connection'), 'connection'],
  ['a server that Deno cannot reach', new TypeError('error sending request for url'), 'connection'],
  ['a timeout of the client', new Error('Request timed out.'), 'timeout'],
  ['a timeout signal', new DOMException('The operation timed out.', 'TimeoutError'), 'timeout'],
  ['headers that never arrived', { cause: { code: 'UND_ERR_HEADERS_TIMEOUT' } }, 'timeout'],
])('%s is transient', (_what, error, code) => {
  expect(toModelFailure(error, now)).toMatchObject({ kind: 'transient', code })
})

test('a rejected certificate is fatal', () => {
  expect(toModelFailure({ message: 'Connection error.', cause: { code: 'CERT_HAS_EXPIRED' } })).toMatchObject(
    {
      kind: 'fatal',
      code: 'CERT_HAS_EXPIRED',
    },
  )
})

test('a programming error is fatal, not a connection failure', () => {
  expect(toModelFailure(new TypeError("Cannot read properties of undefined (reading 'x')"))).toMatchObject({
    kind: 'fatal',
    code: 'unknown',
  })
})

test('a ModelError is passed through', () => {
  const failure = toModelFailure(new Error('x'))
  expect(toModelFailure(new ModelError(failure))).toEqual(failure)
})

test.each([
  ['FastAPI', { detail: 'Prompt exceeds max length' }],
  ['vLLM', { object: 'error', message: "This model's maximum context length is 10 tokens", code: 400 }],
  [
    'Gemini',
    [
      {
        error: {
          code: 400,
          message: 'The input token count (9) exceeds the maximum',
          status: 'INVALID_ARGUMENT',
        },
      },
    ],
  ],
])('the body of %s is understood', (_server, body) => {
  expect(toModelFailure({ status: 400, body, headers: {} }).kind).toBe('context_overflow')
})

test('messages are short, without web pages and without keys', () => {
  const key = 'sk-proj-abcdefghijklmnopqrstuvwxyz'
  expect(http(401, { message: `Incorrect API key provided: ${key}` }).message).not.toContain(key)
  expect(http(400, { message: 'x'.repeat(10_000) }).message.length).toBeLessThan(900)
  expect(toModelFailure({ status: 502, message: '502 <html>bad</html>', headers: {} }).message).not.toContain(
    '<html>',
  )
})

test('a connection failure is recognized eight causes deep', () => {
  const buried = (depth: number): object =>
    depth === 1 ? { code: 'ECONNRESET' } : { message: 'It failed.', cause: buried(depth - 1) }
  expect(toModelFailure(buried(8))).toMatchObject({ kind: 'transient' })
  expect(toModelFailure(buried(9))).toMatchObject({ kind: 'fatal' })
})

test('any thrown value becomes a failure', () => {
  const trap = new Proxy(
    {},
    {
      get: () => {
        throw new Error('trap')
      },
    },
  )
  const loop: { cause?: unknown } = {}
  loop.cause = loop
  for (const error of [trap, loop, null, undefined, 0, '', Symbol('x'), () => 0, Object.create(null)]) {
    expect(toModelFailure(error)).toMatchObject({ kind: 'fatal', message: expect.stringMatching(/./) })
  }
  fc.assert(
    fc.property(fc.anything(), (error) => {
      expect(toModelFailure(error, now)).toMatchObject({ partialText: '', message: expect.any(String) })
    }),
  )
})
