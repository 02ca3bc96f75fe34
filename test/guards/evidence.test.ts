import * as fc from 'fast-check'
import { toEvidence, scrubEvidence } from '../../guards/lib/words.js'
import { formatArguments } from '../../guards/lib/fingerprint.js'
import { play, repeat } from './facts.js'
import { unicodeText } from '../support/unicode-text.js'

// Assembled here, so that secret scanners do not report them.
const key = ['sk', 'proj', 'A1b2C3d4'.repeat(6)].join('-')
const secrets: [kind: string, text: string, secret: string][] = [
  ['an API key', `using ${key} now`, key],
  ['an API key in JSON', JSON.stringify({ note: `first\n${key}` }), key],
  ['a GitHub token', `push with ${['ghp', 'x1'.repeat(18)].join('_')}.`, 'x1'.repeat(18)],
  ['an AWS key', `id ${['AK', 'IA', 'Q7'.repeat(8)].join('')}`, 'Q7'.repeat(8)],
  ['a Google key', `key=${['AI', 'za', 'Sy'.repeat(17)].join('')}`, 'Sy'.repeat(17)],
  ['a bearer token', 'Authorization: Bearer abc.def-123456', 'abc.def-123456'],
  ['a web token', ['eyJhbGciOi', 'eyJzdWIiOi', 'c2lnbmF0dXJl'].join('.'), 'c2lnbmF0dXJl'],
  ['a private key', '-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----', 'MIIEow'],
  ['a truncated private key', '-----BEGIN PRIVATE KEY-----\nMIIEow', 'MIIEow'],
  ['a password in a URL', 'postgres://app:hunter22@db.example/main', 'hunter22'],
  ['a password with a colon in a URL', 'redis://:hun:ter22@db.example', 'ter22'],
  ['a password in JSON', '{"user":"me","password":"correct \\"horse\\" battery"}', 'battery'],
  ['a password in JSON in JSON', JSON.stringify({ body: '{"password":"correct horse"}' }), 'horse'],
  ['a key in a query', 'https://api.example/v1?api_key=abcd1234&page=2', 'abcd1234'],
  ['a secret in an environment', 'CLIENT_SECRET=abcd1234 node run', 'abcd1234'],
]

describe('evidence contains no secrets', () => {
  test.each(secrets)('%s', (_, text, secret) => {
    expect(text).toContain(secret)
    expect(toEvidence(text)).not.toContain(secret)
    expect(toEvidence(text)).toContain('[redacted]')
  })

  test.each(secrets)('%s, for any end of the shown arguments', (_, text, secret) => {
    for (let start = 200 - text.length; start < 200; start += 1) {
      const decisions = toEvidence(formatArguments(`${'.'.repeat(start - 1)} ${text}${' '.repeat(200)}`))
      // Nonidentifying letters may remain, but not the secret itself.
      expect(decisions).not.toContain(secret.slice(0, 10))
    }
  })

  test('and neither do the messages and the state of a guard', () => {
    const { messages, evidence: seen, state } = play(repeat(6, { args: { token: key }, readOnly: false }))
    expect(JSON.stringify([messages, seen, state])).not.toContain(key)
  })
})

describe('evidence keeps text that is not secret', () => {
  test.each([
    'read_file({"path":"/home/me/task-management-for-everyone.md"})',
    '{"max_tokens":4096,"tokens":12}',
    'https://example.com:8080/path?x=1',
    'mail me@example.com about the secretary',
    'the risk-assessment-of-all-things',
  ])('%s', (text) => {
    expect(scrubEvidence(text)).toBe(text)
  })
})

test('evidence is at most 600 characters', () => {
  expect(toEvidence('x'.repeat(600))).toHaveLength(600)
  expect(toEvidence('x'.repeat(601))).toHaveLength(600)
  fc.assert(
    fc.property(unicodeText({ maxLength: 2000 }), (text) => {
      expect(toEvidence(text).length).toBeLessThanOrEqual(600)
    }),
  )
})

test('a private key that starts before and ends after the shown part stays hidden', () => {
  const decisions = toEvidence(
    `see -----BEGIN PRIVATE KEY-----${'MIIE'.repeat(5000)}-----END PRIVATE KEY-----`,
  )
  expect(decisions).toBe('see [redacted]')
})

test.each([
  'sk-',
  'eyJaaaaa-',
  'eyJaaaaaa.',
  '://',
  '://a:',
  ':',
  'password=',
  'password="',
  '\\"',
  'bearer ',
  'BEGIN ',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN ',
  'api_key\\"',
  'a',
  ' ',
  'a:a@',
  '…',
  'token: ',
  'token:\\"x',
])('scrubbing takes linear time for %j', (piece) => {
  // A pattern with a lookback from each position would take minutes on this text.
  const text = piece.repeat(Math.ceil(300_000 / piece.length))
  expect(typeof scrubEvidence(text)).toBe('string')
})
