import { formatCount, formatDuration, formatMoney } from '../../core/format/format-words.js'
import type { EvaluatedCase, EvaluatedRun, EvaluationReport, ScoreSummary } from './evaluation-report.js'
import type { Interval } from './statistics.js'

/** Words and numbers that the table and the page have in common. */

export const formatScore = (score: number | null): string => (score === null ? '–' : score.toFixed(2))

export const formatShare = (share: number): string => `${Math.round(share * 100)} %`

export const formatScoreRange = ({ low, high }: Interval): string => `${low.toFixed(2)} … ${high.toFixed(2)}`

export const formatShareRange = ({ low, high }: Interval): string =>
  `${Math.round(low * 100)} … ${Math.round(high * 100)} %`

/** `+0.12`, `−0.03` */
export const formatSigned = (value: number, format = (size: number) => size.toFixed(2)): string => {
  const size = format(Math.abs(value))
  // What rounds to nothing has no sign.
  return size === format(0) ? `±${size}` : `${value < 0 ? '−' : '+'}${size}`
}

export const formatSignedRange = (
  { value, low, high }: Interval,
  format?: (size: number) => string,
  unit = '',
): string =>
  `${formatSigned(value, format)} (${formatSigned(low, format)} … ${formatSigned(high, format)})${unit}`

/** A difference of two shares. */
export const formatPointRange = (range: Interval): string =>
  formatSignedRange(range, (size) => String(Math.round(size * 100)), ' points')

/** A difference of two costs. */
export const formatCostRange = (range: Interval): string => {
  const isSmall = Math.max(Math.abs(range.low), Math.abs(range.high)) < 1
  return formatSignedRange(range, (size) => `$${size.toFixed(isSmall ? 4 : 2)}`)
}

export const formatCost = (usd: number | null): string => (usd === null ? 'unknown' : formatMoney(usd))

export const formatMean = (value: number): string =>
  value >= 100 ? formatCount(Math.round(value)) : String(Math.round(value * 10) / 10)

/** What a report has scores of: all together, each of several scorers, each tag. */
export function listScoreRows({ summary, scorers }: EvaluationReport): [string, ScoreSummary][] {
  const [only, ...others] = scorers
  const all = others.length === 0 && only !== undefined ? only : 'all'
  return [
    [all, summary],
    ...(others.length > 0 ? Object.entries(summary.scorers) : []),
    ...Object.entries(summary.tags),
  ]
}

/** `42 cases × 3, 12 s` */
export function formatExtent({ cases, repeat, startedAt, endedAt }: EvaluationReport): string {
  const times = repeat > 1 ? ` × ${repeat}` : ''
  return `${formatPlural(cases.length, 'case')}${times}, ${formatDuration(endedAt - startedAt)}`
}

export const formatPlural = (count: number, noun: string): string =>
  `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`

/** A run that did not pass, and its case. */
export interface ShownFailure {
  of: EvaluatedCase
  run: EvaluatedRun
}

/** Errors first, then what diverged, then failures from the lowest score. */
export function listFailures({ cases }: EvaluationReport): ShownFailure[] {
  const order = { error: 0, diverged: 1, failed: 2, passed: 3 }
  return cases
    .flatMap((of) => of.runs.map((run) => ({ of, run })))
    .filter(({ run }) => run.verdict !== 'passed')
    .toSorted(
      (a, b) => order[a.run.verdict] - order[b.run.verdict] || (a.run.score ?? 0) - (b.run.score ?? 0),
    )
}

/** Why a run did not pass, in one line. */
export function describeFailure({ error, diverged, scores, failure, state, reason }: EvaluatedRun): string {
  if (error) return error.message
  if (diverged) return `${diverged.tool}(${diverged.arguments}): ${diverged.why}`
  const said = Object.entries(scores)
    .filter(([, { passed }]) => !passed)
    .map(([name, { score, why }]) => `${name} ${formatScore(score)}${why === undefined ? '' : `: ${why}`}`)
  const ended = state === 'COMPLETED' ? [] : [`${state ?? 'not begun'} (${failure?.code ?? reason ?? ''})`]
  return [...ended, ...said].join(' · ')
}
