import { getOrCreate } from '../base/values.js'
import { OrderedList } from '../base/ordered-list.js'
import type { BudgetStore } from './budget-store.js'
import {
  type BudgetRecord,
  forgottenMs,
  isInWindow,
  type KeptReservation,
  refuseWindow,
  reserveAmount,
  settleAmount,
} from './ledger.js'

/** When to check whether a reservation has expired or can be forgotten. */
interface Due {
  at: number
  reservation: string
}

const compareDue = (a: Due, b: Due): number =>
  a.at - b.at || (a.reservation < b.reservation ? -1 : a.reservation > b.reservation ? 1 : 0)

/** Budgets that are kept in memory as long as the process runs. */
export function createMemoryBudgets(now: () => number): BudgetStore {
  const rows = new Map<string, BudgetRecord>()
  const reservations = new Map<string, KeptReservation & { budget: string }>()
  /**
   * Entries per budget, ordered by time. If a reservation was renewed, its entry is inserted again when the entry is
   * due.
   */
  const dueByBudget = new Map<string, OrderedList<Due>>()

  /** Takes the expired reservations of a budget. Forgets reservations that are too old to be settled. */
  const takeExpired = (budget: string, time: number): KeptReservation[] => {
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
  }

  return {
    reserve(options) {
      const time = now()
      const { budget } = options
      const stored = rows.get(budget) ?? null
      if (!isInWindow(time, options)) return refuseWindow(stored, options, time)
      const { row, changed, answer } = reserveAmount(stored, takeExpired(budget, time), options, time)
      rows.set(budget, row)
      for (const one of changed) reservations.set(one.reservation, { ...one, budget })
      if (!answer.granted) return answer
      const due = getOrCreate(dueByBudget, budget, () => new OrderedList<Due>(compareDue))
      due.add({ at: time + options.ttlMs, reservation: options.reservation })
      return answer
    },

    settle({ budget, reservation, nanoUsd, tokens }) {
      const [row, entry] = [rows.get(budget), reservations.get(reservation)]
      if (row === undefined || entry === undefined) return
      reservations.delete(reservation)
      rows.set(budget, settleAmount(row, entry, { nanoUsd, tokens }))
    },

    renew(ids, ttlMs) {
      const expiresAt = now() + ttlMs
      for (const id of ids) {
        const entry = reservations.get(id)
        if (entry?.lost !== null) continue
        reservations.set(id, { ...entry, expiresAt })
        if (expiresAt < entry.expiresAt)
          dueByBudget.get(entry.budget)?.add({ at: expiresAt, reservation: id })
      }
    },

    list(budget) {
      const time = now()
      const one = budget === undefined ? undefined : rows.get(budget)
      const found = budget === undefined ? [...rows.values()] : one ? [one] : []
      return found.sort((a, b) => (a.budget < b.budget ? -1 : 1)).map((row) => ({ ...row, now: time }))
    },

    replaceTerms(budget, terms) {
      const row = rows.get(budget)
      if (row) rows.set(budget, { ...row, terms })
      return row !== undefined
    },
  }
}
