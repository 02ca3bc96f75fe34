import * as fc from 'fast-check'
import { digestOutcome } from '../../guards/lib/outcome-digest.js'
import { unicodeText } from '../support/unicode-text.js'

const outcomeDigest = (text: string): string => digestOutcome(text).digest

describe('volatile values make no difference', () => {
  test.each([
    ['a clock', 'at 12:30:05 done', 'at 9:31:59 done'],
    ['a clock before a letter', '2026-01-02 12:30:05 a', '2026-01-02 09:31:59 a'],
    ['a clock before a number', '2026-01-02 12:30:05 7', '2026-01-02 09:31:59 7'],
    ['a clock with a fraction and a zone', 'at 03:04:05.123Z x', 'at 13:14:15,9+02:00 x'],
    ['a clock with a short zone', 'at 03:04:05+02 x', 'at 13:14:15-0700 x'],
    ['a clock after a day', 'at 2026-01-02T03:04:05.123456Z x', 'at 2026-01-02T13:14:15 x'],
    ['a log line', '2026-01-02 03:04:05,123 INFO', '2026-01-02 03:04:06,999 INFO'],
    ['the clock of a mail', 'Mon, 02 Jan 2026 15:04:05 GMT', 'Mon, 02 Jan 2026 16:04:05 GMT'],
    ['the clock of a listing', '-rw Jan  2 15:04 f', '-rw Jan  2 15:14 f'],
    ['an epoch', 'at=1700000000', 'at=1700045678'],
    ['an epoch in milliseconds', 'at=1700000000123', 'at=1700045678999'],
    ['an epoch with a fraction', 'at=1700000000.5', 'at=1700045678.25'],
    ['a duration', 'took 1.23s', 'took 45.6s'],
    ['a duration in other units', 'in 3ms, 4us, 5ns, 6µs', 'in 33ms, 44us, 55ns, 66µs'],
    ['a duration in the other µ', 'in 6μs', 'in 66μs'],
    ['a duration with a space', 'took 12 ms', 'took 9 ms'],
    ['a duration in words', '5 minutes ago', '13 minutes ago'],
    ['a duration of several parts', 'real 0m1.234s', 'real 12m0.9s'],
    ['a duration of hours and minutes', 'in 2h30m', 'in 1h5m'],
    ['a duration of long units', 'in 1min30s', 'in 2min5s'],
    ['an age', 'pod 5m Running', 'pod 13m Running'],
    ['the times of a progress bar', '[00:12<00:30, it]', '[00:15<00:27, it]'],
    ['a UUID', 'id 123e4567-e89b-12d3-a456-426614174000', 'id 99999999-e89b-12d3-a456-426614174abc'],
    [
      'a UUID that starts with letters',
      'id abcdefab-e89b-12d3-a456-426614174000',
      'id bcdefabc-e89b-12d3-a456-426614174abc',
    ],
    ['an address', '<obj at 0x7f1234>', '<obj at 0x7fffff00>'],
    ['a long hexadecimal word', 'commit deadbeef1234aa', 'commit 00aa11bb22cc33'],
    ['the id of a request', 'request id: abc-12', 'request id: zzz'],
    ['the id of a request in JSON', '{"requestId":"abc"}', '{"requestId":"q-9.x"}'],
    ['the id of a trace in a header', 'x-trace-id=1', 'x-trace-id=2'],
    ['the id of a span in escaped JSON', '{\\"span_id\\": \\"a\\"}', '{\\"span_id\\": \\"b\\"}'],
    ['a process', 'pid 1234 (pid: 7)', 'pid 99 (pid: 88)'],
    ['a process of Node', '(node:123) Warning', '(node:45) Warning'],
    ['a name under /tmp', 'wrote /tmp/a1b2/x.py.', 'wrote /tmp/zzz.'],
    [
      'a line of bash',
      '/bin/bash: line 3: jq: command not found',
      '/bin/bash: line 12: jq: command not found',
    ],
    ['a line of a login shell', '-bash: line 1: syntax error', '-bash: line 7: syntax error'],
    ['a line of dash', 'sh: 1: jq: not found', 'sh: 4: jq: not found'],
    ['a line of zsh', 'zsh:1: command not found: jq', 'zsh:2: command not found: jq'],
  ])('%s', (_, one, other) => {
    expect(outcomeDigest(one)).toBe(outcomeDigest(other))
    const long = (text: string) => `${'x'.repeat(40_000)}\n${text}\n${'y'.repeat(2_000)}`
    expect(outcomeDigest(long(one))).toBe(outcomeDigest(long(other)))
  })
})

describe('any other value makes a difference, because a number is progress', () => {
  test.each([
    ['1 failed', '2 failed'],
    ['12%', '13%'],
    ['a.ts:10:15: error', 'a.ts:12:15: error'],
    ['5 files', '6 files'],
    ['5 models', '6 models'],
    ['5 h2 headings', '6 h2 headings'],
    ['v1.2.3', 'v1.2.4'],
    ['5 KB', '6 KB'],
    ['5mb', '6mb'],
    ['1,234', '1,235'],
    ['0.123', '0.124'],
    ['10/20', '11/20'],
    ['1-2-3', '1-2-4'],
    ['1:2', '1:3'],
    ['120:30', '121:30'],
    ['12:75', '12:76'],
    ['message id: 5', 'message id: 6'],
    ['push: 5: x', 'push: 6: x'],
    ['run.sh: line 5: x', 'run.sh: line 6: x'],
    ['10x5 pixels', '10x6 pixels'],
    ['the price is $5m', 'the price is $6m'],
    ['the flight is on 2026-01-02', 'the flight is on 2026-01-03'],
    ['the flight is on 03/01/2026', 'the flight is on 03/02/2026'],
    ['Mon, 02 Jan 2026 15:04:05 GMT', 'Tue, 03 Jan 2026 15:04:05 GMT'],
    ['due=1700000000', 'due=1700100000'],
    ['delivered in 2d', 'delivered in 3d'],
    ['2026-01-02T10:30:00Z', '2026-01-02T10:45:00Z'],
    ['{"slot": "2026-01-02T10:30:00Z"}', '{"slot": "2026-01-02T10:45:00Z"}'],
    ['10:30', '10:45'],
    ['12 min', '11 min'],
    ['12:30:05', '12:30:06'],
    ['123e4567-e89b-12d3-a456-426614174000', '99999999-e89b-12d3-a456-426614174abc'],
    ['order id 12', 'order id 13'],
    ['request 12', 'request 13'],
    ['deadbeef', 'deadbeee'],
    ['abcdefabcdef', 'abcdefabcdee'],
    ['123456789012', '123456789013'],
    ['2700000000', '2700000001'],
    ['12345678901', '12345678902'],
    ['0xyz', '0xyy'],
    ['may 5', 'may 6'],
    ['Sunflower 5', 'Sunflower 6'],
    ['/tmp', '/tmq'],
    ['/home/a', '/home/b'],
    ['x1', 'x2'],
    ['', ' '],
    ['a\nb', 'a b'],
    ['café', 'cafe'],
    ['😀', '😁'],
  ])('%j is not %j', (one, other) => {
    expect(outcomeDigest(one)).not.toBe(outcomeDigest(other))
  })

  test('a long text counts at both ends, and not in between', () => {
    const text = (head: string, middle: string, tail: string) =>
      `${head}${'a'.repeat(9_000)}${middle}${'b'.repeat(9_000)}${tail}`
    expect(outcomeDigest(text('1', 'x', '2'))).toBe(outcomeDigest(text('1', 'y', '2')))
    expect(outcomeDigest(text('1', 'x', '2'))).not.toBe(outcomeDigest(text('3', 'x', '2')))
    expect(outcomeDigest(text('1', 'x', '2'))).not.toBe(outcomeDigest(text('1', 'x', '4')))
  })
})

describe('for any text', () => {
  /** The differences that outputs are compared by, and the ignored differences: two of each kind. */
  const fixed = fc.constantFrom(
    '12',
    'files',
    'v1.2.3',
    ', ',
    '\n',
    'ok: ',
    '…',
    '404',
    'The',
    '(a) ',
    '“é” ',
  )
  const volatile = fc.constantFrom<[string, string]>(
    ['10:05:07', '9:15:00'],
    ['2026-03-01T10:00:00Z', '2026-03-01T23:59:59'],
    ['1712345678', '1712300000.25'],
    ['12ms', '3 seconds'],
    ['0x7f1234', '0x7fffff00'],
    ['123e4567-e89b-12d3-a456-426614174000', 'abcdefab-e89b-12d3-a456-426614174abc'],
    ['deadbeef1234aa', '00aa11bb22cc33'],
    ['request id: a', 'request id: b-2'],
    ['pid 4711', 'pid 7'],
    ['/tmp/a/b', '/tmp/c'],
  )
  // A bar on both sides separates the piece from the surrounding text.
  const pieces = fc.array(
    fc.oneof(
      fixed.map((text): [string, string] => [text, text]),
      volatile,
    ),
    { maxLength: 40 },
  )
  const written = (all: readonly (readonly [string, string])[], side: 0 | 1) =>
    `The result: ${all.map((piece) => `| ${piece[side]} |`).join('')}`

  test('volatile values make no difference at any position', () => {
    fc.assert(
      fc.property(pieces, (all) => {
        expect(outcomeDigest(written(all, 0))).toBe(outcomeDigest(written(all, 1)))
      }),
    )
  })

  test('another number makes a difference, in any context', () => {
    fc.assert(
      fc.property(pieces, pieces, fc.nat(99_999), fc.nat(99_999), (before, after, a, b) => {
        const text = (number: number) => `${written(before, 0)}| ${number} of it |${written(after, 1)}`
        if (a !== b) expect(outcomeDigest(text(a))).not.toBe(outcomeDigest(text(b)))
      }),
    )
  })
})

describe('the shape of an output', () => {
  const shape = (text: string) => digestOutcome(text).shape

  test('has neither its digits nor its volatile values', () => {
    expect(shape('attempt 9 of 10 at 10:05:07')).toBe(shape('attempt 10 of 1 at 11:06:08'))
    expect(shape('attempt 9')).not.toBe(shape('attempts 9'))
    expect(shape('9 %')).not.toBe(shape('9 $'))
  })

  test('is short, for any text', () => {
    fc.assert(
      fc.property(unicodeText({ maxLength: 60 }), (text) => {
        expect(shape(text)).toMatch(/^[\da-z]{1,5}$/)
      }),
    )
  })
})

// Stored sessions contain these digests.
test.each([
  ['', 'ztp8fwi90'],
  ['ok', 'scx0avcnp'],
  ['3 of 40 files were read at 10:05:07', '1rry0dhbi'],
  ['Mon, 02 Mar 2026 15:04:05 GMT took 1.5s, pid 4711', '16c0bjlox'],
  ['request id: abc-12 wrote /tmp/x/y, café 😀', '1tjxjit1t'],
  [`${'a line of text\n'.repeat(2000)}the end`, '1fzjzfb12'],
])('the digest of %j never changes between versions', (text, digest) => {
  expect(outcomeDigest(text)).toBe(digest)
})

test('any text has a short digest that depends only on the text', () => {
  const piece = fc.constantFrom(
    '12:30',
    '2026-01-02T',
    '1m',
    ' ',
    'id',
    ': ',
    '0x',
    '-',
    'Jan ',
    '/tmp/',
    '1.',
    'pid',
    '\u00b5s',
    '\ud800',
  )
  const any = fc.oneof(
    unicodeText({ maxLength: 60 }),
    fc.array(piece, { maxLength: 30 }).map((all) => all.join('')),
  )
  fc.assert(
    fc.property(any, any, (text, before) => {
      const digest = outcomeDigest(text)
      expect(digest).toMatch(/^[\da-z]{2,9}$/)
      outcomeDigest(`${before} 12:30 ${before}`)
      expect(outcomeDigest(text)).toBe(digest)
    }),
  )
})
