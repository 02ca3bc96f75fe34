import fc from 'fast-check'
import { listInner, parseMarkdown, readText } from '../../src/studio/client/parse-markdown.js'
import { unicodeText } from '../support/unicode-text.js'
import { sampled } from '../support/extent.js'

type Parts = NonNullable<ReturnType<typeof parseMarkdown>>

const listTypes = (tokens: Parts): string[] =>
  tokens.flatMap((token) => [token.type, ...listTypes(listInner(token))])

const joined = (text: string): string => (parseMarkdown(text) ?? []).map(readText).join('')

const sample = `# Title

Some **strong** and *soft* words, \`code\` and ~~old~~ ones: https://example.com/a and [a page](https://example.com/b).

- one
  - inner
- [x] done

1. first
2. second

> quoted

| a | b |
| --- | --- |
| 1 | two |

\`\`\`js
const x = 1 // *no* **Markdown**
\`\`\`

---
![a heron](data:image/png;base64,AAAA)
`

test('parses the Markdown that models write without losing a word', () => {
  const parts = parseMarkdown(sample)
  expect(parts).not.toBeNull()
  expect(new Set(listTypes(parts ?? [])).size).toBeGreaterThan(16)
  expect(listTypes(parts ?? [])).not.toContain('as-written')
  for (const word of sample.match(/\p{L}+/gu) ?? []) expect(joined(sample)).toContain(word)
})

test.each([
  'It costs $5, not $6, and x_i * y_i is no *emphasis',
  'array[0] and map[key] and [an open one',
  '**never closed, and `code that neither is',
  'A link [without end](https://example.com/and then more words\nand lines',
  '* one\n* two **and',
  'read_file and write_file',
])('keeps markers that format nothing: %s', (text) => {
  const expected = text.replaceAll(/^\* |\n\* /g, '')
  expect(joined(text).replaceAll(/\s/g, '')).toBe(expected.replaceAll(/\s/g, ''))
})

test('keeps every letter: a block that the parser would truncate is shown as source', () => {
  const signs = fc.constantFrom(
    ...'*_`~[](){}<>!#|$\\-+>.:\n \t'.split(''),
    '**',
    '```',
    '](',
    '![',
    '- ',
    '1. ',
    '> ',
    '    ',
    'http://',
    '<br>',
    '[x] ',
    '\r\n',
    'a',
    'word',
    'é',
    '😀',
    '\u202e',
  )
  const texts = fc.oneof(
    fc.array(signs, { maxLength: 60 }).map((all) => all.join('')),
    unicodeText(),
  )
  fc.assert(
    fc.property(texts, (text) => {
      const parts = parseMarkdown(text)
      if (parts === null) return
      const letters = (of: string): string[] => Array.from(of.replaceAll(/\P{L}+/gu, ''))
      const shown = parts.map(readText).join('')
      const lost = letters(text).filter((letter) => !shown.includes(letter))
      expect(lost).toEqual([])
    }),
    { numRuns: sampled(500) },
  )
})

test.each([
  ['quotes', '>'],
  ['lists', '- '],
  ['brackets', '['],
  ['stars', '*a '],
  ['pictures', '![a]('],
  ['pipes', '|'],
])('bounds the nesting of a text made of %s', (_, sign) => {
  const parts = parseMarkdown(sign.repeat(6_000 / sign.length))
  const measure = (tokens: Parts): number =>
    1 + Math.max(0, ...tokens.map((token) => measure(listInner(token))))
  expect(parts === null || measure(parts) < 30).toBe(true)
})
