/** Many runs: budgets and rate limits that they share, batches of them, schedules that begin them, and messages for all of them. */
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
export type { BatchItem } from './batch-item.js'
export type { BatchProgress } from './batch-progress.js'
export type { BatchResult } from './batch-run.js'
export { runAll, type RunAllOptions } from './run-all.js'
export {
  createLimiter,
  type CreateLimiterOptions,
  type Limiter,
  type LimiterStatus,
} from './create-limiter.js'
export {
  type CatchUp,
  listSchedules,
  type Schedule,
  schedule,
  type ScheduleOptions,
  unschedule,
} from './schedule.js'
export { createScheduler, type RunFiring, type Scheduler, type SchedulerOptions } from './scheduler.js'
export {
  type MessageForAll,
  type SessionSelection,
  sendAll,
  type SendAllOptions,
  type SendAllReceipt,
} from './send-all.js'
