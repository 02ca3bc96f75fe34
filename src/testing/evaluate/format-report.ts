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
import type { ReportComparison } from './summarize-cases.js'
import {
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

export const orDash = <Value>(value: Value | null, format: (value: Value) => string): string =>
  value === null ? '–' : format(value)

export interface IntervalRow {
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

export const formatScore = (score: number | null): string => orDash(score, (value) => value.toFixed(2))

export const formatShare = (share: number): string => `${Math.round(share * 100)} %`

export const formatScoreRange = ({ low, high }: Interval): string => `${low.toFixed(2)} … ${high.toFixed(2)}`

export const formatShareRange = ({ low, high }: Interval): string =>
  `${Math.round(low * 100)} … ${Math.round(high * 100)} %`

export const formatSigned = (value: number, format = (size: number) => size.toFixed(2)): string => {
  const size = format(Math.abs(value))
  // A value that rounds to zero has no sign.
  return size === format(0) ? `±${size}` : `${value < 0 ? '−' : '+'}${size}`
}

export const formatSignedRange = (
  { value, low, high }: Interval,
  format?: (size: number) => string,
  unit = '',
): string =>
  `${formatSigned(value, format)} (${formatSigned(low, format)} … ${formatSigned(high, format)})${unit}`

const formatPointRange = (range: Interval): string =>
  formatSignedRange(range, (size) => String(Math.round(size * 100)), ' points')

export const formatCostRange = (range: Interval): string => {
  const isSmall = Math.max(Math.abs(range.low), Math.abs(range.high)) < 1
  return formatSignedRange(range, (size) => `$${size.toFixed(isSmall ? 4 : 2)}`)
}

export const formatMean = (value: number): string =>
  value >= 100 ? formatCount(Math.round(value)) : String(Math.round(value * 10) / 10)

/** The rows for all scores together, then for each scorer if there are several, then for each tag. */
export function listScoreRows({ summary, scorers }: EvaluationReport): [string, ScoreSummary][] {
  const [only, ...others] = scorers
  const all = others.length === 0 && only !== undefined ? only : 'all'
  return [
    [all, summary],
    ...(others.length > 0 ? Object.entries(summary.scorers) : []),
    ...Object.entries(summary.tags),
  ]
}

export function formatExtent({ cases, repeat, startedAt, endedAt }: EvaluationReport): string {
  const times = repeat > 1 ? ` × ${repeat}` : ''
  return `${formatCount(cases.length, 'case')}${times}, ${formatDuration(endedAt - startedAt)}`
}

export interface ShownFailure {
  of: EvaluatedCase
  run: EvaluatedRun
}

/** Errors first, then diverged runs, then failures by score. */
export function listFailures({ cases }: EvaluationReport): ShownFailure[] {
  const order = { error: 0, diverged: 1, failed: 2, passed: 3 }
  return cases
    .flatMap((of) => of.runs.map((run) => ({ of, run })))
    .filter(({ run }) => run.verdict !== 'passed')
    .toSorted(
      (a, b) => order[a.run.verdict] - order[b.run.verdict] || (a.run.score ?? 0) - (b.run.score ?? 0),
    )
}

export const formatGivenScores = (scores: [string, GivenScore][]): string[] =>
  scores.map(
    ([name, { score, why }]) => `${name} ${formatScore(score)}${why === undefined ? '' : `: ${why}`}`,
  )

export function describeFailure({ error, diverged, scores, failure, state, reason }: EvaluatedRun): string {
  if (error) return error.message
  if (diverged) return `${diverged.tool}(${diverged.arguments}): ${diverged.why}`
  const scoreLines = formatGivenScores(Object.entries(scores).filter(([, { passed }]) => !passed))
  const ended = state === 'COMPLETED' ? [] : [`${state ?? 'not started'} (${failure?.code ?? reason ?? ''})`]
  return [...ended, ...scoreLines].join(' · ')
}
