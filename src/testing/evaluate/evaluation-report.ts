import type { AgentState, Reason, RunFailure } from '../../../machines/agent/run-result.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import { type ArgumentRule, expectArgument, objectRule } from '../../core/base/values.js'
import { EvaluationError } from './evaluation-case.js'
import type { Interval } from './summarize-cases.js'

/** The version of a report's form. */
export const reportVersion = 1

/**
 * - `passed`, `failed`: scored, and its score reaches `passAt` or not
 * - `error`: there is no score: the model or the store failed, or a scorer did
 * - `diverged`: a replayed session wanted a call that could not be played
 */
export type CaseVerdict = 'passed' | 'failed' | 'error' | 'diverged'

/** What a scorer said of a result. */
export interface GivenScore {
  /** From 0 to 1. */
  score: number
  passed: boolean
  why?: string
}

/** Who paid for what, in USD; null where a price is not known. */
export interface EvaluationCost {
  agent: number | null
  judges: number | null
}

/** A guard that spoke in a run, and what it said. */
export interface GuardSaid {
  guard: Reason
  action: 'nudge' | 'block' | 'halt' | 'recover'
  message: string
}

/** A case that was run once. */
export interface EvaluatedRun {
  /** Null: no store keeps it. */
  session: string | null
  verdict: CaseVerdict
  /** The mean of its scores; null without one. */
  score: number | null
  scores: Record<string, GivenScore>
  /** Why the verdict is `error`; `scorer` names the scorer that failed. */
  error?: { code: string; message: string; scorer?: string }
  /** Why the verdict is `diverged`: the call, and why it could not be played. */
  diverged?: { tool: string; arguments: string; why: string }
  /** Null when the run did not begin. */
  state: AgentState | null
  reason: Reason | null
  /** Why the run itself did not complete. */
  failure?: RunFailure
  /** The answer, cut to 4,000 characters. */
  output: string
  steps: number
  tokens: { input: number; output: number; total: number }
  cost: EvaluationCost
  /** From the first record of the run to its last, in milliseconds. */
  durationMs: number
  guards: GuardSaid[]
}

/** A case, and its runs: as many as it was repeated. */
export interface EvaluatedCase {
  id: string
  tags?: SessionTags
  /** What was said, and what was expected, as texts; cut to 2,000 characters. */
  input: string
  expected?: string
  /** The mean over its scored runs; null when none was scored. */
  score: number | null
  /** The share of its scored runs that passed; null when none was scored. */
  passRate: number | null
  runs: EvaluatedRun[]
}

/** What cases come to together. The intervals are of 95 %. */
export interface ScoreSummary {
  /** Cases that have a score. */
  cases: number
  /** Of the scores of cases, by bootstrap. */
  mean: Interval | null
  /** Of the cases that pass, Wilson's interval; a case that was repeated counts with the share of its runs. */
  passRate: Interval | null
}

/** The middle and the worst of the runs. */
export interface Spread {
  mean: number
  p50: number
  p95: number
  max: number
}

/** What an evaluation comes to. */
export interface EvaluationSummary extends ScoreSummary {
  runs: number
  verdicts: Record<CaseVerdict, number>
  scorers: Record<string, ScoreSummary>
  /** By `NAME=VALUE`. */
  tags: Record<string, ScoreSummary>
  /** How many runs ended so, by `STATE reason`, the most frequent first. */
  states: Record<string, number>
  /** In how many runs a guard spoke, by `GUARD action`. */
  guards: Record<string, number>
  cost: EvaluationCost & { total: number | null }
  tokens: { input: number; output: number; total: number }
  steps: Spread | null
  durationMs: Spread | null
}

/**
 * What `evaluate` resolves with: plain JSON, and the base that a later evaluation is compared with.
 *
 * @example
 * const report: EvaluationReport = await evaluate({ agent, cases: [{ id: 'a', input: 'Go.' }] })
 * console.log(report.summary.passRate?.value) // → 1
 */
export interface EvaluationReport {
  /** What this is. */
  statewright: 'evaluation'
  version: typeof reportVersion
  id: string
  /** Milliseconds since the epoch. */
  startedAt: number
  endedAt: number
  /** It was stopped: the cases that are not in it have not been scored. */
  interrupted?: true
  agent: { model: string; definition: string }
  scorers: string[]
  /** The score from which a case passes. */
  passAt: number
  repeat: number
  seed: number
  cases: EvaluatedCase[]
  summary: EvaluationSummary
}

/** What a function that takes a report has to be given. */
export const reportRule: ArgumentRule = objectRule(
  ['statewright', 'cases', 'summary', 'scorers', 'agent'],
  'a report of evaluate()',
)

/** What a function that compares may be given. */
export const comparisonRule: ArgumentRule = {
  is: (value) => value === null || value === undefined || objectRule(['pairs', 'regressions'], '').is(value),
  phrase: 'what compareReports() returned, or left out',
}

/**
 * A report that was written as JSON.
 *
 * @example
 * const report = await evaluate({ agent, cases: [{ id: 'a', input: 'Go.' }] })
 * console.log(parseReport(JSON.stringify(report)).id === report.id) // → true

 *
 * @throws {EvaluationError} `invalid_report`
 */
export function parseReport(text: string, name = 'The report'): EvaluationReport {
  expectArgument('parseReport(text)', text, { is: (value) => typeof value === 'string', phrase: 'a text' })
  const refuse = (what: string): EvaluationError =>
    new EvaluationError(
      'invalid_report',
      `${name} is no report of an evaluation: ${what}. Name a file that statewright eval --out has written.`,
      name,
    )
  let value: Partial<EvaluationReport> | null
  try {
    value = JSON.parse(text) as Partial<EvaluationReport> | null
  } catch {
    throw refuse('it is no JSON')
  }
  if (value?.statewright !== 'evaluation') throw refuse('it is something else')
  if (typeof value.version !== 'number' || value.version > reportVersion)
    throw refuse(`it has version ${String(value.version)}, and this Statewright knows ${reportVersion}`)
  const isWhole = Array.isArray(value.cases) && value.cases.every(isCase) && Array.isArray(value.scorers)
  if (!isWhole) throw refuse('its cases are damaged')
  return value as EvaluationReport
}

function isCase(value: unknown): boolean {
  const { id, score, runs } = (value ?? {}) as Partial<EvaluatedCase>
  return typeof id === 'string' && (score === null || typeof score === 'number') && Array.isArray(runs)
}
