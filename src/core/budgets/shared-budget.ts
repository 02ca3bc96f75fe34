import { ConfigError, StatewrightError } from '../base/errors.js'

/** What is asked of a budget, or was paid. What the budget does not limit may be left out. */
export interface SharedAmount {
  /** US dollars; null: not known. */
  usd?: number | null
  /** Input and output together; null: not known. */
  tokens?: number | null
}

/** What is reserved for one request, until it is settled. */
export interface BudgetReservation {
  /**
   * Ends the reservation: what was paid is spent, and the rest is free again. What is not known counts as it was reserved. Only the
   * first call counts. A settlement that the store does not take is reported and tried again, for a day at most.
   *
   * @example
   * const held = await budget.reserve({ usd: 0.02, tokens: 3_000 })
   * await held.settle({ usd: 0.011, tokens: 1_800 })
   * @throws {ConfigError} `invalid_config` for an amount that is not a number from 0. The reservation stays open
   */
  settle(paid: SharedAmount): Promise<void>
}

/** How a budget stands. */
export interface BudgetStatus {
  id: string
  /** Absent: not limited. */
  limits: { usd?: number; tokens?: number }
  /** When the window began and when the next one begins, in milliseconds since the epoch; null without `per`. */
  windowAt: number | null
  resetsAt: number | null
  /** Paid in this window. */
  spent: { usd: number; tokens: number }
  /** Reserved for requests that are under way. */
  reserved: { usd: number; tokens: number }
  /** Neither spent nor reserved. Absent: not limited. */
  left: { usd?: number; tokens?: number }
  /** How many requests are under way. */
  live: number
}

/** How an amount is reserved. */
export interface ReservationOptions {
  /** Ends the wait. */
  signal?: AbortSignal | undefined
  /** Called with a sentence when the store does not take the settlement. Default: a warning of the process. */
  onUnsettled?: ((message: string) => void) | undefined
}

/**
 * A budget that several runs spend from. `createBudget` of `statewright/fleet` makes one.
 */
export interface SharedBudget {
  /** Unique in its store. */
  readonly id: string
  /** Where it is kept. Budgets of one id are refused in one run if their stores differ. */
  readonly store?: object
  /** Output tokens that are reserved for a request that has no cap of its own. */
  readonly reserveOutputTokens: number
  /** Whether it is in USD, so that the price of a request has to be known. */
  readonly needsPrice: boolean
  /**
   * Reserves an amount. Waits while it would fit if requests under way turn out cheaper than what is reserved for them.
   *
   * @example
   * const held = await budget.reserve({ usd: 0.02, tokens: 3_000 })
   * @throws {BudgetError} `budget_exceeded`, `budget_conflict`, `unknown_price`
   * @throws {StoreError} when the store is away: nothing is reserved
   */
  reserve(amount: SharedAmount, options?: ReservationOptions): Promise<BudgetReservation>
  /**
   * How the budget stands in its store.
   *
   * @example
   * const { left } = await budget.status()
   * @throws {BudgetError} `budget_conflict`
   * @throws {StoreError}
   */
  status(): Promise<BudgetStatus>
  /**
   * Gives the budget these limits in the store, in place of those that it has there. Processes that have made it with the others
   * are refused from then on. What is spent stays spent.
   *
   * @example
   * await budget.replaceLimits()
   * @throws {StoreError}
   */
  replaceLimits(): Promise<void>
}

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

/** The run that spends, for a function that says which budgets it spends from. */
export interface SpendingRun {
  /** The tags of its session; none without a store. */
  tags: Readonly<Record<string, string>>
  sessionId: string
}

/** The shared budgets that runs spend from: a list, or a function that is asked before each request. */
export type BudgetsOption = readonly SharedBudget[] | ((run: SpendingRun) => readonly SharedBudget[])

/** @throws {ConfigError} `invalid_config` for what is no list of budgets, and for two of one id */
export function checkBudgets(given: unknown, key = 'budgets'): BudgetsOption | undefined {
  if (given === undefined || typeof given === 'function') return given as BudgetsOption | undefined
  return checkBudgetList(given, key)
}

/** @throws {ConfigError} as `checkBudgets` */
export function checkBudgetList(given: unknown, key: string): readonly SharedBudget[] {
  const list: unknown[] | null = Array.isArray(given) ? given : null
  const wrong = list?.findIndex((one) => typeof (one as Partial<SharedBudget> | null)?.reserve !== 'function')
  if (list === null || (wrong !== undefined && wrong >= 0)) {
    const at = list === null ? key : `${key}[${wrong}]`
    throw new ConfigError(
      'invalid_config',
      `${at} must be ${list === null ? 'a list of budgets, or a function that returns one' : 'what createBudget() of statewright/fleet returns'}.`,
      at,
    )
  }
  const ids = (list as SharedBudget[]).map(({ id }) => id)
  const twice = ids.find((id, i) => ids.indexOf(id) !== i)
  if (twice !== undefined) {
    throw new ConfigError('invalid_config', `${key} has the budget '${twice}' twice. Give each once.`, key)
  }
  return list as SharedBudget[]
}
