/** Many runs: budgets that they share. */
export { BudgetError, type BudgetErrorCode } from '../core/budgets/budget-error.js'
export type {
  BudgetAllowance,
  BudgetAmount,
  BudgetStore,
  ReserveAnswer,
  ReserveOptions,
  SettleOptions,
  StoredBudget,
} from '../core/budgets/budget-store.js'
export type {
  BudgetReservation,
  BudgetStatus,
  SharedAmount,
  SharedBudget,
} from '../core/budgets/shared-budget.js'
export type { BudgetPeriod } from './budget-window.js'
export { createBudget, type CreateBudgetOptions } from './create-budget.js'
