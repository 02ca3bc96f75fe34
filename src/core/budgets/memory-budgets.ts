import { getOrCreate } from '../base/values.js'
import { compareText, OrderedList } from '../base/ordered-list.js'
import type { BudgetStore } from './budget-store.js'
import { type BudgetRecord, forgottenMs, type KeptReservation } from './ledger.js'
import { createTableBudgets } from './table-budgets.js'

interface Due {
  at: number
  reservation: string
}

const compareDue = (a: Due, b: Due): number => a.at - b.at || compareText(a.reservation, b.reservation)

export function createMemoryBudgets(now: () => number): BudgetStore {
  const rows = new Map<string, BudgetRecord>()
  const reservations = new Map<string, KeptReservation & { budget: string }>()
  /** Entries per budget, by time. The entry of a renewed reservation is inserted again when it is due. */
  const dueByBudget = new Map<string, OrderedList<Due>>()
  const addDue = (budget: string, due: Due): void =>
    getOrCreate(dueByBudget, budget, () => new OrderedList<Due>(compareDue)).add(due)

  return createTableBudgets(
    {
      budget: (id) => rows.get(id),
      budgets: () => [...rows.values()].sort((a, b) => (a.budget < b.budget ? -1 : 1)),
      putBudget: (row) => void rows.set(row.budget, row),
      reservation: (id) => reservations.get(id),
      putReservation(budget, one) {
        reservations.set(one.reservation, { ...one, budget })
        if (one.lost === null) addDue(budget, { at: one.expiresAt, reservation: one.reservation })
      },
      removeReservation: (id) => void reservations.delete(id),
      renewReservation(id, expiresAt) {
        const entry = reservations.get(id)
        if (entry?.lost !== null) return
        reservations.set(id, { ...entry, expiresAt })
        if (expiresAt < entry.expiresAt) addDue(entry.budget, { at: expiresAt, reservation: id })
      },
      takeExpired(budget, time) {
        const expired: KeptReservation[] = []
        const due = dueByBudget.get(budget)
        const later: Due[] = []
        for (let next = due?.first; next !== undefined && next.at <= time; next = due?.first) {
          const { reservation } = next
          due?.delete(next)
          const entry = reservations.get(reservation)
          if (entry === undefined) continue
          const isLive = entry.lost === null && entry.expiresAt > time
          const at = isLive ? entry.expiresAt : entry.expiresAt + forgottenMs
          if (entry.lost === null && !isLive) expired.push(entry)
          if (entry.lost !== null && at <= time) reservations.delete(reservation)
          else later.push({ at, reservation })
        }
        for (const one of later) due?.add(one)
        return expired
      },
    },
    now,
  )
}
