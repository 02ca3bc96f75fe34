import { StatewrightError } from '../../core/base/errors.js'

/**
 * - `invalid_cases`: cases that cannot be read; `problems` names each line
 * - `invalid_option`, `not_an_agent`, `invalid_report`: what `evaluate`, `judge` or a comparison was given is none of that
 * - `other_evaluation`: the store has sessions of this evaluation's id that another agent, or another input, has begun
 * - `judge_failed`: a judge gave no verdict · `invalid_score`: a scorer gave no score
 */
export type EvaluationErrorCode =
  | 'invalid_cases'
  | 'invalid_option'
  | 'invalid_report'
  | 'not_an_agent'
  | 'other_evaluation'
  | 'judge_failed'
  | 'invalid_score'

/** What is wrong with one case. */
export interface CaseProblem {
  /** Its line in the file, or its place in the list, from 1. */
  line: number
  message: string
}

/**
 * An evaluation that cannot be made, and why.
 *
 * @example
 * try {
 *   parseCases('{ "id": "a" }')
 * } catch (error) {
 *   if (error instanceof EvaluationError) for (const { line, message } of error.problems) console.log(line, message)
 * }
 */
export class EvaluationError extends StatewrightError {
  override readonly name = 'EvaluationError'
  declare readonly code: EvaluationErrorCode
  /** Of `invalid_cases`: each case that cannot be read. */
  readonly problems: readonly CaseProblem[]

  constructor(
    code: EvaluationErrorCode,
    message: string,
    subject?: string,
    { problems = [], ...options }: ErrorOptions & { problems?: readonly CaseProblem[] } = {},
  ) {
    super(code, message, subject, options)
    this.problems = problems
  }
}

export function evaluationOptionError(key: string, what: string): EvaluationError {
  return new EvaluationError('invalid_option', `evaluate: ${key} ${what}.`, key)
}
