import type { AgentState, Reason, RunFailure } from '../../../machines/agent/run-result.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import { type ArgumentRule, expectArgument, objectRule } from '../../core/base/values.js'
import { createRandom } from '../check-assertions.js'
import { EvaluationError } from './evaluation-case.js'

/** A value with its 95% interval. */
export interface Interval {
  value: number
  low: number
  high: number
}

export const reportVersion = 1

/**
 * - `passed`, `failed`: the score does or does not reach `passAt`
 * - `error`: there is no score, because the model, the store or a scorer failed
 * - `diverged`: a replayed session made a call that could not be played
 */
export type CaseVerdict = 'passed' | 'failed' | 'error' | 'diverged'

export interface GivenScore {
  /** The score, from 0 to 1. */
  score: number
  passed: boolean
  why?: string
}

/** The cost in USD. Null if a price is unknown. */
export interface EvaluationCost {
  agent: number | null
  judges: number | null
}

/** A guard finding in a run. */
export interface GuardSaid {
  guard: Reason
  action: 'nudge' | 'block' | 'halt' | 'recover'
  message: string
}

/** One run of a case. */
export interface EvaluatedRun {
  /** The session of the run. Null if the session is not stored. */
  session: string | null
  verdict: CaseVerdict
  /** The mean of the run's scores, or null. */
  score: number | null
  scores: Record<string, GivenScore>
  /** The error, set only with the verdict `error`. `scorer` names the scorer that failed. */
  error?: { code: string; message: string; scorer?: string }
  /** The call that could not be played, and the reason. Set only with the verdict `diverged`. */
  diverged?: { tool: string; arguments: string; why: string }
  /** The state of the run. Null if the run did not start. */
  state: AgentState | null
  reason: Reason | null
  /** Why the run did not complete. */
  failure?: RunFailure
  /** The answer, truncated to 4,000 characters. */
  output: string
  steps: number
  tokens: { input: number; output: number; total: number }
  cost: EvaluationCost
  /** The time from the first to the last record of the run, in milliseconds. */
  durationMs: number
  guards: GuardSaid[]
}

export interface EvaluatedCase {
  id: string
  tags?: SessionTags
  /** Input and expected answer as text, truncated to 2,000 characters. */
  input: string
  expected?: string
  /** The mean over the case's scored runs, or null. */
  score: number | null
  /** The fraction of the case's scored runs that passed, or null. */
  passRate: number | null
  runs: EvaluatedRun[]
}

/** Aggregated scores with 95% intervals. */
export interface ScoreSummary {
  /** Number of scored cases. */
  cases: number
  /** Mean case score, with a bootstrap interval. */
  mean: Interval | null
  /**
   * Fraction of passing cases, with Wilson's interval. A repeated case counts as the fraction of its passing runs.
   */
  passRate: Interval | null
}

export interface Spread {
  mean: number
  p50: number
  p95: number
  max: number
}

export interface EvaluationSummary extends ScoreSummary {
  runs: number
  verdicts: Record<CaseVerdict, number>
  scorers: Record<string, ScoreSummary>
  /** The scores by tag, as `NAME=VALUE`. */
  tags: Record<string, ScoreSummary>
  /** Number of runs by `STATE reason`, most frequent first. */
  states: Record<string, number>
  /** Number of runs with a finding, by `GUARD action`. */
  guards: Record<string, number>
  cost: EvaluationCost & { total: number | null }
  tokens: { input: number; output: number; total: number }
  steps: Spread | null
  durationMs: Spread | null
}

/**
 * The result of `evaluate`, as plain JSON. It can be the baseline of a later comparison.
 *
 * @example
 * const report: EvaluationReport = await evaluate({ agent, cases: [{ id: 'a', input: 'Go.' }] })
 * console.log(report.summary.passRate?.value) // → 1
 */
export interface EvaluationReport {
  statewright: 'evaluation'
  version: typeof reportVersion
  id: string
  /** Milliseconds since the epoch. */
  startedAt: number
  endedAt: number
  /** Set if the evaluation was stopped, so that some cases were not scored. */
  interrupted?: true
  agent: { model: string; definition: string }
  scorers: string[]
  /** Minimum score to pass. */
  passAt: number
  repeat: number
  seed: number
  cases: EvaluatedCase[]
  summary: EvaluationSummary
}

export const reportRule: ArgumentRule = objectRule(
  ['statewright', 'cases', 'summary', 'scorers', 'agent'],
  'a report of evaluate()',
)

export const comparisonRule: ArgumentRule = {
  is: (value) => value === null || value === undefined || objectRule(['pairs', 'regressions'], '').is(value),
  phrase: 'the result of compareReports() or undefined',
}

/**
 * Parses a report from JSON.
 *
 * @example
 * const report = await evaluate({ agent, cases: [{ id: 'a', input: 'Go.' }] })
 * console.log(parseReport(JSON.stringify(report)).id === report.id) // → true
 *
 *
 * @throws {EvaluationError} `invalid_report`
 */
export function parseReport(text: string, name = 'The report'): EvaluationReport {
  expectArgument('parseReport(text)', text, { is: (value) => typeof value === 'string', phrase: 'a text' })
  const refuse = (what: string): EvaluationError =>
    new EvaluationError(
      'invalid_report',
      `${name} is not an evaluation report: ${what}. Pass a file written by statewright eval --out.`,
      name,
    )
  let value: Partial<EvaluationReport> | null
  try {
    value = JSON.parse(text) as Partial<EvaluationReport> | null
  } catch {
    throw refuse('it is not JSON')
  }
  if (value?.statewright !== 'evaluation') throw refuse('it has a different format')
  if (typeof value.version !== 'number' || value.version > reportVersion)
    throw refuse(
      `it has version ${String(value.version)}, but this version of Statewright supports ${reportVersion}`,
    )
  const isWhole = Array.isArray(value.cases) && value.cases.every(isCase) && Array.isArray(value.scorers)
  if (!isWhole) throw refuse('its cases are damaged')
  return value as EvaluationReport
}

function isCase(value: unknown): boolean {
  const { id, score, runs } = (value ?? {}) as Partial<EvaluatedCase>
  return typeof id === 'string' && (score === null || typeof score === 'number') && Array.isArray(runs)
}

const noVerdicts: Record<CaseVerdict, number> = { passed: 0, failed: 0, error: 0, diverged: 0 }

export function summarizeCases(
  cases: readonly EvaluatedCase[],
  scorers: readonly string[],
  seed: number,
): EvaluationSummary {
  const runs = cases.flatMap((one) => one.runs)
  const verdicts = { ...noVerdicts }
  for (const { verdict } of runs) verdicts[verdict] += 1
  const tags = [...new Set(cases.flatMap(listTags))].toSorted()
  const begun = runs.filter(({ state }) => state !== null)
  const cost = { agent: sumCosts(runs, 'agent'), judges: sumCosts(runs, 'judges') }
  const summarizeEach = (names: readonly string[], select: (name: string) => readonly CaseScore[]) =>
    Object.fromEntries(names.map((name) => [name, summarizeScores(select(name), seed)]))
  const sumTokens = (key: keyof EvaluatedRun['tokens']): number =>
    runs.reduce((sum, { tokens }) => sum + tokens[key], 0)
  return {
    ...summarizeScores(cases, seed),
    runs: runs.length,
    verdicts,
    scorers: summarizeEach(scorers, (name) => cases.map((one) => scoreCaseBy(one, name))),
    tags: summarizeEach(tags, (tag) => cases.filter((one) => listTags(one).includes(tag))),
    states: countNames(
      runs.map(({ state, reason }) => (state === null ? 'not started' : `${state} ${reason ?? ''}`.trim())),
    ),
    guards: countNames(
      runs.flatMap(({ guards }) => [...new Set(guards.map(({ guard, action }) => `${guard} ${action}`))]),
    ),
    cost: { ...cost, total: addCosts(cost.agent, cost.judges) },
    tokens: { input: sumTokens('input'), output: sumTokens('output'), total: sumTokens('total') },
    steps: measureSpread(begun.map(({ steps }) => steps)),
    durationMs: measureSpread(begun.map(({ durationMs }) => durationMs)),
  }
}

type CaseScore = Pick<EvaluatedCase, 'score' | 'passRate'>

/** A repeated case counts as one trial, because its runs are not independent. */
function summarizeScores(cases: readonly CaseScore[], seed: number): ScoreSummary {
  const scores = cases.flatMap(({ score }) => (score === null ? [] : [score]))
  const rates = cases.flatMap(({ passRate }) => (passRate === null ? [] : [passRate]))
  return {
    cases: scores.length,
    mean: bootstrapMean(scores, seed),
    passRate: rates.length === 0 ? null : computeWilsonInterval(getMean(rates), rates.length),
  }
}

const scoreCaseBy = ({ runs }: EvaluatedCase, scorer: string): CaseScore =>
  averageScores(runs.flatMap(({ scores }) => scores[scorer] ?? []))

export function scoreCase(runs: readonly EvaluatedRun[]): CaseScore {
  return averageScores(
    runs.flatMap(({ score, verdict }) => (score === null ? [] : [{ score, passed: verdict === 'passed' }])),
  )
}

function averageScores(scores: readonly GivenScore[]): CaseScore {
  if (scores.length === 0) return { score: null, passRate: null }
  return {
    score: getMean(scores.map(({ score }) => score)),
    passRate: getMean(scores.map(({ passed }) => Number(passed))),
  }
}

const listTags = ({ tags }: EvaluatedCase): string[] =>
  Object.entries(tags ?? {}).map(([name, value]) => `${name}=${value}`)

function sumCosts(runs: readonly EvaluatedRun[], of: keyof EvaluatedRun['cost']): number | null {
  return runs.reduce<number | null>((sum, { cost }) => addCosts(sum, cost[of]), 0)
}

/** Null if either is unknown. */
export const addCosts = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? null : one + other

function countNames(names: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return Object.fromEntries([...counts].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)))
}

function measureSpread(values: readonly number[]): Spread | null {
  if (values.length === 0) return null
  const sorted = values.toSorted((a, b) => a - b)
  return {
    mean: getMean(values),
    p50: findQuantile(sorted, 0.5),
    p95: findQuantile(sorted, 0.95),
    max: sorted.at(-1) ?? 0,
  }
}

/** The number of resamples. More resamples would move a bound by less than a hundredth of the interval. */
const resamples = 2000

/** The mean with a percentile bootstrap interval, reproducible by seed. Null without values. */
export function bootstrapMean(values: readonly number[], seed: number): Interval | null {
  if (values.length === 0) return null
  const random = createRandom(seed)
  const means = new Float64Array(resamples)
  for (let i = 0; i < resamples; i += 1) {
    let sum = 0
    for (let k = 0; k < values.length; k += 1) sum += values[Math.floor(random() * values.length)] ?? 0
    means[i] = sum / values.length
  }
  means.sort()
  return { value: getMean(values), low: findQuantile(means, 0.025), high: findQuantile(means, 0.975) }
}

/** Wilson's interval for `count` trials. Unlike a bootstrap, it has a width at 0 and 1. Null without trials. */
export function computeWilsonInterval(rate: number, count: number): Interval | null {
  if (count === 0) return null
  const z = 1.959964
  const spread = z * Math.sqrt((rate * (1 - rate)) / count + (z * z) / (4 * count * count))
  const divisor = 1 + (z * z) / count
  const centre = rate + (z * z) / (2 * count)
  return {
    value: rate,
    low: Math.max(0, (centre - spread) / divisor),
    high: Math.min(1, (centre + spread) / divisor),
  }
}

/** The interpolated quantile of sorted values; NaN without values. */
export function findQuantile(sorted: ArrayLike<number>, share: number): number {
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? below
  return below + (above - below) * (at - Math.floor(at))
}

export function getMean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** A case whose score changed. */
export interface CaseChange {
  id: string
  before: number
  now: number
  difference: number
}

/** Differences between two evaluations over the cases that both have scored, with 95% bootstrap intervals. */
export interface ReportComparison {
  /** Id of the baseline. */
  base: string
  /** Number of cases scored by both. */
  pairs: number
  score: Interval | null
  passRate: Interval | null
  scorers: Record<string, Interval | null>
  /** Difference in the agent's cost per case, in USD; null if a price is unknown. */
  cost: Interval | null
  tokens: Interval | null
  steps: Interval | null
  durationMs: Interval | null
  /** The cases that got worse, largest change first. */
  regressions: CaseChange[]
  improvements: CaseChange[]
  /** Cases scored by only one of the evaluations. */
  added: string[]
  missing: string[]
}

/** The smallest difference that counts. Smaller differences are rounding errors. */
const least = 1e-9

/**
 * Compares an evaluation with a baseline for the same cases.
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
  const pairs = scored.flatMap((now) => {
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
    tokens: differ(({ runs }) => getMean(runs.map(({ tokens }) => tokens.total))),
    steps: differ(({ runs }) => getMean(runs.map(({ steps }) => steps))),
    durationMs: differ(({ runs }) => getMean(runs.map((run) => run.durationMs))),
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

const isScored = ({ score }: EvaluatedCase): boolean => score !== null
