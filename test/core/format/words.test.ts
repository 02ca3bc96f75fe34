import * as fc from 'fast-check'
import { formatDuration, formatMoney, stripControls, shorten } from '../../../src/core/format/format-words.js'
import { unicodeText } from '../../support/unicode-text.js'

describe('untrusted text', () => {
  test('loses escape sequences and reordering marks, and keeps tabs and newlines', () => {
    expect(stripControls('\u001b[2Ja\u0007\tb\r\nc\rd\u009b31m\u202ee')).toBe('[2Ja\tb\ncd31me')
  })

  test('never sends a control character to the terminal', () => {
    fc.assert(
      fc.property(unicodeText(), (text) => {
        expect(stripControls(text)).not.toMatch(/[^\P{Cc}\t\n]|[\u202a-\u202e]/u)
      }),
    )
  })

  test('is truncated to a width on one line, never inside a letter', () => {
    expect(shorten('one\n  two   three', 40)).toBe('one two three')
    expect(shorten('abcdef', 4)).toBe('abc…')
    expect(shorten('😀😀😀😀', 3)).toBe('😀😀…')
    expect(shorten('x'.repeat(1_000_000), 5)).toBe('xxxx…')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 80 }), (text, width) => {
        const short = shorten(text, width)
        expect(Array.from(short).length).toBeLessThanOrEqual(width)
        expect(short).not.toMatch(/\n/)
      }),
    )
  })
})

test.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [1_000, '1.0 s'],
  [59_949, '1 min'],
  [59_960, '1 min'],
  [125_400, '2 min 5 s'],
  [720_000, '12 min'],
  [11_100_000, '3 h 5 min'],
  [-5, '0 ms'],
])('%d ms are shown as %s', (ms, shown) => {
  expect(formatDuration(ms)).toBe(shown)
})

test.each([
  [0, '$0.00'],
  [0.00001, '< $0.0001'],
  [0.0123, '$0.0123'],
  [1.5, '$1.50'],
  [null, 'unknown'],
])('a cost of %p is shown as %s', (usd, shown) => {
  expect(formatMoney(usd)).toBe(shown)
})
