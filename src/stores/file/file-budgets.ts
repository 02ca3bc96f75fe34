import type { BudgetStore } from '../../core/budgets/budget-store.js'
import { type BudgetRecord, type KeptReservation, forgottenMs } from '../../core/budgets/ledger.js'
import { createTableBudgets } from '../../core/budgets/table-budgets.js'
import { decodeText, selectBytes, selectInteger } from './database.js'
import type { SqliteDatabase } from './sqlite.js'

const tablesSql = `
  CREATE TABLE IF NOT EXISTS log.budgets (
    id TEXT PRIMARY KEY,
    terms TEXT NOT NULL,
    window_at INTEGER NOT NULL,
    spent_usd INTEGER NOT NULL,
    spent_tokens INTEGER NOT NULL,
    reserved_usd INTEGER NOT NULL,
    reserved_tokens INTEGER NOT NULL,
    live INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS log.budget_reservations (
    id TEXT PRIMARY KEY,
    budget TEXT NOT NULL,
    window_at INTEGER NOT NULL,
    usd INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    lost TEXT
  ) STRICT;
  CREATE INDEX IF NOT EXISTS log.budget_expiry ON budget_reservations (budget, expires_at);
`

/** Creates the tables for budgets if they are missing. `write` runs a transaction. */
export function createFileBudgets(
  database: SqliteDatabase,
  write: <Value>(work: () => Value) => Value,
  now: () => number,
): BudgetStore {
  const one = (sql: string) => database.prepare(sql)
  database.exec(tablesSql)
  const amounts = ['window_at', 'spent_usd', 'spent_tokens', 'reserved_usd', 'reserved_tokens', 'live']
  const budgetColumns = [...['id', 'terms'].map(selectBytes), ...amounts.map(selectInteger)]
  const selectBudget = `SELECT ${budgetColumns.join(', ')} FROM budgets`
  const budget = one(`${selectBudget} WHERE id = ?`)
  const budgets = one(`${selectBudget} ORDER BY id`)
  const putBudget = one(
    `INSERT OR REPLACE INTO budgets (id, terms, ${amounts.join(', ')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const selectReservation = `SELECT ${[
    selectBytes('id'),
    ...['window_at', 'usd', 'tokens', 'expires_at'].map(selectInteger),
    selectBytes('lost'),
  ].join(', ')} FROM budget_reservations`
  const reservation = one(`${selectReservation} WHERE id = ?`)
  const putReservation = one(`
    INSERT OR REPLACE INTO budget_reservations (budget, id, window_at, usd, tokens, expires_at, lost)
    VALUES (?, ?, ?, ?, ?, ?, ?)`)
  const expired = one(`${selectReservation} WHERE budget = ? AND lost IS NULL AND expires_at <= ?`)
  const forget = one(
    'DELETE FROM budget_reservations WHERE budget = ? AND lost IS NOT NULL AND expires_at <= ?',
  )
  const remove = one('DELETE FROM budget_reservations WHERE id = ?')
  const renew = one('UPDATE budget_reservations SET expires_at = ? WHERE id = ? AND lost IS NULL')
  return createTableBudgets(
    {
      budget: (id) => budget.all([id]).map(toBudget)[0],
      budgets: () => budgets.all([]).map(toBudget),
      putBudget({ budget, terms, windowAt, spent, reserved, live }) {
        const { nanoUsd, tokens } = reserved
        putBudget.run([budget, terms, windowAt, spent.nanoUsd, spent.tokens, nanoUsd, tokens, live])
      },
      reservation: (id) => reservation.all([id]).map(toReservation)[0],
      putReservation(budget, { reservation: id, windowAt, nanoUsd, tokens, expiresAt, lost }) {
        putReservation.run([budget, id, windowAt, nanoUsd, tokens, expiresAt, lost])
      },
      removeReservation: (id) => void remove.run([id]),
      renewReservation: (id, expiresAt) => void renew.run([expiresAt, id]),
      takeExpired(budget, time) {
        forget.run([budget, time - forgottenMs])
        return expired.all([budget, time]).map(toReservation)
      },
    },
    now,
    write,
  )
}

type Bytes = Uint8Array

function toBudget(row: unknown): BudgetRecord {
  const [id, terms, windowAt, spentUsd, spentTokens, nanoUsd, tokens, live] = row as [
    ...[Bytes, Bytes],
    ...[number, number, number, number, number, number],
  ]
  const spent = { nanoUsd: spentUsd, tokens: spentTokens }
  return {
    budget: decodeText(id),
    terms: decodeText(terms),
    windowAt,
    spent,
    reserved: { nanoUsd, tokens },
    live,
  }
}

function toReservation(row: unknown): KeptReservation {
  const [id, windowAt, nanoUsd, tokens, expiresAt, why] = row as [
    Bytes,
    number,
    number,
    number,
    number,
    Bytes | null,
  ]
  const lost = why && (decodeText(why) as KeptReservation['lost'])
  return { reservation: decodeText(id), windowAt, nanoUsd, tokens, expiresAt, lost }
}
