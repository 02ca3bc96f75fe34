import type {
  CaseVerdict,
  EvaluatedCase,
  EvaluatedRun,
  EvaluationSummary,
  ScoreSummary,
  Spread,
} from './evaluation-report.js'
import { bootstrapMean, computeWilsonInterval, findQuantile, getMean } from './statistics.js'

const noVerdicts: Record<CaseVerdict, number> = { passed: 0, failed: 0, error: 0, diverged: 0 }

/** What the cases of an evaluation come to. */
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
  const sumTokens = (key: keyof EvaluatedRun['tokens']): number =>
    runs.reduce((sum, { tokens }) => sum + tokens[key], 0)
  return {
    ...summarizeScores(
      cases.map(({ score, passRate }) => ({ score, passRate })),
      seed,
    ),
    runs: runs.length,
    verdicts,
    scorers: Object.fromEntries(
      scorers.map((name) => [
        name,
        summarizeScores(
          cases.map((one) => scoreCaseBy(one, name)),
          seed,
        ),
      ]),
    ),
    tags: Object.fromEntries(
      tags.map((tag) => [
        tag,
        summarizeScores(
          cases.filter((one) => listTags(one).includes(tag)),
          seed,
        ),
      ]),
    ),
    states: countNames(
      runs.map(({ state, reason }) => (state === null ? 'not begun' : `${state} ${reason ?? ''}`.trim())),
    ),
    guards: countNames(
      runs.flatMap(({ guards }) => [...new Set(guards.map(({ guard, action }) => `${guard} ${action}`))]),
    ),
    cost: { ...cost, total: cost.agent === null || cost.judges === null ? null : cost.agent + cost.judges },
    tokens: { input: sumTokens('input'), output: sumTokens('output'), total: sumTokens('total') },
    steps: measureSpread(begun.map(({ steps }) => steps)),
    durationMs: measureSpread(begun.map(({ durationMs }) => durationMs)),
  }
}

type CaseScore = Pick<EvaluatedCase, 'score' | 'passRate'>

/** A case is one trial, however often it was repeated: its runs are not independent. */
function summarizeScores(cases: readonly CaseScore[], seed: number): ScoreSummary {
  const scores = cases.flatMap(({ score }) => (score === null ? [] : [score]))
  const rates = cases.flatMap(({ passRate }) => (passRate === null ? [] : [passRate]))
  return {
    cases: scores.length,
    mean: bootstrapMean(scores, seed),
    passRate: rates.length === 0 ? null : computeWilsonInterval(getMean(rates), rates.length),
  }
}

/** What one scorer says of a case. */
export function scoreCaseBy({ runs }: EvaluatedCase, scorer: string): CaseScore {
  const given = runs.flatMap(({ scores }) => scores[scorer] ?? [])
  if (given.length === 0) return { score: null, passRate: null }
  return {
    score: getMean(given.map(({ score }) => score)),
    passRate: getMean(given.map(({ passed }) => Number(passed))),
  }
}

/** The score of a case, over the runs that have one. */
export function scoreCase(runs: readonly EvaluatedRun[]): CaseScore {
  const scored = runs.filter((run): run is EvaluatedRun & { score: number } => run.score !== null)
  if (scored.length === 0) return { score: null, passRate: null }
  return {
    score: getMean(scored.map(({ score }) => score)),
    passRate: getMean(scored.map(({ verdict }) => Number(verdict === 'passed'))),
  }
}

const listTags = ({ tags }: EvaluatedCase): string[] =>
  Object.entries(tags ?? {}).map(([name, value]) => `${name}=${value}`)

/** Null as soon as one is not known. */
export function sumCosts(runs: readonly EvaluatedRun[], of: keyof EvaluatedRun['cost']): number | null {
  return runs.reduce<number | null>((sum, { cost }) => {
    const more = cost[of]
    return sum === null || more === null ? null : sum + more
  }, 0)
}

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
