import * as fc from 'fast-check'
import { classifyToolError, ToolError } from '../../../src/core/tools/tool-error.js'
import { hostile } from './hostile.js'

const kindOf = (error: unknown) => classifyToolError(error).kind

test.each(['policy_denied', 'transient', 'failed'] as const)(
  'A ToolError of kind %s keeps its kind',
  (kind) => {
    const error = new ToolError(kind, 'the connection was refused')
    expect(error).toMatchObject({ name: 'ToolError', kind, code: kind })
    expect(classifyToolError(error)).toEqual({ kind, message: 'the connection was refused' })
  },
)

test('A ToolError with an unknown kind counts as failed', () => {
  expect(new ToolError('odd' as 'failed', 'x').kind).toBe('failed')
  expect(kindOf({ name: 'ToolError', kind: 'odd', message: 'x' })).toBe('failed')
})

test('A ToolError of another copy of the package counts', () => {
  expect(kindOf({ name: 'ToolError', kind: 'policy_denied', message: 'no' })).toBe('policy_denied')
})

test.each(['ETIMEDOUT', 'ECONNRESET', 'ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])(
  'The code %s is transient, also in a cause',
  (code) => {
    expect(kindOf(Object.assign(new Error('x'), { code }))).toBe('transient')
    expect(kindOf(new TypeError('fetch failed', { cause: Object.assign(new Error('y'), { code }) }))).toBe(
      'transient',
    )
  },
)

test.each([
  'HTTP 429 Too Many Requests',
  'Request failed with status code 429',
  'Service Unavailable',
  'The server is temporarily unavailable',
  'Gateway Timeout',
  '502 Bad Gateway',
  'connection aborted',
  'dns error: failed to lookup address information',
  'Temporary failure in name resolution',
])('The message %j is transient', (message) => {
  expect(kindOf(new Error(message))).toBe('transient')
})

test.each(['Room 429 is taken', 'The service of this member is available'])(
  'The message %j is a failure',
  (message) => {
    expect(kindOf(new Error(message))).toBe('failed')
  },
)

test.each(['ENOENT', 'EACCES', 'UND_ERR_INVALID_ARG', 'toString', 14])('The code %s is a failure', (code) => {
  expect(kindOf(Object.assign(new Error('x'), { code }))).toBe('failed')
})

test.each([
  [408, 'transient'],
  [429, 'transient'],
  [502, 'transient'],
  [503, 'transient'],
  [504, 'transient'],
  [400, 'failed'],
  [401, 'failed'],
  [403, 'failed'],
  [404, 'failed'],
  [500, 'failed'],
])('The HTTP status %d is %s, in any property', (status, kind) => {
  expect(kindOf(Object.assign(new Error('x'), { status }))).toBe(kind)
  expect(kindOf({ message: 'x', statusCode: status })).toBe(kind)
  expect(kindOf({ message: 'x', response: { status } })).toBe(kind)
})

test('A client error status outweighs the message, and a code outweighs a status', () => {
  expect(kindOf({ status: 400, message: 'the field timed out is unknown' })).toBe('failed')
  expect(kindOf({ status: 400, code: 'ECONNRESET', message: 'x' })).toBe('transient')
  expect(kindOf({ status: 500, message: 'upstream timed out' })).toBe('transient')
})

test('Time limits that a tool sets itself are transient', async () => {
  expect(kindOf(new DOMException('x', 'TimeoutError'))).toBe('transient')
  expect(kindOf(AbortSignal.abort().reason)).toBe('transient')
})

test.each([
  'The request timed out',
  'Deadline exceeded',
  'Connection reset by peer',
  'CONNECTION REFUSED',
  'the connection was closed',
  'host unreachable',
  'DNS lookup failed',
  'Rate limit reached',
  'you are rate-limited',
  'HTTP 502',
  'status=503',
  'got 504.',
  'connect ECONNREFUSED 127.0.0.1:80',
  'timeout of 5000ms exceeded',
  'Timeout exceeded',
  'Timeout 30000ms exceeded.',
  'Navigation timeout of 30000 ms exceeded',
  'exceeded the timeout of 30 s',
  'connect timeout',
  'connection timeout expired',
  'read timeout',
  'Request Timeout',
  'request time-out',
  'upstream request timeout',
  'i/o timeout',
  'timeout after 30 seconds',
  'timeout while waiting for the lock',
  'Lock wait timeout exceeded; try restarting transaction',
  'canceling statement due to statement timeout',
  'The operation was aborted due to timeout',
  'net/http: request canceled (Client.Timeout exceeded while awaiting headers)',
  'DEADLINE_EXCEEDED',
  'context deadline exceeded',
  'the request times out',
  'TimeoutError',
  'Timeout',
  'The server took too long to respond',
  'no response within 30 s',
  'did not respond in time',
  'socket hang up',
  'RATE_LIMIT_EXCEEDED',
  'Retry-After: 20',
  'Please retry after 20 seconds.',
  'Try again later.',
  'Error 429',
  '429',
  '429: slow down',
])('The message of %j is transient', (message) => {
  expect(kindOf(new Error(message))).toBe('transient')
  expect(kindOf(message)).toBe('transient')
})

test.each([
  '1502 rows',
  '5020',
  'cost 0.503',
  '503.5 ms',
  '$504',
  'no such file',
  'pirate limit',
  'adns',
  'x502',
  'invalid timeout',
  "unknown option '--timeout'",
  'timeout must be a number',
  'Timeout value is missing',
  "the property 'timeout' is required",
  'setTimeout is not defined',
  'TypeError: timeout is not a function',
  'config.timeout = 5 is not allowed',
  'the room is 429',
])('The message of %j is a failure', (message) => {
  expect(kindOf(new Error(message))).toBe('failed')
})

test('The message includes that of the cause once', () => {
  const cause = new Error('connect ECONNREFUSED 127.0.0.1:80')
  expect(classifyToolError(new TypeError('fetch failed', { cause })).message).toBe(
    'fetch failed: connect ECONNREFUSED 127.0.0.1:80',
  )
  expect(classifyToolError(new Error(`query: ${cause.message}`, { cause })).message).toBe(
    `query: ${cause.message}`,
  )
})

test.each([
  [undefined, 'undefined was thrown'],
  [null, 'null was thrown'],
  [7, '7 was thrown'],
  ['', 'an empty string was thrown'],
  ['plain words', 'plain words'],
  [{ a: 1 }, '{"a":1} was thrown'],
  [new RangeError(''), 'RangeError'],
  [Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
  [Object.freeze(new Error('frozen')), 'frozen'],
])('A thrown %p is described', (thrown, message) => {
  expect(classifyToolError(thrown).message).toBe(message)
})

test('A cyclic cause ends', () => {
  const error = new Error('round')
  error.cause = error
  expect(classifyToolError(error)).toEqual({ kind: 'failed', message: 'round' })
})

test('Any thrown value gets a kind and a message', () => {
  fc.assert(
    fc.property(hostile, (make) => {
      const { kind, message } = classifyToolError(make())
      expect(['policy_denied', 'transient', 'failed']).toContain(kind)
      expect(message).not.toBe('')
      expect(typeof message).toBe('string')
    }),
  )
})
