import fc from 'fast-check'
import { type MarkdownNode, parseMarkdown } from '../../src/studio/client/parse-markdown.js'
import { unicodeText } from '../support/unicode-text.js'
import { sampled } from '../support/extent.js'

type Parts = NonNullable<ReturnType<typeof parseMarkdown>>

/** All that a page shows of it, and the addresses. */
function listTexts(parts: Parts): string[] {
  return parts.flatMap((part) =>
    typeof part === 'string'
      ? [part]
      : [part.language ?? '', ...listTexts(part.children), part.address ?? '', part.isChecked ? 'x' : ''],
  )
}

const joined = (text: string): string => listTexts(parseMarkdown(text) ?? []).join('')

function listTokens(parts: Parts): MarkdownNode['token'][] {
  return parts.flatMap((part) => (typeof part === 'string' ? [] : [part.token, ...listTokens(part.children)]))
}

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

test('what models write is read as Markdown, and not one word of it is lost', () => {
  const parts = parseMarkdown(sample)
  expect(parts).not.toBeNull()
  expect(new Set(listTokens(parts ?? [])).size).toBeGreaterThan(18)
  for (const word of sample.match(/\p{L}+/gu) ?? []) expect(joined(sample)).toContain(word)
})

test.each([
  'It costs $5, not $6, and x_i * y_i is no *emphasis',
  'array[0] and map[key] and [an open one',
  '**never closed, and `code that neither is',
  'A link [without end](https://example.com/and then more words\nand lines',
  '* one\n* two **and',
  'read_file and write_file',
])('signs that mean nothing stay: %s', (text) => {
  const meant = text.replaceAll(/^\* |\n\* /g, '')
  expect(joined(text).replaceAll(/\s/g, '')).toBe(meant.replaceAll(/\s/g, ''))
})

test('no letter of any text is lost: what the parser would swallow is shown as it is written', () => {
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
      // `<br>` is a line, and a link to an address that is its text has it twice.
      const shown = listTexts(parts).join('')
      const lost = letters(text.replaceAll(/<br ?\/?>/g, '')).filter((letter) => !shown.includes(letter))
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
])('a text of nothing but %s ends, and is not nested without end', (_, sign) => {
  const parts = parseMarkdown(sign.repeat(6_000 / sign.length))
  const measure = (of: Parts): number =>
    1 + Math.max(0, ...of.map((part) => (typeof part === 'string' ? 0 : measure(part.children))))
  expect(parts === null || measure(parts) < 30).toBe(true)
})
