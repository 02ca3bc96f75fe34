import type { RunResult } from '../../../machines/agent/run-result.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { BudgetsOption } from '../../core/budgets/budgets-option.js'
import { describeError } from '../../core/base/describe-error.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import type { EvaluationCase } from './evaluation-case.js'
import { EvaluationError, evaluationOptionError } from './evaluation-error.js'
import type { EvaluatedRun, GivenScore } from './evaluation-report.js'
import { getMean } from './statistics.js'

/**
 * What a scorer returns: a number from 0 to 1, whether the result is right, or one of them with the reason. `usage` is what
 * the scorer itself has used: it counts as the cost of judges.
 */
export type Score =
  | number
  | boolean
  | { score: number | boolean; why?: string; usage?: Pick<Usage, 'cost'> & Partial<Usage> }

/** What a scorer is told besides. */
export interface ScorerContext {
  /** The name of the scorer. */
  name: string
  /** The session of the case. */
  session: string
  /** Where it is. */
  store: SessionStore
  /** The shared budgets of the evaluation, for a scorer that asks a model: `agent.run(…, { budgets })`. Absent: none. */
  budgets?: BudgetsOption | undefined
  /** Aborts when the evaluation is stopped. */
  signal: AbortSignal
}

/**
 * Says how good a result is.
 *
 * @example
 * const exact: Scorer = ({ output }, { expected }) => output === expected
 */
export type Scorer<Expected = unknown> = (
  result: RunResult,
  one: EvaluationCase<Expected>,
  context: ScorerContext,
) => Score | Promise<Score>

/** By name. Without a scorer of yours, a run that completes has the score 1, and another 0. */
export type Scorers = Readonly<Record<string, Scorer>>

const completed: Scorer = ({ state }) => state === 'COMPLETED'

/** Part of the ids of sessions. */
const namePattern = /^\w[\w-]{0,39}$/

/** @throws {EvaluationError} `invalid_option` */
export function checkScorers(given: unknown): Scorers {
  if (given === undefined) return { completed }
  if (typeof given === 'function') return { [nameScorer(given)]: given as Scorer }
  const entries = typeof given === 'object' && given !== null ? Object.entries(given) : []
  const isUsable = entries.length > 0 && entries.every(([, scorer]) => typeof scorer === 'function')
  if (!isUsable)
    throw evaluationOptionError(
      'score',
      'must be a function (result, case) => number, or an object of them by name',
    )
  const wrong = entries.find(([name]) => !namePattern.test(name))
  if (wrong)
    throw evaluationOptionError(
      `score['${wrong[0]}']`,
      'cannot be called so: a name has up to 40 letters, digits, - and _',
    )
  return Object.fromEntries(entries) as Scorers
}

/** A function without a name is called `default` where a module exports it. */
function nameScorer({ name }: { name: string }): string {
  return namePattern.test(name) && name !== 'default' ? name : 'score'
}

/** What the scorers say of a result. */
export interface ScoredResult {
  scores: Record<string, GivenScore>
  /** The mean of the scores; null where a scorer failed. */
  score: number | null
  passed: boolean
  /** What scorers have used; null where it is not known. */
  judgesCost: number | null
  error?: NonNullable<EvaluatedRun['error']>
}

/** A scorer that throws, or returns no score, is an error, not a zero. */
export async function scoreResult(
  scorers: Scorers,
  result: RunResult,
  one: EvaluationCase,
  { passAt, ...context }: Omit<ScorerContext, 'name'> & { passAt: number },
): Promise<ScoredResult> {
  const scores: Record<string, GivenScore> = {}
  let judgesCost: number | null = 0
  let error: ScoredResult['error']
  for (const [name, scorer] of Object.entries(scorers)) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- a later scorer may be a judge, which costs
      const given = await scorer(result, one, { ...context, name })
      const usage = typeof given === 'object' ? given?.usage : undefined
      if (usage) judgesCost = judgesCost === null || usage.cost === null ? null : judgesCost + usage.cost
      scores[name] = readScore(given, name, passAt)
    } catch (thrown) {
      const code = thrown instanceof EvaluationError ? thrown.code : 'scorer_failed'
      const isOwn = thrown instanceof EvaluationError
      const message = isOwn ? thrown.message : `Scorer '${name}' threw: ${describeError(thrown)}`
      error ??= { code, message, scorer: name }
    }
  }
  const values = Object.values(scores)
  const score = error ? null : getMean(values.map((one) => one.score))
  return {
    scores,
    score,
    passed: !error && values.every(({ passed }) => passed),
    judgesCost,
    ...(error && { error }),
  }
}

function readScore(given: unknown, name: string, passAt: number): GivenScore {
  const isWhole = typeof given === 'object' && given !== null
  const { score, why } = (isWhole ? given : { score: given }) as { score: unknown; why?: unknown }
  const value = typeof score === 'boolean' ? Number(score) : score
  if (typeof value !== 'number' || !(value >= 0 && value <= 1)) {
    const shown = typeof value === 'number' ? String(value) : `a value of type ${typeof value}`
    throw new EvaluationError(
      'invalid_score',
      `Scorer '${name}' returned ${shown}: a score is a number from 0 to 1, true or false, or { score, why }.`,
      name,
    )
  }
  return {
    score: value,
    passed: typeof score === 'boolean' ? score : value >= passAt,
    ...(typeof why === 'string' && why !== '' && { why: why.slice(0, 2000) }),
  }
}
