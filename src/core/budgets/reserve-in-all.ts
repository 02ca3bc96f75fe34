import type { BudgetReservation, SharedBudget } from './shared-budget.js'

/** The worst case of one request, for one budget. */
interface WorstAmount {
  /** Null: the price is not known. */
  usd: number | null
  tokens: number
}

/** What a request holds of one budget. */
export interface HeldAmount extends WorstAmount {
  reservation: BudgetReservation
}

/**
 * Reserves for one request in all budgets, or in none; in the order of their ids: two requests that wait for each other would wait for
 * ever. A budget that is there twice is asked once. Rejects with what `getAmount` or the first budget that refuses rejects with.
 */
export async function reserveInAll(
  budgets: readonly SharedBudget[],
  getAmount: (budget: SharedBudget) => Promise<WorstAmount>,
  signal: AbortSignal,
): Promise<HeldAmount[]> {
  const held: HeldAmount[] = []
  const byId = new Map(budgets.map((budget) => [budget.id, budget]))
  try {
    /* oxlint-disable no-await-in-loop -- in the order of their ids */
    for (const budget of [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
      const amount = await getAmount(budget)
      held.push({ ...amount, reservation: await budget.reserve(amount, { signal }) })
    }
    /* oxlint-enable no-await-in-loop */
    return held
  } catch (error) {
    // What cannot be given back runs out by itself, and the refusal is what counts.
    await Promise.allSettled(held.map(({ reservation }) => reservation.settle({ usd: 0, tokens: 0 })))
    throw error
  }
}
