import type { BudgetStore } from '../../core/budgets/budget-store.js'
import {
  type BudgetRecord,
  type KeptReservation,
  forgottenMs,
  isInWindow,
  refuseWindow,
  reserveAmount,
  settleAmount,
} from '../../core/budgets/ledger.js'
import type { BudgetValues, ReservationValues, Statements } from './file-statements.js'
import { decodeText } from './database.js'

/** Budgets in a store file. `write` runs a transaction, and `use` runs a read. */
export function createFileBudgets(
  write: <Value>(work: (sql: Statements) => Value) => Value,
  now: () => number,
): BudgetStore {
  const sql = write((all) => all.prepareBudgets())

  const findRow = (id: string): BudgetRecord | null => {
    const [values] = sql.row.all([id]) as BudgetValues[]
    return values ? toRow(values) : null
  }
  const putRow = (row: BudgetRecord): void => {
    const { budget, terms, windowAt, spent, reserved, live } = row
    sql.put.run([
      budget,
      terms,
      windowAt,
      spent.nanoUsd,
      spent.tokens,
      reserved.nanoUsd,
      reserved.tokens,
      live,
    ])
  }

  return {
    reserve: (options) =>
      write(() => {
        const time = now()
        const stored = findRow(options.budget)
        if (!isInWindow(time, options)) return refuseWindow(stored, options, time)
        const expired = (sql.expired.all([options.budget, time]) as ReservationValues[]).map(toReservation)
        const { row, changed, answer } = reserveAmount(stored, expired, options, time)
        putRow(row)
        for (const one of changed) {
          const { reservation, windowAt, nanoUsd, tokens, expiresAt, lost } = one
          sql.hold.run([reservation, options.budget, windowAt, nanoUsd, tokens, expiresAt, lost])
        }
        sql.forget.run([options.budget, time - forgottenMs])
        return answer
      }),

    settle: ({ budget, reservation, nanoUsd, tokens }) =>
      write(() => {
        const [values] = sql.reservation.all([reservation]) as ReservationValues[]
        const row = findRow(budget)
        if (values === undefined || row === null) return
        sql.drop.run([reservation])
        putRow(settleAmount(row, toReservation(values), { nanoUsd, tokens }))
      }),

    renew: (reservations, ttlMs) =>
      write(() => {
        const expiresAt = now() + ttlMs
        for (const id of reservations) sql.renew.run([expiresAt, id])
      }),

    list: (budget) =>
      write(() => {
        const found = budget === undefined ? sql.rows.all([]) : sql.row.all([budget])
        const time = now()
        return (found as BudgetValues[]).map((values) => ({ ...toRow(values), now: time }))
      }),

    replaceTerms: (budget, terms) =>
      write(() => {
        const row = findRow(budget)
        if (row) putRow({ ...row, terms })
        return row !== null
      }),
  }
}

function toRow([id, terms, windowAt, spentUsd, spentTokens, usd, tokens, live]: BudgetValues): BudgetRecord {
  return {
    budget: decodeText(id),
    terms: decodeText(terms),
    windowAt,
    spent: { nanoUsd: spentUsd, tokens: spentTokens },
    reserved: { nanoUsd: usd, tokens },
    live,
  }
}

function toReservation(values: ReservationValues): KeptReservation {
  const [id, windowAt, nanoUsd, tokens, expiresAt, lost] = values
  const reservation = decodeText(id)
  return {
    reservation,
    windowAt,
    nanoUsd,
    tokens,
    expiresAt,
    lost: lost === null ? null : (decodeText(lost) as KeptReservation['lost']),
  }
}
