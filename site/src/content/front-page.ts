import { existsSync, readFileSync } from 'node:fs'
import { rowsOf, sectionOf } from './markdown.ts'
import { root } from './package.ts'

const read = (file: string): string => readFileSync(root + file, 'utf8')

export const summary =
  'A TypeScript library that runs each LLM agent as an explicit state machine. Every run stops at its limits, ' +
  'survives crashes and can be inspected.'

/** The front page below the first screen, with excerpts from the README and the measurements. */
export function frontPage(): string {
  const readme = read('README.md')
  return [
    '# Statewright',
    '## What it guarantees',
    sectionOf(readme, 'What it guarantees'),
    listCounts(),
    '## Make your own machine durable',
    showDurable(),
    '## Compared with other libraries',
    compare(),
    '## When to use something else',
    sectionOf(readme, 'When to use something else'),
  ].join('\n\n')
}

/** The shortest program on the embedding page. */
function showDurable(): string {
  const [program] = /```ts\n[^]*?\n```/.exec(read('docs/embedding.md')) ?? []
  if (program === undefined) throw new Error('docs/embedding.md has no program.')
  return [
    'Write a workflow, such as a claim or an order, as an XState machine whose states involve agents and people. `durable` stores each ' +
      'event before it takes effect, so any process can continue after a crash:',
    program,
    'Timers survive restarts, a payment with an unknown outcome is not repeated, and a stored session can become a test. Read [how to embed, persist, ' +
      'watch and test your machine](docs/embedding.md).',
  ].join('\n\n')
}

/** The evidence for the guarantees, as counts from generated files. */
function listCounts(): string {
  const { states, transitions, explored } = JSON.parse(read('visualizations/agent.coverage.json')) as {
    states: { reached: boolean }[]
    transitions: { count: number }[]
    explored: { states: number; events: number }
  }
  const covered = transitions.filter((one) => one.count > 0).length
  const rows = [
    [
      covered,
      `of ${transitions.length} transitions of the chart are taken by generated tests on the live agent`,
    ],
    [states.filter(({ reached }) => reached).length, `of ${states.length} states are reached by these tests`],
    [explored.states, 'reachable configurations are checked against the rules'],
  ] as const
  const table = rows.map(([count, what]) => `| ${count.toLocaleString('en')} | ${what} |`)
  const more = existsSync(`${root}docs/guarantees.md`)
    ? '\n\nThe [guarantees page](docs/guarantees.md) lists every guarantee with its tests.'
    : ''
  return `| Count | Evidence |\n| ---: | --- |\n${table.join('\n')}${more}`
}

/** The first table of the measurements, and of the conformance suite if it exists. */
function compare(): string {
  const { text, notes } = measuredPeers(read('docs/performance.md'))
  return [
    text,
    `${notes} The [performance page](docs/performance.md) describes the measurements, and lists the cases where Statewright is slower.`,
    'The conformance suite tests unusual streams, truncated answers, cancellation, limits and faults. The results are:',
    countedCases(read('docs/conformance.md')),
    'The [conformance page](docs/conformance.md) lists every case, including those where another library does better.',
  ].join('\n\n')
}

/** The number of passed cases per library, in its documented variant. */
function countedCases(page: string): string {
  const [, table = ''] = /\n## The libraries\n([^]*?)\n## /.exec(page) ?? []
  const rows = rowsOf(table).slice(1)
  const counts = rows.flatMap(([title, version], at) => {
    const [, , , ...counted] = rows[at + 1] ?? []
    return title ? [`| ${title} | ${version} | ${counted.join(' | ')} |`] : []
  })
  if (counts.length === 0) throw new Error('docs/conformance.md does not contain the table "The libraries".')
  return [
    '| Library | Version | Passed | Failed | Not claimed |',
    '| --- | --- | ---: | ---: | ---: |',
    ...counts,
  ].join('\n')
}

function measuredPeers(performance: string): { text: string; notes: string } {
  const [, block = ''] = /<!-- bench:peers -->\n([^]*?)<!-- \/bench:peers -->/.exec(performance) ?? []
  const [text = ''] = block.split('\nThe absolute medians:')
  const notes = block.trim().split('\n').at(-1) ?? ''
  return { text: text.trim(), notes }
}
