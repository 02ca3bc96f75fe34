import type { AgentState, Reason, RunFailure } from '../../../machines/agent/run-result.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import { type ArgumentRule, expectArgument, objectRule } from '../../core/base/values.js'
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
