import { StatewrightError, configError } from '../base/errors.js'

/** A requested or paid amount. Units that the budget does not limit can be omitted. */
export interface SharedAmount {
  /** US dollars. Null if unknown. */
  usd?: number | null
  /** Input and output tokens together. Null if unknown. */
  tokens?: number | null
}

/** A reservation for one request, until it is settled. */
export interface BudgetReservation {
  /**
   * Ends the reservation. The paid amount counts as spent and the rest is released. If the paid amount is unknown, the
   * whole reserved amount counts as spent. Later calls have no effect. A settlement that the store rejects is reported
   * and retried for up to a day.
   * @example
   * const held = await budget.reserve({ usd: 0.02, tokens: 3_000 })
   * await held.settle({ usd: 0.011, tokens: 1_800 })
   * @throws {ConfigError} `invalid_config` if an amount is not a non-negative number. The reservation stays open
   */
  settle(paid: SharedAmount): Promise<void>
}

/** The status of a budget. */
export interface BudgetStatus {
  id: string
  /** A key is absent if its unit is unlimited. */
  limits: { usd?: number; tokens?: number }
  /** Start of the window and start of the next window, in milliseconds since the epoch. Null without `per`. */
  windowAt: number | null
  resetsAt: number | null
  /** The amount paid in this window. */
  spent: { usd: number; tokens: number }
  /** The amount reserved for requests in progress. */
  reserved: { usd: number; tokens: number }
  /** The amount neither spent nor reserved. A key is absent if its unit is unlimited. */
  left: { usd?: number; tokens?: number }
  /** Number of requests in progress. */
  live: number
}

/** Options for a reservation. */
export interface ReservationOptions {
  /** Stops the wait for the budget when the signal aborts. */
  signal?: AbortSignal | undefined
  /** Called with a message if the store rejects the settlement. Defaults to a process warning. */
  onUnsettled?: ((message: string) => void) | undefined
}

/** A budget that several runs spend from. `createBudget` from `statewright/fleet` creates one. */
export interface SharedBudget {
  /** The id of the budget, unique in its store. */
  readonly id: string
  /** The store of the budget. A run rejects two budgets with the same id and different stores. */
  readonly store?: object
  /** Output tokens to reserve for a request without a cap on its output. */
  readonly reserveOutputTokens: number
  /** Whether the budget is limited in USD, so that the price of a request must be known. */
  readonly needsPrice: boolean
  /**
   * Reserves an amount. If the amount does not fit now, waits as long as requests in progress may still settle for less
   * than they reserved.
   * @example
   * const held = await budget.reserve({ usd: 0.02, tokens: 3_000 })
   * @throws {BudgetError} `budget_exceeded`, `budget_conflict`, `unknown_price`
   * @throws {StoreError} if the store is unavailable. Nothing is reserved
   */
  reserve(amount: SharedAmount, options?: ReservationOptions): Promise<BudgetReservation>
  /**
   * The status of the budget in its store.
   * @example
   * const { left } = await budget.status()
   * @throws {BudgetError} `budget_conflict`
   * @throws {StoreError}
   */
  status(): Promise<BudgetStatus>
  /**
   * Replaces the limits that the store has for this budget. From then on, reservations from processes with the old
   * limits are refused. Spent amounts are kept.
   * @example
   * await budget.replaceLimits()
   * @throws {StoreError}
   */
  replaceLimits(): Promise<void>
}

/**
 * - `budget_exceeded`: the remaining budget does not cover the request
 * - `budget_conflict`: the stored limits differ, or two budgets with the same id are in different stores
 * - `unknown_price`: the budget is in USD, and the price of the model is unknown
 * - `unknown_budget`: the store has no budget with this id
 */
export type BudgetErrorCode = 'budget_exceeded' | 'budget_conflict' | 'unknown_price' | 'unknown_budget'

/**
 * The error for a request that a shared budget refuses. `subject` is the id of the budget.
 * @example
 * const isEmpty = (error: unknown) => error instanceof BudgetError && error.code === 'budget_exceeded'
 */
export class BudgetError extends StatewrightError {
  override readonly name = 'BudgetError'
  declare readonly code: BudgetErrorCode
  /** Start of the next window, in milliseconds since the epoch, or null. */
  readonly resetsAt: number | null
  /** Milliseconds until the next window, if runs wait (`onEmpty: 'wait'`). Null if the run ends. */
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

/** The run that spends. Passed to a function that selects the run's budgets. */
export interface SpendingRun {
  /** The tags of the run's session. Empty without a store. */
  tags: Readonly<Record<string, string>>
  sessionId: string
}

/** The shared budgets that runs spend from. A function is called before each request. */
export type BudgetsOption = readonly SharedBudget[] | ((run: SpendingRun) => readonly SharedBudget[])

/** @throws {ConfigError} `invalid_config` if the value is not a list of budgets, or two budgets have the same id */
export function checkBudgets(value: unknown, key = 'budgets'): BudgetsOption | undefined {
  if (value === undefined || typeof value === 'function') return value as BudgetsOption | undefined
  return checkBudgetList(value, key)
}

/** @throws {ConfigError} as `checkBudgets` */
export function checkBudgetList(value: unknown, key: string): readonly SharedBudget[] {
  if (!Array.isArray(value))
    throw configError(`${key} must be a list of budgets, or a function that returns one.`, key)
  const list = value as SharedBudget[]
  const wrong = list.findIndex((one) => typeof (one as Partial<SharedBudget> | null)?.reserve !== 'function')
  const at = `${key}[${wrong}]`
  if (wrong >= 0)
    throw configError(`${at} must be the return value of createBudget() from statewright/fleet.`, at)
  const ids = list.map(({ id }) => id)
  const twice = ids.find((id, i) => ids.indexOf(id) !== i)
  if (twice === undefined) return list
  throw configError(`${key} contains the budget '${twice}' twice. List each budget once.`, key)
}
