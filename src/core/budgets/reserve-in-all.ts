import { describeError } from '../base/errors.js'
import { BudgetError } from './budget-error.js'
import type { BudgetReservation, SharedAmount, SharedBudget } from './shared-budget.js'
import { warnUnsettled } from './warn-unsettled.js'

/** The worst case of one request, for one budget. */
interface WorstAmount {
  /** Null: the price is not known. */
  usd: number | null
  tokens: number
}

/** What a request holds of one budget. */
export interface HeldAmount extends WorstAmount {
  /** Never rejects. */
  settle: (paid: SharedAmount) => Promise<void>
}

/** Budgets by their ids. @throws {BudgetError} `budget_conflict` for two of one id in different stores */
export function indexBudgets(budgets: readonly SharedBudget[]): Map<string, SharedBudget> {
  const byId = new Map<string, SharedBudget>()
  for (const budget of budgets) {
    const { id, store } = byId.get(budget.id) ?? budget
    if (store && budget.store && store !== budget.store) {
      throw new BudgetError(
        'budget_conflict',
        `Two budgets of one request have the id '${id}' and different stores. Give them one store object, or different ids.`,
        id,
      )
    }
    if (!byId.has(id)) byId.set(id, budget)
  }
  return byId
}

/**
 * Reserves for one request in all budgets, or in none; in the order of their ids: two requests that wait for each other would wait for
 * ever. A budget that is there twice is asked once. Rejects with what `getAmount` or the first budget that refuses rejects with.
 */
export async function reserveInAll(
  budgets: readonly SharedBudget[],
  getAmount: (budget: SharedBudget) => Promise<WorstAmount>,
  signal: AbortSignal,
  onUnsettled: (message: string) => void = warnUnsettled,
): Promise<HeldAmount[]> {
  const held: HeldAmount[] = []
  const byId = indexBudgets(budgets)
  try {
    /* oxlint-disable no-await-in-loop -- in the order of their ids */
    for (const budget of [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
      const amount = await getAmount(budget)
      const reservation = await budget.reserve(amount, { signal, onUnsettled })
      held.push({ ...amount, settle: (paid) => settleOrReport(budget.id, reservation, paid, onUnsettled) })
    }
    /* oxlint-enable no-await-in-loop */
    return held
  } catch (error) {
    // What cannot be given back runs out by itself, and the refusal is what counts.
    await Promise.all(held.map(({ settle }) => settle({ usd: 0, tokens: 0 })))
    throw error
  }
}

/** The answer was paid for, whatever a budget of the app's own does now. */
async function settleOrReport(
  id: string,
  reservation: BudgetReservation,
  paid: SharedAmount,
  report: (message: string) => void,
): Promise<void> {
  try {
    await reservation.settle(paid)
  } catch (error) {
    report(`The budget '${id}' did not take a settlement: ${describeError(error)}`)
  }
}
