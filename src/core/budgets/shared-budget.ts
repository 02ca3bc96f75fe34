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
