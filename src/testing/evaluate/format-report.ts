import { quoteShellWord } from '../../core/format/shell-words.js'
import {
  createPaint,
  type Paint,
  type Style,
  formatCount,
  formatDuration,
  shorten,
  formatMoney,
} from '../../core/format/format-words.js'
import {
  type ReportComparison,
  type CaseChange,
  getMean,
  type CaseVerdict,
  comparisonRule,
  type EvaluatedCase,
  type EvaluatedRun,
  type EvaluationReport,
  type GivenScore,
  type Interval,
  reportRule,
  type ScoreSummary,
  type Spread,
} from './evaluation-report.js'
import { expectArgument, optionsRule } from '../../core/base/values.js'
import { sha256 } from '../../../guards/lib/sha256.js'

/** Options for `formatReport`. */
export interface FormatReportOptions {
  /** Number of columns. Defaults to 80. */
  width?: number
  /** Whether to use colors. Defaults to false. */
  color?: boolean
  /** Maximum number of failures, regressions and improvements to list. Defaults to 5. */
  most?: number
  /** Appended to the suggested `sessions show` command, such as ` --store=file:./sessions`. Defaults to nothing. */
  commandOptions?: string
}

const verdictStyles: Record<CaseVerdict, Style> = {
  passed: 'green',
  failed: 'red',
  error: 'yellow',
  diverged: 'cyan',
}

/**
 * Formats a report as a table for terminals, optionally with a comparison.
 *
 * @example
 * const report = await evaluate({ agent, cases: [{ id: 'a', input: 'Go.' }] })
 * console.log(formatReport(report)) // → Evaluation eval-… · … passed 1 …
 */
export function formatReport(
  report: EvaluationReport,
  comparison: ReportComparison | null = null,
  options: FormatReportOptions = {},
): string {
  expectArgument('formatReport(report)', report, reportRule)
  expectArgument('formatReport(report, comparison)', comparison, comparisonRule)
  expectArgument('formatReport(report, comparison, options)', options, optionsRule)
  const { width = 80, color = false, most = 5, commandOptions = '' } = options
  const paint = createPaint(color)
  const { id, agent, interrupted, summary } = report
  const head = `Evaluation ${id} · ${agent.model} · ${formatExtent(report)}`
  const verdicts = Object.entries(summary.verdicts)
    .filter(([verdict, count]) => count > 0 || verdict === 'passed' || verdict === 'failed')
    .map(([verdict, count]) =>
      paint(verdictStyles[verdict as CaseVerdict], `${verdict} ${formatCount(count)}`),
    )
  const lines = [
    shorten(head, width),
    ...(interrupted
      ? [paint('yellow', 'Stopped early. The report contains only the runs scored so far.')]
      : []),
    '',
    ...formatScores(report, width, paint),
    '',
    `  ${verdicts.join('   ')}`,
    '',
    ...formatFacts(report, width, paint),
    ...(comparison ? ['', ...formatComparison(comparison, { width, paint, most })] : []),
    ...formatFailures(report, { width, paint, most }, commandOptions),
  ]
  return `${lines.join('\n')}\n`
}

function formatScores(report: EvaluationReport, width: number, paint: Paint): string[] {
  const rows = listScoreRows(report)
  const columns = ['mean', '95 %', 'passed', '95 %', 'cases']
  const cells = rows.map(([, { mean, passRate, cases }]) => [
    formatScore(mean?.value ?? null),
    orDash(mean, formatScoreRange),
    orDash(passRate, ({ value }) => formatShare(value)),
    orDash(passRate, formatShareRange),
    formatCount(cases),
  ])
  const widths = columns.map((name, i) => Math.max(name.length, ...cells.map((row) => (row[i] ?? '').length)))
  const rest = width - 2 - widths.reduce((sum, each) => sum + each + 2, 0)
  const nameWidth = Math.max(8, Math.min(rest, Math.max(5, ...rows.map(([name]) => name.length))))
  const align = (row: readonly string[]): string =>
    row.map((cell, i) => cell.padStart(widths[i] ?? 0)).join('  ')
  return [
    paint('dim', `  ${''.padEnd(nameWidth)}  ${align(columns)}`),
    ...rows.map(([name], i) => `  ${shorten(name, nameWidth).padEnd(nameWidth)}  ${align(cells[i] ?? [])}`),
  ]
}

function formatFacts({ summary }: EvaluationReport, width: number, paint: Paint): string[] {
  const { cost, tokens, steps, durationMs, states, guards } = summary
  const judged =
    cost.judges === 0 ? '' : ` (agent ${formatMoney(cost.agent)}, judges ${formatMoney(cost.judges)})`
  const counted = (names: Record<string, number>): string =>
    Object.entries(names)
      .map(([name, count]) => `${name} ${formatCount(count)}`)
      .join(' · ')
  const facts: [string, string][] = [
    ['cost', `${formatMoney(cost.total)}${judged}`],
    [
      'tokens',
      `${formatCount(tokens.total)} (${formatCount(tokens.input)} in, ${formatCount(tokens.output)} out)`,
    ],
    ['steps', orDash(steps, (spread) => formatSpread(spread, formatMean))],
    ['time', orDash(durationMs, (spread) => formatSpread(spread, formatDuration))],
    ['states', counted(states)],
  ]
  if (Object.keys(guards).length > 0) facts.push(['guards', counted(guards)])
  return facts.map(([name, words]) => `  ${paint('dim', name.padEnd(8))}  ${shorten(words, width - 12)}`)
}

function formatSpread({ mean, p50, p95, max }: Spread, format: (value: number) => string): string {
  return `mean ${format(mean)}, p50 ${format(p50)}, p95 ${format(p95)}, max ${format(max)}`
}

interface ListOptions {
  width: number
  paint: Paint
  most: number
}

function formatComparison(comparison: ReportComparison, { width, paint, most }: ListOptions): string[] {
  const { base, pairs, cost, durationMs, regressions, improvements, added, missing } = comparison
  const rows: [string, string][] = [
    ...listDifferences(comparison).map(({ name, words }): [string, string] => [name, words]),
    ['cost', orDash(cost, formatCostRange)],
    ['time', orDash(durationMs, (range) => formatSignedRange(range, formatDuration))],
  ]
  const nameWidth = Math.max(8, ...rows.map(([name]) => Math.min(20, name.length)))
  const head = [formatCount(pairs, 'pair')]
  if (added.length > 0) head.push(`${formatCount(added.length, 'case')} only in this report`)
  if (missing.length > 0) head.push(`${formatCount(missing.length, 'case')} only in the baseline`)
  const idWidth = Math.max(8, width - 30)
  const list = (title: string, style: Style, changes: typeof regressions): string[] => [
    ...(changes.length > 0 ? [`  ${paint(style, `${title} ${formatCount(changes.length)}`)}`] : []),
    ...changes.slice(0, most).map(({ id, before, now, difference }) => {
      const numbers = `${formatSigned(difference)}  ${formatScore(before)} → ${formatScore(now)}`
      return `    ${paint(style, numbers)}  ${shorten(id, idWidth)}`
    }),
    ...(changes.length > most ? [paint('dim', `    … and ${changes.length - most} more`)] : []),
  ]
  return [
    shorten(`Against ${base} · ${head.join(', ')}`, width),
    ...rows.map(([name, words]) => `  ${paint('dim', shorten(name, nameWidth).padEnd(nameWidth))}  ${words}`),
    ...list('worse', 'red', regressions),
    ...list('better', 'green', improvements),
  ]
}

function formatFailures(
  report: EvaluationReport,
  { width, paint, most }: ListOptions,
  commandOptions: string,
): string[] {
  const failures = listFailures(report)
  if (failures.length === 0) return []
  const lines = ['']
  for (const { of, run } of failures.slice(0, most)) {
    const { verdict, session } = run
    const name = shorten(session ?? of.id, Math.max(8, width - 4 - verdict.length))
    const why = describeFailure(run)
    lines.push(`  ${paint(verdictStyles[verdict], verdict)}  ${name}`)
    if (why !== '') lines.push(`    ${paint('dim', shorten(why, width - 4))}`)
  }
  if (failures.length > most) lines.push(paint('dim', `  … and ${formatCount(failures.length - most)} more`))
  const session = failures.find(({ run }) => run.session !== null)?.run.session
  if (session) {
    const command = `statewright sessions show ${quoteShellWord(session)}${commandOptions}`
    lines.push('', paint('dim', `Inspect one: ${command}`))
  }
  return lines
}

const orDash = <Value>(value: Value | null, format: (value: Value) => string): string =>
  value === null ? '–' : format(value)

interface IntervalRow {
  name: string
  range: Interval | null
  words: string
}

/** The differences in scores: all, passed, and by scorer if there are several. */
export function listDifferences({ score, passRate, scorers }: ReportComparison): IntervalRow[] {
  const several = Object.entries(scorers).length > 1 ? Object.entries(scorers) : []
  return [
    { name: 'score', range: score, words: orDash(score, formatSignedRange) },
    { name: 'passed', range: passRate, words: orDash(passRate, formatPointRange) },
    ...several.map(([name, range]) => ({
      name,
      range,
      words: orDash(range, formatSignedRange),
    })),
  ]
}

const formatScore = (score: number | null): string => orDash(score, (value) => value.toFixed(2))

const formatShare = (share: number): string => `${Math.round(share * 100)} %`

const formatScoreRange = ({ low, high }: Interval): string => `${low.toFixed(2)} … ${high.toFixed(2)}`

const formatShareRange = ({ low, high }: Interval): string =>
  `${Math.round(low * 100)} … ${Math.round(high * 100)} %`

const formatSigned = (value: number, format = (size: number) => size.toFixed(2)): string => {
  const size = format(Math.abs(value))
  // A value that rounds to zero has no sign.
  return size === format(0) ? `±${size}` : `${value < 0 ? '−' : '+'}${size}`
}

const formatSignedRange = (
  { value, low, high }: Interval,
  format?: (size: number) => string,
  unit = '',
): string =>
  `${formatSigned(value, format)} (${formatSigned(low, format)} … ${formatSigned(high, format)})${unit}`

const formatPointRange = (range: Interval): string =>
  formatSignedRange(range, (size) => String(Math.round(size * 100)), ' points')

const formatCostRange = (range: Interval): string => {
  const isSmall = Math.max(Math.abs(range.low), Math.abs(range.high)) < 1
  return formatSignedRange(range, (size) => `$${size.toFixed(isSmall ? 4 : 2)}`)
}

const formatMean = (value: number): string =>
  value >= 100 ? formatCount(Math.round(value)) : String(Math.round(value * 10) / 10)

/** The rows for all scores together, then for each scorer if there are several, then for each tag. */
function listScoreRows({ summary, scorers }: EvaluationReport): [string, ScoreSummary][] {
  const [only, ...others] = scorers
  const all = others.length === 0 && only !== undefined ? only : 'all'
  return [
    [all, summary],
    ...(others.length > 0 ? Object.entries(summary.scorers) : []),
    ...Object.entries(summary.tags),
  ]
}

function formatExtent({ cases, repeat, startedAt, endedAt }: EvaluationReport): string {
  const times = repeat > 1 ? ` × ${repeat}` : ''
  return `${formatCount(cases.length, 'case')}${times}, ${formatDuration(endedAt - startedAt)}`
}

interface ShownFailure {
  of: EvaluatedCase
  run: EvaluatedRun
}

/** Errors first, then diverged runs, then failures by score. */
function listFailures({ cases }: EvaluationReport): ShownFailure[] {
  const order = { error: 0, diverged: 1, failed: 2, passed: 3 }
  return cases
    .flatMap((of) => of.runs.map((run) => ({ of, run })))
    .filter(({ run }) => run.verdict !== 'passed')
    .toSorted(
      (a, b) => order[a.run.verdict] - order[b.run.verdict] || (a.run.score ?? 0) - (b.run.score ?? 0),
    )
}

const formatGivenScores = (scores: [string, GivenScore][]): string[] =>
  scores.map(
    ([name, { score, why }]) => `${name} ${formatScore(score)}${why === undefined ? '' : `: ${why}`}`,
  )

function describeFailure({ error, diverged, scores, failure, state, reason }: EvaluatedRun): string {
  if (error) return error.message
  if (diverged) return `${diverged.tool}(${diverged.arguments}): ${diverged.why}`
  const scoreLines = formatGivenScores(Object.entries(scores).filter(([, { passed }]) => !passed))
  const ended = state === 'COMPLETED' ? [] : [`${state ?? 'not started'} (${failure?.code ?? reason ?? ''})`]
  return [...ended, ...scoreLines].join(' · ')
}

/** The maximum number of rows in a table. The JSON report contains all rows. */
const mostRows = 1000

const mostFailures = 200

/**
 * Renders a report as one self-contained HTML page with plots. The page has a light and a dark theme, but no scripts or
 * external resources.
 *
 * @example
 * const report = await evaluate({ agent, cases: [{ id: 'a', input: 'Go.' }] })
 * await writeFile('report.html', formatReportPage(report))
 */
export function formatReportPage(
  report: EvaluationReport,
  comparison: ReportComparison | null = null,
): string {
  expectArgument('formatReportPage(report)', report, reportRule)
  expectArgument('formatReportPage(report, comparison)', comparison, comparisonRule)
  const { id } = report
  const policy = `default-src 'none'; style-src 'sha256-${hashStyle()}'; base-uri 'none'; form-action 'none'`
  const page = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Evaluation ${id}</title>
<style>${{ html: pageStyle }}</style>
<main>
${showHead(report)}
${showTiles(report)}
<section><h2>Runs</h2>${plotVerdicts(report.summary.verdicts)}${showCounts(report)}</section>
${showScores(report)}
${comparison && showComparison(comparison)}
${showSpreads(report)}
${showFailures(report)}
${showCases(report)}
</main>
</html>
`
  return page.html
}

function hashStyle(): string {
  const digits = sha256(pageStyle).match(/../g) ?? []
  return btoa(String.fromCodePoint(...digits.map((two) => Number.parseInt(two, 16))))
}

function showHead(report: EvaluationReport): Markup {
  const { id, agent, startedAt, passAt, seed, interrupted } = report
  const when = new Date(startedAt).toISOString().slice(0, 16).replace('T', ' ')
  return html`<h1>Evaluation ${id}</h1>
<p class="soft">${agent.model} · ${when} UTC · ${formatExtent(report)} · a score of ${passAt} passes · seed ${seed}</p>
${interrupted === true && html`<p class="note">Stopped early. The report contains only the runs scored so far.</p>`}`
}

function showTiles({ summary }: EvaluationReport): Markup {
  const { mean, passRate, cost, durationMs, tokens, steps } = summary
  const tile = (value: string, words: string): Markup =>
    html`<div class="tile"><b>${value}</b><span>${words}</span></div>`
  const time = (of: keyof Spread): string => orDash(durationMs, (spread) => formatDuration(spread[of]))
  const step = (of: keyof Spread): string => orDash(steps, (spread) => formatMean(spread[of]))
  const judged = cost.judges === 0 ? 'cost' : `cost, including judges: ${formatMoney(cost.judges)}`
  return html`<div class="tiles">
${tile(formatScore(mean?.value ?? null), mean ? `mean score, ${formatScoreRange(mean)}` : 'mean score')}
${tile(
  orDash(passRate, ({ value }) => formatShare(value)),
  passRate ? `passed, ${formatShareRange(passRate)}` : 'passed',
)}
${tile(formatMoney(cost.total), judged)}
${tile(formatCount(tokens.total), `tokens, including ${formatCount(tokens.output)} output`)}
${tile(time('p50'), `time (p50), p95 ${time('p95')}`)}
${tile(step('mean'), `steps per run, at most ${step('max')}`)}
</div>`
}

function showCounts({ summary: { states, guards } }: EvaluationReport): Markup {
  const table = (head: string, counts: Record<string, number>): Markup =>
    html`<table><tr><th>${head}</th><th class="number">runs</th></tr>${Object.entries(counts).map(
      ([name, count]) => html`<tr><td>${name}</td><td class="number">${formatCount(count)}</td></tr>`,
    )}</table>`
  const hasGuards = Object.keys(guards).length > 0
  return html`<div class="pair"><div>${table('state and reason', states)}</div>${
    hasGuards && html`<div>${table('guard action', guards)}</div>`
  }</div>`
}

function showScores(report: EvaluationReport): Markup {
  const plot = (
    of: 'mean' | 'passRate',
    format: (value: number) => string,
    formatRange: (range: Interval) => string,
  ): Markup => {
    const rows = listScoreRows(report).map(([name, { [of]: range }]): IntervalRow => {
      const words = range ? `${format(range.value)} (${formatRange(range)})` : 'not scored'
      return { name, range, words }
    })
    return plotIntervals(rows, { from: 0, to: 1, marks: [0, 0.25, 0.5, 0.75, 1] })
  }
  return html`<section><h2>Scores</h2>
<p class="soft">95% intervals: bootstrap over cases for means, Wilson for pass rates.</p>
<h3>Mean score</h3>${plot('mean', formatScore, formatScoreRange)}
<h3>Pass rate</h3>${plot('passRate', formatShare, formatShareRange)}</section>`
}

function showComparison(comparison: ReportComparison): Markup {
  const { base, pairs, cost, tokens, steps, durationMs } = comparison
  const { regressions, improvements, added, missing } = comparison
  const differences = listDifferences(comparison)
  const signed = (range: Interval | null, format = formatMean): string =>
    orDash(range, (one) => formatSignedRange(one, format))
  const others: [string, string][] = [
    ['cost per run', orDash(cost, formatCostRange)],
    ['tokens', signed(tokens)],
    ['steps', signed(steps)],
    ['time', signed(durationMs, formatDuration)],
  ]
  const shown = [...regressions.slice(0, 25), ...improvements.slice(0, 25).toReversed()]
  const reach = Math.min(
    1,
    Math.max(0.1, ...differences.flatMap(({ range }) => (range ? [-range.low, range.high] : []))),
  )
  const limit = Math.ceil(reach * 10) / 10
  return html`<section><h2>Against ${base}</h2>
<p class="soft">${formatCount(pairs, 'pair')} of cases; ${formatCount(regressions.length, 'case')} worse, ${improvements.length} better${
    added.length > 0 && `; ${added.length} only in this report`
  }${missing.length > 0 && `; ${missing.length} only in the baseline`}.</p>
${plotIntervals(differences, { from: -limit, to: limit, marks: [-limit, 0, limit] })}
<div class="wide"><table>${others.map(([name, words]) => html`<tr><td>${name}</td><td>${words}</td></tr>`)}</table></div>
${shown.length > 0 && html`<h3>Cases that changed</h3>${plotChanges(shown)}`}</section>`
}

function showSpreads({ cases }: EvaluationReport): Markup {
  const scores = cases.flatMap(({ score }) => (score === null ? [] : [score]))
  const runs = cases.flatMap((one) => one.runs).filter(({ state }) => state !== null)
  const times = runs.map(({ durationMs }) => durationMs)
  const costs = runs.flatMap(({ cost }) => (cost.agent === null ? [] : [cost.agent]))
  const plot = (
    title: string,
    values: readonly number[],
    format: (value: number) => string,
  ): Markup | null => {
    const most = Math.max(0, ...values)
    if (most === 0) return null
    return html`<section><h2>${title}</h2>${plotHistogram(values, { from: 0, to: most, bins: 10, format })}</section>`
  }
  return html`<div class="pair">
<section><h2>Scores by case</h2>${plotHistogram(scores, { from: 0, to: 1, bins: 10, format: String })}</section>
${plot('Time per run', times, formatDuration)}
${plot('Cost per run', costs, formatMoney)}
</div>`
}

function showFailures(report: EvaluationReport): Markup | null {
  const failures = listFailures(report)
  if (failures.length === 0) return null
  const rest = failures.length - mostFailures
  return html`<section><h2>${formatCount(failures.length, 'run')} not passed</h2>
${failures.slice(0, mostFailures).map(showFailure)}
${rest > 0 && html`<p class="soft">… and ${formatCount(rest)} more in the JSON report.</p>`}</section>`
}

function showFailure({ of, run }: ShownFailure): Markup {
  const { verdict, session, output, scores, state, reason, guards } = run
  const why = describeFailure(run)
  const row = (name: string, words: string | null): Markup | false =>
    words !== null && words !== '' && html`<dt>${name}</dt><dd>${words}</dd>`
  const scoreLines = formatGivenScores(Object.entries(scores))
  return html`<details><summary><b class="${verdict}">${verdict}</b> ${of.id}${
    why !== '' && html` <span class="soft">${why.length > 160 ? `${why.slice(0, 159)}…` : why}</span>`
  }</summary>
<dl>${row('input', of.input)}${row('expected', of.expected ?? null)}${row('output', output)}${row('scores', scoreLines.join('\n'))}${row(
    'state',
    state === null ? 'not started' : `${state} (${reason ?? ''})`,
  )}${row('why', why)}${row('guards', guards.map(({ guard, action, message }) => `${guard} ${action}: ${message}`).join('\n'))}${
    session !== null &&
    html`<dt>session</dt><dd><code>statewright sessions show ${quoteShellWord(session)}</code>\nin the studio (statewright studio --open): <code>#/session/${session}</code></dd>`
  }</dl></details>`
}

function showCases({ cases }: EvaluationReport): Markup {
  const rest = cases.length - mostRows
  return html`<section><h2>All cases</h2><div class="wide"><table>
<tr><th>case</th><th>verdicts</th><th class="number">score</th><th class="number">steps</th><th class="number">tokens</th><th class="number">cost</th><th class="number">time</th></tr>
${cases.slice(0, mostRows).map(showCase)}</table></div>
${rest > 0 && html`<p class="soft">… and ${formatCount(rest)} more in the JSON report.</p>`}</section>`
}

function showCase({ id, score, runs }: EvaluatedCase): Markup {
  const mean = (of: (run: EvaluatedRun) => number): number => getMean(runs.map(of))
  const isPriced = runs.every(({ cost }) => cost.agent !== null)
  return html`<tr><td class="id">${id}</td><td>${runs.map(
    ({ verdict }, i) => html`${i > 0 && ', '}<span class="${verdict}">${verdict}</span>`,
  )}</td><td class="number">${formatScore(score)}</td><td class="number">${formatMean(mean(({ steps }) => steps))}</td><td class="number">${formatMean(
    mean(({ tokens }) => tokens.total),
  )}</td><td class="number">${isPriced ? formatMoney(mean(({ cost }) => cost.agent ?? 0)) : 'unknown'}</td><td class="number">${formatDuration(
    mean(({ durationMs }) => durationMs),
  )}</td></tr>`
}

const pageStyle = `
:root{color-scheme:light dark;--back:#f6f7f9;--card:#fff;--ink:#1a1d23;--soft:#5b6472;--line:#dfe3e8;--main:#2f6fde;--range:#9dbdf3;
--passed:#2c8a4b;--failed:#c93a3a;--error:#b7791f;--diverged:#7a4fc4}
@media (prefers-color-scheme:dark){:root{--back:#14171c;--card:#1d2128;--ink:#e7eaee;--soft:#9aa4b2;--line:#343b46;--main:#7aa7f7;--range:#3d5d94;
--passed:#5cbf7d;--failed:#f07272;--error:#e0ab4f;--diverged:#b394f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:68rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.45rem;margin:0;overflow-wrap:anywhere}
h2{font-size:1.05rem;margin:0 0 .75rem}
h3{font-size:.9rem;margin:1.25rem 0 .5rem;color:var(--soft)}
p{margin:.25rem 0}
.soft{color:var(--soft);overflow-wrap:anywhere}
.note{border-left:3px solid var(--error);padding-left:.75rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;margin:1.25rem 0 .75rem}
.tile,section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.75rem 1rem}
.tile b{display:block;font-size:1.4rem;line-height:1.3}
.tile span{color:var(--soft);font-size:.82rem;display:block;line-height:1.35;text-wrap:balance}
section{margin:.75rem 0;padding:1rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(18rem,100%),1fr));gap:.75rem}
.pair section{margin:0;min-width:0}
svg{display:block;overflow:visible}
svg text{font-size:11px;fill:var(--soft)}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin-top:.6rem}
.legend svg{display:inline-block}
.row{display:grid;grid-template-columns:minmax(5rem,11rem) 1fr minmax(9rem,14rem);gap:0 1rem;align-items:center}
.row .name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.row .words{color:var(--soft);font-size:.85rem;font-variant-numeric:tabular-nums}
.marks{display:flex;justify-content:space-between;color:var(--soft);font-size:.78rem;font-variant-numeric:tabular-nums}
.row .marks span{width:0;display:flex;justify-content:center}
.grid{stroke:var(--line)}
.base{stroke:var(--soft);stroke-opacity:.6}
.range{stroke:var(--range);stroke-width:6;stroke-linecap:round}
.dot,.bar{fill:var(--main)}
.whole{border-radius:4px;overflow:hidden}
.fill-passed,.better{fill:var(--passed)}.fill-failed,.worse{fill:var(--failed)}.fill-error{fill:var(--error)}.fill-diverged{fill:var(--diverged)}
.passed{color:var(--passed)}.failed{color:var(--failed)}.error{color:var(--error)}.diverged{color:var(--diverged)}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.9rem}
th{text-align:left;font-weight:600;color:var(--soft)}
th,td{padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}
td.id{overflow-wrap:anywhere;min-width:8rem}
.number{text-align:right}
details{border-top:1px solid var(--line);padding:.5rem 0}
summary{cursor:pointer;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:minmax(5rem,max-content) 1fr;gap:.3rem 1rem;margin:.6rem 0}
dt{color:var(--soft)}
dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;min-width:0}
code{font-family:ui-monospace,monospace;font-size:.87em;overflow-wrap:anywhere}
@media (max-width:40rem){.row{grid-template-columns:1fr auto;grid-template-areas:"name words" "plot plot";row-gap:.1rem;margin-bottom:.5rem}
.row .name{grid-area:name}.row .words{grid-area:words;text-align:right}.row svg,.row .marks{grid-area:plot}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}}
`

/** Lengths are percentages instead of a view box, so that plots fill the width while strokes keep their thickness. */

const percent = (share: number): string => `${Math.round(share * 10_000) / 100}%`

function plotIntervals(
  rows: readonly IntervalRow[],
  { from, to, marks }: { from: number; to: number; marks: readonly number[] },
): Markup {
  const place = (value: number): string => percent((value - from) / (to - from || 1))
  return html`<div class="rows">
${rows.map(
  ({ name, range, words }) => html`<div class="row"><span class="name">${name}</span>
<svg class="axis" width="100%" height="22" aria-hidden="true">${marks.map(
    (mark) => html`<line class="grid" x1="${place(mark)}" x2="${place(mark)}" y1="0" y2="22"/>`,
  )}${range && drawInterval(range, place)}</svg>
<span class="words">${words}</span></div>`,
)}
</div>
<div class="row scale"><span class="name"></span><span class="marks">${marks.map(
    (mark) => html`<span>${mark}</span>`,
  )}</span><span class="words"></span></div>`
}

const drawInterval = ({ value, low, high }: Interval, place: (value: number) => string): Markup =>
  html`<line class="range" x1="${place(low)}" x2="${place(high)}" y1="11" y2="11"/><circle class="dot" cx="${place(value)}" cy="11" r="5"/>`

function plotHistogram(
  values: readonly number[],
  { from, to, bins, format }: { from: number; to: number; bins: number; format: (value: number) => string },
): Markup {
  const counts = Array.from({ length: bins }, () => 0)
  const size = (to - from) / bins || 1
  for (const value of values) {
    const bin = Math.min(bins - 1, Math.max(0, Math.floor((value - from) / size)))
    counts[bin] = (counts[bin] ?? 0) + 1
  }
  const most = Math.max(1, ...counts)
  const height = 110
  return html`<svg class="bars" width="100%" height="${height + 18}" role="img" aria-label="${`${values.length} values, most in one bar: ${most}`}">
${counts.map((count, i) => {
  const tall = count === 0 ? 0 : Math.max(2, (count / most) * height)
  const span = `${format(from + i * size)} to ${format(from + (i + 1) * size)}: ${count}`
  const middle = percent((i + 0.5) / bins)
  return html`<rect class="bar" x="${percent((i + 0.06) / bins)}" width="${percent(0.88 / bins)}" y="${height + 16 - tall}" height="${tall}" rx="2"><title>${span}</title></rect>${
    count > 0 && html`<text x="${middle}" y="${height + 11 - tall}" text-anchor="middle">${count}</text>`
  }`
})}<line class="base" x1="0" x2="100%" y1="${height + 16.5}" y2="${height + 16.5}"/></svg>
<div class="marks"><span>${format(from)}</span><span>${format(from + (to - from) / 2)}</span><span>${format(to)}</span></div>`
}

function plotVerdicts(verdicts: Record<CaseVerdict, number>): Markup {
  const parts = Object.entries(verdicts).filter(([, count]) => count > 0)
  const total = parts.reduce((sum, [, count]) => sum + count, 0) || 1
  let before = 0
  const drawn = parts.map(([verdict, count]) => {
    const [x, width] = [before / total, count / total]
    before += count
    return html`<rect class="fill-${verdict}" x="${percent(x)}" width="${percent(width)}" y="0" height="16"><title>${verdict} ${count}</title></rect>`
  })
  return html`<svg class="whole" width="100%" height="16" aria-hidden="true">${drawn}</svg>
<p class="legend">${Object.entries(verdicts).map(
    ([verdict, count]) =>
      html`<span><svg width="10" height="10" aria-hidden="true"><rect class="fill-${verdict}" width="10" height="10" rx="2"/></svg> ${verdict} <b>${count}</b></span> `,
  )}</p>`
}

/** A diverging bar per case, from the worst to the best change. */
function plotChanges(changes: readonly CaseChange[]): Markup {
  const most = Math.max(...changes.map(({ difference }) => Math.abs(difference)), 0.01)
  return html`<div class="rows">${changes.map(({ id, before, now, difference }) => {
    const half = Math.abs(difference) / most / 2
    const x = difference < 0 ? 0.5 - half : 0.5
    return html`<div class="row"><span class="name" title="${id}">${id}</span>
<svg class="axis" width="100%" height="22" aria-hidden="true"><rect class="${difference < 0 ? 'worse' : 'better'}" x="${percent(x)}" width="${percent(half)}" y="5" height="12" rx="2"/><line class="base" x1="50%" x2="50%" y1="0" y2="22"/></svg>
<span class="words">${formatSigned(difference)} (${formatScore(before)} → ${formatScore(now)})</span></div>`
  })}</div>`
}

/** Safe HTML. All interpolated text is escaped. */
interface Markup {
  readonly html: string
}

type Piece = Markup | string | number | null | false | readonly Piece[]

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for HTML and quoted attributes and drops control characters. */
const escapeHtml = (text: string): string =>
  text
    // oxlint-disable-next-line no-control-regex -- drops these characters
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '')
    .replaceAll(/[&<>"']/g, (letter) => escapes[letter] ?? letter)

function html(strings: TemplateStringsArray, ...values: readonly Piece[]): Markup {
  return { html: strings.reduce((text, part, i) => text + toHtml(values[i - 1] ?? null) + part) }
}

function toHtml(piece: Piece): string {
  if (piece === null || piece === false) return ''
  if (Array.isArray(piece)) return (piece as readonly Piece[]).map(toHtml).join('')
  return typeof piece === 'object' ? (piece as Markup).html : escapeHtml(String(piece))
}
