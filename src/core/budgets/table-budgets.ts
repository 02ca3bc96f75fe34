import type { BudgetStore } from './budget-store.js'
import {
  type BudgetRecord,
  isInWindow,
  type KeptReservation,
  refuseWindow,
  reserveAmount,
  settleAmount,
} from './ledger.js'

export interface BudgetTable {
  budget(id: string): BudgetRecord | undefined
  /** All budgets, by id. */
  budgets(): BudgetRecord[]
  putBudget(row: BudgetRecord): void
  reservation(id: string): KeptReservation | undefined
  putReservation(budget: string, reservation: KeptReservation): void
  removeReservation(id: string): void
  /** Changes the expiry of a reservation that is not lost. */
  renewReservation(id: string, expiresAt: number): void
  /** The expired reservations that still count as reserved. Forgets those that are too old to be settled. */
  takeExpired(budget: string, time: number): KeptReservation[]
}

/** Creates a budget store on top of a table. `write` wraps a transaction. */
export function createTableBudgets(
  table: BudgetTable,
  now: () => number,
  write: <Value>(work: () => Value) => Value = (work) => work(),
): BudgetStore {
  return {
    reserve: (options) =>
      write(() => {
        const time = now()
        const { budget } = options
        const stored = table.budget(budget) ?? null
        if (!isInWindow(time, options)) return refuseWindow(stored, options, time)
        const { row, changed, answer } = reserveAmount(stored, table.takeExpired(budget, time), options, time)
        table.putBudget(row)
        for (const one of changed) table.putReservation(budget, one)
        return answer
      }),

    settle: ({ budget, reservation, nanoUsd, tokens }) =>
      write(() => {
        const [row, entry] = [table.budget(budget), table.reservation(reservation)]
        if (row === undefined || entry === undefined) return
        table.removeReservation(reservation)
        table.putBudget(settleAmount(row, entry, { nanoUsd, tokens }))
      }),

    renew: (reservations, ttlMs) =>
      write(() => {
        const expiresAt = now() + ttlMs
        for (const id of reservations) table.renewReservation(id, expiresAt)
      }),

    list: (budget) =>
      write(() => {
        const time = now()
        const found = budget === undefined ? table.budgets() : [table.budget(budget) ?? []].flat()
        return found.map((row) => ({ ...row, now: time }))
      }),

    replaceTerms: (budget, terms) =>
      write(() => {
        const row = table.budget(budget)
        if (row) table.putBudget({ ...row, terms })
        return row !== undefined
      }),
  }
}
