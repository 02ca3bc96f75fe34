import { expectArgument } from '../../core/base/expect-argument.js'
import { type EvaluatedCase, type EvaluationReport, reportRule } from './evaluation-report.js'
import { bootstrapMean, type Interval } from './statistics.js'
import { scoreCaseBy, sumCosts } from './summarize-cases.js'

/** A case whose score is not what it was. */
export interface CaseChange {
  id: string
  before: number
  now: number
  difference: number
}

/** Differences of what is now to what was, case by case. The intervals are of 95 %, by bootstrap over the pairs. */
export interface ReportComparison {
  /** The id of the earlier evaluation. */
  base: string
  /** Cases that both have scored. */
  pairs: number
  /** Of the scores; null without a pair. */
  score: Interval | null
  passRate: Interval | null
  scorers: Record<string, Interval | null>
  /** Of the agent's cost of a case, in USD; null where a price is not known. */
  cost: Interval | null
  tokens: Interval | null
  steps: Interval | null
  durationMs: Interval | null
  /** The largest first. */
  regressions: CaseChange[]
  improvements: CaseChange[]
  /** Cases that only one of them has scored. */
  added: string[]
  missing: string[]
}

/** A smaller difference of two scores is one of rounding. */
const least = 1e-9

/**
 * Compares two evaluations of the same cases.
 *
 * @example
 * const cases = [{ id: 'a', input: 'Go.' }]
 * const base = await evaluate({ agent, cases })
 * const { regressions } = compareReports(await evaluate({ agent, cases }), base)
 * console.log(regressions.length) // → 0
 */
export function compareReports(report: EvaluationReport, base: EvaluationReport): ReportComparison {
  expectArgument('compareReports(report, base)', report, reportRule)
  expectArgument('compareReports(report, base)', base, reportRule)
  const { seed } = report
  const before = new Map(base.cases.filter(isScored).map((one) => [one.id, one]))
  const scored = report.cases.filter(isScored)
  const pairs = scored.flatMap((now): Pair[] => {
    const earlier = before.get(now.id)
    return earlier ? [{ now, earlier }] : []
  })
  const differ = (of: (one: EvaluatedCase) => number | null): Interval | null => {
    const values = pairs.flatMap(({ now, earlier }) => {
      const [a, b] = [of(now), of(earlier)]
      return a === null || b === null ? [] : [a - b]
    })
    return bootstrapMean(values, seed)
  }
  const changes = pairs.map(({ now, earlier }): CaseChange => {
    const [b, a] = [earlier.score ?? 0, now.score ?? 0]
    return { id: now.id, before: b, now: a, difference: a - b }
  })
  const known = new Set(scored.map(({ id }) => id))
  return {
    base: base.id,
    pairs: pairs.length,
    score: differ(({ score }) => score),
    passRate: differ(({ passRate }) => passRate),
    scorers: Object.fromEntries(
      report.scorers
        .filter((name) => base.scorers.includes(name))
        .map((name) => [name, differ((one) => scoreCaseBy(one, name).score)]),
    ),
    cost: differ(({ runs }) => {
      const sum = sumCosts(runs, 'agent')
      return sum === null ? null : sum / runs.length
    }),
    tokens: differ(({ runs }) => average(runs.map(({ tokens }) => tokens.total))),
    steps: differ(({ runs }) => average(runs.map(({ steps }) => steps))),
    durationMs: differ(({ runs }) => average(runs.map((run) => run.durationMs))),
    regressions: changes
      .filter(({ difference }) => difference < -least)
      .toSorted((a, b) => a.difference - b.difference),
    improvements: changes
      .filter(({ difference }) => difference > least)
      .toSorted((a, b) => b.difference - a.difference),
    added: scored.flatMap(({ id }) => (before.has(id) ? [] : [id])),
    missing: [...before.keys()].filter((id) => !known.has(id)),
  }
}

interface Pair {
  now: EvaluatedCase
  earlier: EvaluatedCase
}

const isScored = ({ score }: EvaluatedCase): boolean => score !== null

const average = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length
