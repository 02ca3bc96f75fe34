import type { StoredBudget } from '../core/budgets/budget-store.js'
import type { BudgetStatus } from '../core/budgets/shared-budget.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { describeTerms, parseTerms } from './budget-terms.js'
import { findWindow } from './budget-window.js'
import { toStatus } from './create-budget.js'

/** A budget of a store, and its limits in words. */
export interface BudgetRow extends BudgetStatus {
  terms: string
}

/**
 * The budgets that a store keeps, as they stand now, by id.
 *
 * @throws {StoreError} `store_unavailable` for a store that keeps none; `corrupt_log` for limits that cannot be read
 */
export async function listStoredBudgets(
  store: Pick<SessionStore, 'openBudgets'>,
  now: number,
): Promise<BudgetRow[]> {
  if (!store.openBudgets) throw new StoreError('store_unavailable', 'This store keeps no budgets.')
  return (await (await store.openBudgets()).list()).map((one) => toRow(one, now))
}

function toRow(stored: StoredBudget, now: number): BudgetRow {
  const { budget, terms: text } = stored
  const terms = parseTerms(text)
  if (terms === null) {
    throw new StoreError(
      'corrupt_log',
      `The limits of the budget '${budget}' cannot be read: ${text.slice(0, 200)}`,
      budget,
    )
  }
  return {
    ...toStatus(budget, terms, stored, findWindow(now, terms.per, terms.timezone)),
    terms: describeTerms(terms),
  }
}
