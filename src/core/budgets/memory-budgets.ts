import type { BudgetStore, StoredBudget } from './budget-store.js'
import { forgottenMs, type KeptReservation, reserveAmount, settleAmount } from './ledger.js'

/** Budgets that live as long as the process does. */
export function createMemoryBudgets(now: () => number): BudgetStore {
  const rows = new Map<string, StoredBudget>()
  /** In the order in which they were made. */
  const reservations = new Map<string, KeptReservation & { budget: string }>()

  /** The reservations of a budget that have run out. Those for which no run can be waiting are forgotten. */
  const takeExpired = (budget: string, time: number): KeptReservation[] => {
    const expired: KeptReservation[] = []
    for (const [id, kept] of reservations) {
      if (kept.budget !== budget || kept.expiresAt > time) continue
      if (kept.lost === null) expired.push(kept)
      else if (kept.expiresAt + forgottenMs <= time) reservations.delete(id)
    }
    return expired
  }

  return {
    reserve(asked) {
      const time = now()
      const { budget } = asked
      const { row, changed, answer } = reserveAmount(
        rows.get(budget) ?? null,
        takeExpired(budget, time),
        asked,
        time,
      )
      rows.set(budget, row)
      for (const one of changed) reservations.set(one.reservation, { ...one, budget })
      return answer
    },

    settle({ budget, reservation, nanoUsd, tokens }) {
      const [row, kept] = [rows.get(budget), reservations.get(reservation)]
      if (row === undefined || kept === undefined) return
      reservations.delete(reservation)
      rows.set(budget, settleAmount(row, kept, { nanoUsd, tokens }))
    },

    renew(ids, ttlMs) {
      const expiresAt = now() + ttlMs
      for (const id of ids) {
        const kept = reservations.get(id)
        if (kept?.lost === null) reservations.set(id, { ...kept, expiresAt })
      }
    },

    list(budget) {
      const all = [...rows.values()].filter((row) => budget === undefined || row.budget === budget)
      return all.sort((a, b) => (a.budget < b.budget ? -1 : 1))
    },

    replaceTerms(budget, terms) {
      const row = rows.get(budget)
      if (row) rows.set(budget, { ...row, terms })
      return row !== undefined
    },
  }
}
