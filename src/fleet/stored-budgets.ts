import type { StoredBudget } from '../core/budgets/budget-store.js'
import type { BudgetStatus } from '../core/budgets/shared-budget.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { describeTerms, parseTerms } from './budget-terms.js'
import { findWindow } from './budget-window.js'
import { checkStored, toStatus } from './create-budget.js'

/** A budget of a store, and its limits in words. */
export interface BudgetRow extends BudgetStatus {
  terms: string
}

/** The budgets of a store, by id. Damaged rows are left out and reported. */
export interface StoredBudgets {
  rows: BudgetRow[]
  /** `corrupt_log`, one for each damaged row. */
  damaged: StoreError[]
}

/**
 * The budgets that a store keeps, as they stand now.
 *
 * @throws {StoreError} `store_unavailable` for a store that keeps none
 */
export async function listStoredBudgets(store: Pick<SessionStore, 'openBudgets'>): Promise<StoredBudgets> {
  if (!store.openBudgets) throw new StoreError('store_unavailable', 'This store keeps no budgets.')
  const found: StoredBudgets = { rows: [], damaged: [] }
  for (const stored of await (await store.openBudgets()).list()) {
    try {
      found.rows.push(toRow(stored))
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      found.damaged.push(error)
    }
  }
  return found
}

function toRow(stored: StoredBudget): BudgetRow {
  const { budget, terms: text, now } = stored
  checkStored(budget, stored)
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
