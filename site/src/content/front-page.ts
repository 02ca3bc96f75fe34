import { existsSync, readFileSync } from 'node:fs'
import { rowsOf, sectionOf } from './markdown.ts'
import { root, site } from './package.ts'

const read = (file: string): string => readFileSync(root + file, 'utf8')

/** The front page, with parts of the README and of the measurements, and a section on alternatives. */
export function frontPage(): string {
  const readme = read('README.md')
  const [program = ''] = /^```sh\nnpm install[^]*?```ts\n[^]*?^```$/m.exec(readme) ?? []
  const film = /^!\[.*film.*$/m.exec(readme)?.[0] ?? ''
  return [
    '# Statewright',
    film,
    program,
    '## What it guarantees',
    sectionOf(readme, 'What it guarantees'),
    listCounts(),
    '## Beside other libraries',
    compare(),
    readFileSync(`${site}src/content/when-not.md`, 'utf8').trim(),
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
  const [text = ''] = block.split('\nThe medians themselves:')
  const notes = block.trim().split('\n').at(-1) ?? ''
  return { text: text.trim(), notes }
}
