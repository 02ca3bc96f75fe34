import * as fc from 'fast-check'
import { createPaint, getColumns } from '../../../src/core/format/format-words.js'
import { createTextFlow } from '../../../src/core/format/text-flow.js'

function show(pieces: readonly string[], { width = 40, color = false } = {}): string {
  const flow = createTextFlow({ width, paint: createPaint(color) })
  return pieces.map((piece) => flow.write(piece)).join('') + flow.end()
}

const answer = `# Expenses

The largest is the **team offsite**: see \`offsite.txt\`, which has three invoices.

| Expense | Total |
| --- | ---: |
| Team offsite | 3,851.70 |
| Laptops | 984.00 |

- one item whose text is longer than the line
- two

> a quote
1. first

\`\`\`
const x = 1   // code keeps its spaces, and it does not wrap
\`\`\`
---
The end`

const shown = `Expenses

The largest is the team offsite: see
offsite.txt, which has three invoices.

Expense          Total
────────────  ────────
Team offsite  3,851.70
Laptops         984.00

• one item whose text is longer than the
  line
• two

│ a quote
1. first

  const x = 1   // code keeps its spaces, and it does not wrap
────────────────────────────────────────
The end
`

describe('Markdown on a terminal', () => {
  test('is rendered, and its words wrap at the width', () => {
    expect(show([answer])).toBe(shown)
  })

  test('is the same for any split into pieces', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }), (sizes) => {
        const pieces: string[] = []
        for (let at = 0, n = 0; at < answer.length; n++) {
          const size = sizes[n % sizes.length] ?? 1
          pieces.push(answer.slice(at, at + size))
          at += size
        }
        expect(show(pieces)).toBe(shown)
      }),
    )
  })

  test('shows each word as soon as it is complete', () => {
    const flow = createTextFlow({ width: 40, paint: createPaint(false) })
    expect(['Hel', 'lo wor', 'ld', '\n'].map((piece) => flow.write(piece))).toEqual([
      '',
      'Hello',
      '',
      ' world\n',
    ])
  })

  test('marks bold text and code across words, and only there', () => {
    expect(show(['**a b** and `c`.'], { color: true })).toBe(
      '\u001b[1ma\u001b[22m \u001b[1mb\u001b[22m and \u001b[36mc\u001b[39m.\n',
    )
    expect(show(['2 ** 3, it`s 5**2 and ** alone'])).toBe('2 ** 3, it`s 5**2 and ** alone\n')
  })

  test('a table wider than the terminal becomes one line for each cell', () => {
    const wide = `| Name | What it is |\n| --- | --- |\n| one | ${'word '.repeat(10).trim()} |\n`
    expect(show([wide], { width: 40 })).toBe(
      'Name: one\nWhat it is: word word word word word\n  word word word word word\n',
    )
  })

  test('lines that only look like a table stay unchanged', () => {
    expect(show(['| a | b\n| c\n'])).toBe('| a | b\n| c\n')
  })

  test('wide characters take two columns', () => {
    expect([
      getColumns('ab'),
      getColumns('日本'),
      getColumns('e\u0301'),
      getColumns('\u001b[1mx\u001b[22m'),
    ]).toEqual([2, 4, 1, 1])
  })

  test('keeps every word of any text, and no line of short words is too long', () => {
    const word = fc.stringMatching(/^[a-z.,]{1,12}$/)
    const text = fc.array(fc.array(word).map((words) => words.join(' '))).map((lines) => lines.join('\n'))
    fc.assert(
      fc.property(text, fc.integer({ min: 12, max: 60 }), (written, width) => {
        const out = show([written], { width })
        expect(out.split(/\s+/).filter(Boolean)).toEqual(written.split(/\s+/).filter(Boolean))
        expect(Math.max(...out.split('\n').map(getColumns))).toBeLessThanOrEqual(width)
      }),
    )
  })
})
