import { StatewrightError } from '../base/errors.js'

/**
 * - `budget_exceeded`: what is left of the budget does not pay for the request
 * - `budget_conflict`: the store has the budget with other limits, or two budgets of one id have different stores
 * - `unknown_price`: the budget is in USD, and the price of the model is not known
 * - `unknown_budget`: the store has no budget of this id
 */
export type BudgetErrorCode = 'budget_exceeded' | 'budget_conflict' | 'unknown_price' | 'unknown_budget'

/**
 * What a shared budget does not allow. `subject` is the id of the budget.
 *
 * @example
 * const isEmpty = (error: unknown) => error instanceof BudgetError && error.code === 'budget_exceeded'
 */
export class BudgetError extends StatewrightError {
  override readonly name = 'BudgetError'
  declare readonly code: BudgetErrorCode
  /** When the next window begins, in milliseconds since the epoch; null when there is none. */
  readonly resetsAt: number | null
  /** Milliseconds until then, for a budget that runs wait for (`onEmpty: 'wait'`); null: a run ends. */
  readonly waitMs: number | null

  constructor(
    code: BudgetErrorCode,
    message: string,
    subject: string,
    { resetsAt = null, waitMs = null }: { resetsAt?: number | null; waitMs?: number | null } = {},
  ) {
    super(code, message, subject)
    this.resetsAt = resetsAt
    this.waitMs = waitMs
  }
}
