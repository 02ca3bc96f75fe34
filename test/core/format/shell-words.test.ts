import * as fc from 'fast-check'
import { quoteShellWord, splitShellWords } from '../../../src/core/format/shell-words.js'

test('a shell reads a quoted word unchanged', () => {
  const text = fc
    .string({ unit: 'grapheme' })
    .filter((word) => !/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(word))
  fc.assert(
    fc.property(text, (word) => {
      expect(splitShellWords(quoteShellWord(word))).toEqual([word])
    }),
  )
})

test.each(['a', './tools.mjs', 'file:/x', 'a=b', 'https://host/v1'])('%s needs no quotes', (word) => {
  expect(quoteShellWord(word)).toBe(word)
})

test('control characters are written as escapes', () => {
  expect(quoteShellWord("it's \u001b[2J")).toBe(String.raw`$'it\'s \u001b[2J'`)
})
