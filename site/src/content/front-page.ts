import { existsSync, readFileSync } from 'node:fs'
import { rowsOf, sectionOf } from './markdown.ts'
import { root } from './package.ts'

const read = (file: string): string => readFileSync(root + file, 'utf8')

export const summary =
  'For TypeScript developers who run LLM agents in production: the agent loop as one explicit state machine, so that every ' +
  'run stops at its limits, survives a crash and can be inspected.'

/** The front page below its first screen, with parts of the README and of the measurements. */
export function frontPage(): string {
  const readme = read('README.md')
  return [
    '# Statewright',
    '## What it guarantees',
    sectionOf(readme, 'What it guarantees'),
    listCounts(),
    '## Compared with other libraries',
    compare(),
    '## When to use something else',
    sectionOf(readme, 'When to use something else'),
  ].join('\n\n')
}

/** The evidence for the guarantees, as counts from generated files. */
function listCounts(): string {
  const { states, transitions, explored } = JSON.parse(read('visualizations/agent.coverage.json')) as {
    states: { reached: boolean }[]
    transitions: { taken: number }[]
    explored: { states: number; events: number }
  }
  const taken = transitions.filter((one) => one.taken > 0).length
  const rows = [
    [taken, `of ${transitions.length} transitions of the chart that generated tests take on the live agent`],
    [states.filter(({ reached }) => reached).length, `of ${states.length} states that they reach`],
    [explored.states, 'reachable configurations in which the rules are checked'],
  ] as const
  const table = rows.map(([count, what]) => `| ${count.toLocaleString('en')} | ${what} |`)
  const more = existsSync(`${root}docs/guarantees.md`)
    ? '\n\n[Every guarantee with its tests](docs/guarantees.md).'
    : ''
  return `| count | of what |\n| ---: | --- |\n${table.join('\n')}${more}`
}

/** The first table of the measurements, and of the conformance suite if it exists. */
function compare(): string {
  const { text, notes } = measuredPeers(read('docs/performance.md'))
  return [
    text,
    `${notes} [How it is measured, and where it loses](docs/performance.md).`,
    'What the loops do with odd streams, truncated answers, cancels, limits and faults, by the cases of the conformance suite:',
    countedCases(read('docs/conformance.md')),
    'Which library does what, case by case, and where another one does better: [conformance](docs/conformance.md).',
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
  if (counts.length === 0) throw new Error('docs/conformance.md has no table "The libraries".')
  return [
    '| Library | Version | pass | fail | not claimed |',
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
