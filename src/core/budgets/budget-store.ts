import type { MaybePromise } from '../base/maybe-promise.js'

/** A reserved or paid amount, in integers so that sums are exact. */
export interface BudgetAmount {
  /** Billionths of a US dollar. */
  nanoUsd: number
  /** Input and output tokens together. */
  tokens: number
}

/** The limits of a budget in one window. Null means unlimited. */
export type BudgetAllowance = { [Key in keyof BudgetAmount]: number | null }

/** A reservation for one request. */
export interface ReserveOptions extends BudgetAmount {
  /** The id of the budget. */
  budget: string
  /** The serialized limits. A store keeps the first ones and refuses reservations with others. */
  terms: string
  allowance: BudgetAllowance
  /** Start of the window, in milliseconds since the epoch. The store reserves only if its own clock is inside the window. */
  windowAt: number
  /** Start of the next window, or null. */
  windowEndsAt: number | null
  /** A new id for the reservation. */
  reservation: string
  /** Milliseconds until the reservation expires, unless it is renewed. */
  ttlMs: number
  /** Whether an expired reservation counts as spent. If false, the reservation's amount is released. */
  countsLost: boolean
}

/** A budget in a store. */
export interface StoredBudget {
  budget: string
  /** The limits set by the first reservation. */
  terms: string
  windowAt: number
  /** The amount paid in this window, plus expired reservations that count as spent. */
  spent: BudgetAmount
  /** The amount reserved for requests in progress. */
  reserved: BudgetAmount
  /** Number of requests in progress. */
  live: number
  /** The store's time, in milliseconds since the epoch. Windows are based on this clock. */
  now: number
}

/** The result of a reservation. */
export interface ReserveAnswer extends StoredBudget {
  /** False if nothing was reserved, because the amount does not fit, `terms` differ, or `now` is outside the requested window. */
  granted: boolean
}

/** The final cost of a request. */
export interface SettleOptions extends BudgetAmount {
  budget: string
  reservation: string
}

/**
 * Storage for budgets that several runs share. Each method is atomic. Methods may be synchronous or return a promise.
 * They fail with a `StoreError`.
 * @example
 * const budgets = await memoryStore().openBudgets?.()
 * console.log(await budgets?.list()) // []
 */
export interface BudgetStore {
  /**
   * Reserves an amount if the sum of the spent, reserved and new amounts is within the allowance. Each window starts
   * with zero spent and reserved amounts. Expired reservations no longer count as reserved. If the store's time is
   * outside the requested window, nothing changes. A stored window in the future (caused by a wrong clock) becomes the
   * current window. Totals are capped at `Number.MAX_SAFE_INTEGER`.
   * @example
   * const reserve = (budgets: BudgetStore, options: ReserveOptions) => budgets.reserve(options)
   */
  reserve(options: ReserveOptions): MaybePromise<ReserveAnswer>
  /**
   * Ends a reservation and adds the paid amount to the spent amount. The reserved amount no longer counts as reserved,
   * or as spent if the reservation had expired. A missing reservation is not an error, because the reservation may have
   * been settled already or its window may be over.
   * @example
   * const settle = (budgets: BudgetStore, options: SettleOptions) => budgets.settle(options)
   */
  settle(options: SettleOptions): MaybePromise<void>
  /**
   * Extends reservations until `ttlMs` from now. Expired reservations stay expired.
   * @example
   * const renew = (budgets: BudgetStore, ids: string[]) => budgets.renew(ids, 60_000)
   */
  renew(reservations: readonly string[], ttlMs: number): MaybePromise<void>
  /**
   * Lists all budgets in id order, or only the budget with this id. Expired reservations still count as reserved until
   * a `reserve` processes them.
   * @example
   * const list = (budgets: BudgetStore) => budgets.list()
   */
  list(budget?: string): MaybePromise<StoredBudget[]>
  /**
   * Replaces the limits of a budget. Spent and reserved amounts are kept. Returns false if the budget does not exist.
   * @example
   * const raise = (budgets: BudgetStore, terms: string) => budgets.replaceTerms('acme', terms)
   */
  replaceTerms(budget: string, terms: string): MaybePromise<boolean>
}
