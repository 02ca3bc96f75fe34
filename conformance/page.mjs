// Writes the tables of docs/conformance.md and README.md from conformance/results.json.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { written } from '../bench/block.mjs'
import { cases } from '../packages/agent-loop-conformance/cases/index.mjs'

const file = (name) => fileURLToPath(new URL(name, import.meta.url))
const results = file('./results.json')
const page = file('../docs/conformance.md')
const readme = file('../README.md')

const signs = { pass: '✓', not_claimed: '–', expected_fail: '✗', fail: '✗' }
const variants = ['defaults', 'documented']
const cell = (text) => String(text).replaceAll('|', '\\|').replaceAll('<', '&lt;').trim()
const row = (cells) => `| ${cells.join(' | ')} |`
const table = (head, rows) => [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')
const isFailure = ({ result }) => result === 'expected_fail' || result === 'fail'

function summaryOf({ peers, results }) {
  const rows = peers.flatMap(({ name, title, versions, way, page }) =>
    variants.map((variant) => {
      const own = results.filter((one) => one.peer === name && one.variant === variant)
      const count = (is) => own.filter(is).length
      const version = Object.entries(versions)
        .map(([of, number]) => `\`${of}\` ${number}`)
        .join(', ')
      return [
        variant === 'defaults' ? title : '',
        variant === 'defaults' ? version : '',
        variant === 'defaults' ? 'defaults' : `${linkTo(page)}: ${way}`,
        count(({ result }) => result === 'pass'),
        count(isFailure),
        count(({ result }) => result === 'not_claimed'),
      ]
    }),
  )
  return table(['Library', 'Version', 'Variant', 'Passed', 'Failed', 'Not claimed'], rows)
}

/** The observation of a suite, as code. */
const observed = (text) => `\`${cell(text).replaceAll('`', "'").replaceAll('&lt;', '<')}\``

/** Links to a library's documentation. Ours is in the same folder. */
const linkTo = (place) => (place.startsWith('https:') ? `[documented](${place})` : `documented (${place})`)

/** One table per class keeps the headings visible. */
function casesOf({ peers, results }) {
  const found = new Map(results.map((one) => [`${one.peer} ${one.variant} ${one.case}`, one.result]))
  const head = ['Case', 'Requirement', ...peers.map(({ title }) => title)]
  const rowOf = ({ id, name, title }) => [
    `\`${name}\``,
    cell(title),
    ...peers.map(({ name: peer }) =>
      variants.map((variant) => signs[found.get(`${peer} ${variant} ${id}`)] ?? '?').join(' '),
    ),
  ]
  return [...new Set(cases.map((one) => one.class))]
    .map((of) => `### ${of}\n\n${table(head, cases.filter((one) => one.class === of).map(rowOf))}`)
    .join('\n\n')
}

/** The note of an expected failure, with the link to a public issue of the library. */
const noteOf = (expected, one) => expected[one.peer]?.[one.variant]?.[one.case] ?? ''

function failuresOf({ peers, results }, expected) {
  return peers.map(({ name, title }) => {
    const own = results.filter((one) => one.peer === name && isFailure(one))
    const rows = [...new Set(own.map((one) => one.case))].map((id) => {
      const both = own.filter((one) => one.case === id)
      const [first] = both
      const note = noteOf(expected, first)
      const variant = both.length === variants.length ? 'both' : first.variant
      return [`\`${id}\``, variant, `${observed(first.evidence)}${note ? ` ([issue](${note}))` : ''}`]
    })
    const list = rows.length === 0 ? 'None in this run.' : table(['Case', 'Variant', 'Observed'], rows)
    return `### ${title}\n\n${list}`
  })
}

function betterOf({ results }) {
  const isPassedBy = (peer, { case: id, variant }) =>
    results.some(
      (one) => one.peer === peer && one.case === id && one.variant === variant && one.result === 'pass',
    )
  const own = results.filter((one) => one.peer === 'statewright' && one.result !== 'pass')
  const rows = own.flatMap((entry) => {
    const { case: id, variant, evidence } = entry
    const others = [...new Set(results.map(({ peer }) => peer))].filter((peer) => peer !== 'statewright')
    const better = others.filter((peer) => isPassedBy(peer, entry))
    return better.length > 0 ? [[`\`${id}\``, variant, better.join(', '), observed(evidence)]] : []
  })
  if (rows.length === 0)
    return 'None in this run. The project wrote the cases itself, so gaps that it does not know are missing here.'
  return table(['Case', 'Variant', 'Libraries that pass', 'Reason for Statewright'], rows)
}

/** Cases that are newer than the report. They are not measured on a busy machine, whose slowness would fail libraries. */
function waitingOf({ results }) {
  const known = new Set(results.map((one) => one.case))
  const missing = cases.filter(({ id }) => !known.has(id)).map(({ id }) => `\`${id}\``)
  return missing.length === 0
    ? []
    : [`Not measured yet (\`?\`), until a run on a quiet machine: ${missing.join(', ')}.`]
}

/** The text between the marks. */
export function renderReport(report, expected) {
  const { date, node, command, seed, note } = report
  return [
    `Measured on ${date} with Node ${node}, seed ${seed}, with \`${command}\`. ✓ passed, ✗ failed, – not claimed. The first symbol is for the defaults, the second for the documented setup.`,
    ...(note ? [note] : []),
    ...waitingOf(report),
    '## The libraries',
    summaryOf(report),
    '## The cases',
    casesOf(report),
    '## Cases where another library does better',
    betterOf(report),
    '## Failures by library',
    'If the variant is `both`, the row shows the observation with the defaults.',
    ...failuresOf(report, expected),
  ].join('\n\n')
}

const read = (name) => readFileSync(name, 'utf8')
const readExpected = () => JSON.parse(read(file('./expected.json')))

/** Merges new results of some cases into the stored report. */
export function mergeReport(report) {
  if (!existsSync(results)) return report
  const before = JSON.parse(read(results))
  const played = new Set(report.results.map((one) => one.case))
  const others = before.results.filter((one) => !played.has(one.case))
  return { ...report, command: before.command, results: [...others, ...report.results] }
}

/** Stores the data of the page. The evidence of passed cases is omitted. */
export function writeReport(report) {
  const shown = report.results.map(({ evidence, version: _version, seed: _seed, ...one }) =>
    one.result === 'pass' ? one : { ...one, evidence },
  )
  const peers = report.peers.map(({ variants: _variants, ...peer }) => peer)
  const lines = shown.map((one) => JSON.stringify(one)).join(',\n')
  const rest = JSON.stringify({ ...report, peers, results: [] }, null, 1)
  writeFileSync(results, `${rest.replace('"results": []', `"results": [\n${lines}\n]`)}\n`)
  writePage()
}

/** There is no table until the suite has run on a quiet machine. A busy machine would fail libraries for its slowness. */
const noTable = 'There is no table yet: it waits for a run of all libraries on a quiet machine.'

/** Documented variants only, with the CPU time per step from docs/performance.md. */
function renderComparison({ peers, results }) {
  const performance = read(file('../docs/performance.md'))
  const rows = peers.map(({ name, title }) => {
    const own = results.filter((one) => one.peer === name && one.variant === 'documented')
    const count = (is) => own.filter(is).length
    const [, cpu = ''] =
      new RegExp(`^\\| \\*{0,2}${title}\\*{0,2} \\| ([\\d.]+) `, 'm').exec(performance) ?? []
    return [
      title,
      count(({ result }) => result === 'pass'),
      count(isFailure),
      count(({ result }) => result === 'not_claimed'),
      cpu,
    ]
  })
  const sorted = rows.toSorted((a, b) => b[1] - a[1])
  return table(['Library', 'Passed', 'Failed', 'Not claimed', 'CPU per step'], sorted)
}

/** Renders both documents from the results. */
function renderPages() {
  const report = existsSync(results) ? JSON.parse(read(results)) : undefined
  const text = report ? renderReport(report, readExpected()) : noTable
  return [
    [page, written(read(page), 'conformance', text)],
    [readme, written(read(readme), 'comparison', report ? renderComparison(report) : noTable)],
  ]
}

export function writePage() {
  for (const [name, text] of renderPages()) writeFileSync(name, text)
}

/** Returns the difference between a document and the results, or undefined. */
export function findPageProblem() {
  const stale = renderPages().filter(([name, text]) => read(name) !== text)
  return stale.length === 0
    ? undefined
    : `${stale.map(([name]) => basename(name)).join(' and ')} differ from conformance/results.json. Run npm run conformance -- --write.`
}
