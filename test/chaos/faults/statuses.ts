import { answered, json } from '../script.js'
import { failure, type Fault, raw } from './fault.js'

function limited(headers: Record<string, string>) {
  return json(failure('Slow down.', { code: 'rate_limit_exceeded' }), 429, headers)
}

export const statuses = {
  'status 500': () => json(failure('Internal error.'), 500),
  'status 502 with a page': raw(['<html><body>Bad Gateway</body></html>'], 'text/html', 502),
  'status 503 with nothing': raw([], undefined, 503),
  'status 529': () =>
    json({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 529),
  'status 408': () => json(failure('Timed out.'), 408),
  'status 409': () => json(failure('Conflict.'), 409),
  'status 429': () => limited({}),
  'status 429 with seconds': () => limited({ 'retry-after': '7' }),
  'status 429 with milliseconds': () => limited({ 'retry-after-ms': '250.5' }),
  'status 429 with a date': ({ world }) =>
    limited({ 'retry-after': new Date(world.now() + 9_000).toUTCString() }),
  'status 429 with nonsense': ({ world }) =>
    limited({ 'retry-after': world.pick(['soon', '-5', '1e999', '99999999999', 'NaN', '']) }),
  'no quota': () => json(failure('You exceeded your current quota.', { code: 'insufficient_quota' }), 429),
  'status 400': () => json(failure('The request is invalid.', { code: 'invalid_request' }), 400),
  'flagged content': () => json(failure('The content was flagged.', { code: 'content_filter' }), 400),
  'status 400 with junk': raw(['{"error": ['], undefined, 400),
  'status 400 with a list': () =>
    json([{ error: { code: 400, message: 'Bad.', status: 'INVALID_ARGUMENT' } }], 400),
  'status 401': () => json(failure('Incorrect API key provided.', { code: 'invalid_api_key' }), 401),
  'status 404': () => json({ detail: 'Not Found' }, 404),
  'status 413': raw(['too large'], 'text/plain', 413),
  'status 422': () => json({ detail: [{ loc: ['body', 'messages'], msg: 'bad', type: 'value_error' }] }, 422),
  'the context is too long': () =>
    json(
      failure("This model's maximum context length is 8 tokens.", { code: 'context_length_exceeded' }),
      400,
    ),
  'a redirect': raw([], 'text/html', 302, { location: '/elsewhere' }),
  'a redirect to nowhere': raw([], undefined, 307, { location: 'http://[' }),
  'status 204': () => ({ status: 204, body: null }),
  'a page instead of an answer': raw(['<!doctype html><title>Sign in</title>'], 'text/html'),
  'no content type': ({ text, stream }) => ({ body: answered({ text }, stream).body }),
  'a wrong content type': ({ text, stream }) => ({
    headers: { 'content-type': 'application/octet-stream' },
    body: answered({ text }, stream).body,
  }),
  'the other form': ({ text, stream }) => answered({ text }, !stream),
  'compressed nonsense': raw([Buffer.from([31, 139, 8, 0, 1, 2, 3])], undefined, 200, {
    'content-encoding': 'gzip',
  }),
} satisfies Record<string, Fault>
