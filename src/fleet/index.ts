/** Many runs: shared budgets and rate limits, batches, waking sleeping sessions, and messages to many sessions. */
export { BudgetError, type BudgetErrorCode } from '../core/budgets/shared-budget.js'
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
export type { BudgetPeriod, CreateBudgetOptions } from './budget-limits.js'
export { createBudget } from './create-budget.js'
export type { BatchItem, BatchProgress, BatchResult, RunAllOptions } from './run-all.js'
export { runAll } from './run-all.js'
export {
  createLimiter,
  type CreateLimiterOptions,
  type Limiter,
  type LimiterStatus,
} from './create-limiter.js'
export type { Waker } from '../core/sessions/alarm-waker.js'
export { createWaker, type WakerOptions } from './waker.js'
export { flexibleLimiter } from './flexible-limiter.js'
export {
  type MessageForAll,
  type SessionSelection,
  sendAll,
  type SendAllOptions,
  type SendAllReceipt,
} from './send-all.js'
