type MaybePromise<Value> = Value | Promise<Value>

/** What is reserved or paid. Whole numbers, so that sums are exact. */
export interface BudgetAmount {
  /** Billionths of a US dollar. */
  nanoUsd: number
  /** Tokens, input and output together. */
  tokens: number
}

/** What a budget allows in one window; null: it does not limit that. */
export type BudgetAllowance = { [Key in keyof BudgetAmount]: number | null }

/** What is reserved for one request, for the moment. */
export interface ReserveOptions extends BudgetAmount {
  /** The id of the budget. */
  budget: string
  /** The limits of the budget, as text. A store keeps those that it has heard first, and reserves nothing under others. */
  terms: string
  allowance: BudgetAllowance
  /** Start of the window, in milliseconds since the epoch. The store reserves only if its own clock is inside the window. */
  windowAt: number
  /** Start of the next window; null: there is none. */
  windowEndsAt: number | null
  /** A new id: of the reservation. */
  reservation: string
  /** Milliseconds until it runs out, unless it is renewed. */
  ttlMs: number
  /** Whether a reservation that has run out counts as spent. Without this it is free again. */
  countsLost: boolean
}

/** A budget as a store has it. */
export interface StoredBudget {
  budget: string
  /** Its limits, as the one who reserved first has told them. */
  terms: string
  windowAt: number
  /** Paid in this window, and reservations that have run out where those count. */
  spent: BudgetAmount
  /** Reserved for requests that are under way. */
  reserved: BudgetAmount
  /** How many requests are under way. */
  live: number
  /** The store's time, in milliseconds since the epoch. Windows belong to this clock. */
  now: number
}

/** What came of a reservation. */
export interface ReserveAnswer extends StoredBudget {
  /** False: nothing is reserved. It does not fit, `terms` differ, or `now` is outside the window that was asked for. */
  granted: boolean
}

/** What a request has cost in the end. */
export interface SettleOptions extends BudgetAmount {
  budget: string
  reservation: string
}

/**
 * Where budgets are kept that several runs share. Each method is one step that nothing of another comes between. A store may
 * answer at once or with a promise; what it cannot do, it says with a `StoreError`.
 *
 * @example
 * const budgets = await memoryStore().openBudgets?.()
 * console.log(await budgets?.list()) // []
 */
export interface BudgetStore {
  /**
   * Reserves an amount if it fits: what is spent, what is reserved, and the amount are at most the allowance. A later window
   * begins with nothing spent and nothing reserved. Reservations that have run out stop being reserved. Outside the window that
   * was asked for, nothing changes. A stored window that has not begun yet, because a clock was wrong, becomes the current one.
   * Totals stop at `Number.MAX_SAFE_INTEGER`.
   *
   * @example
   * const reserve = (budgets: BudgetStore, options: ReserveOptions) => budgets.reserve(options)
   */
  reserve(options: ReserveOptions): MaybePromise<ReserveAnswer>
  /**
   * Ends a reservation: its amount is no longer reserved, or no longer counted as spent where it had run out; what was paid is
   * spent. One that is not there, because it was settled or its window is over, is no error.
   *
   * @example
   * const settle = (budgets: BudgetStore, options: SettleOptions) => budgets.settle(options)
   */
  settle(options: SettleOptions): MaybePromise<void>
  /**
   * Lets reservations last for another `ttlMs` from now. Those that have run out stay so.
   *
   * @example
   * const renew = (budgets: BudgetStore, ids: string[]) => budgets.renew(ids, 60_000)
   */
  renew(reservations: readonly string[], ttlMs: number): MaybePromise<void>
  /**
   * The budgets, by id; with an id, that one alone. Reservations that have run out, and that no `reserve` has met since, are
   * reserved still.
   *
   * @example
   * const list = (budgets: BudgetStore) => budgets.list()
   */
  list(budget?: string): MaybePromise<StoredBudget[]>
  /**
   * Gives a budget other limits. What is spent and reserved stays. False when there is no such budget.
   *
   * @example
   * const raise = (budgets: BudgetStore, terms: string) => budgets.replaceTerms('acme', terms)
   */
  replaceTerms(budget: string, terms: string): MaybePromise<boolean>
}
