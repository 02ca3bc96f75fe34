import type { BudgetStore } from '../../core/budgets/budget-store.js'
import { type BudgetRecord, type KeptReservation, forgottenMs } from '../../core/budgets/ledger.js'
import { createTableBudgets } from '../../core/budgets/table-budgets.js'
import { createPrepare, integer, text, textOrNull, type Wrap } from './database.js'
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

const amounts = { spentUsd: integer, spentTokens: integer, reservedUsd: integer, reservedTokens: integer }
const budgetFields = { budget: text('id'), terms: text, windowAt: integer, live: integer, ...amounts }
type BudgetRow = Omit<BudgetRecord, 'spent' | 'reserved'> & Record<keyof typeof amounts, number>

const reservationFields = {
  reservation: text('id'),
  windowAt: integer,
  nanoUsd: integer('usd'),
  tokens: integer,
  expiresAt: integer,
  lost: textOrNull,
}

/** Creates the tables for budgets if they are missing. `write` runs a transaction. */
export function createFileBudgets(database: SqliteDatabase, write: Wrap, now: () => number): BudgetStore {
  database.exec(tablesSql)
  const { run, select } = createPrepare(database)
  const budget = select<BudgetRow>(budgetFields, 'FROM budgets WHERE id = ?')
  const budgets = select<BudgetRow>(budgetFields, 'FROM budgets ORDER BY id')
  const putBudget = run(`
    INSERT OR REPLACE INTO budgets
      (id, terms, window_at, spent_usd, spent_tokens, reserved_usd, reserved_tokens, live)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
  const reservation = select<KeptReservation>(reservationFields, 'FROM budget_reservations WHERE id = ?')
  const putReservation = run(`
    INSERT OR REPLACE INTO budget_reservations (budget, id, window_at, usd, tokens, expires_at, lost)
    VALUES (?, ?, ?, ?, ?, ?, ?)`)
  const expired = select<KeptReservation>(
    reservationFields,
    'FROM budget_reservations WHERE budget = ? AND lost IS NULL AND expires_at <= ?',
  )
  const forget = run(
    'DELETE FROM budget_reservations WHERE budget = ? AND lost IS NOT NULL AND expires_at <= ?',
  )
  const remove = run('DELETE FROM budget_reservations WHERE id = ?')
  const renew = run('UPDATE budget_reservations SET expires_at = ? WHERE id = ? AND lost IS NULL')
  return createTableBudgets(
    {
      budget: (id) => budget(id).map(toBudget)[0],
      budgets: () => budgets().map(toBudget),
      putBudget({ budget, terms, windowAt, spent, reserved, live }) {
        const { nanoUsd, tokens } = reserved
        putBudget(budget, terms, windowAt, spent.nanoUsd, spent.tokens, nanoUsd, tokens, live)
      },
      reservation: (id) => reservation(id)[0],
      putReservation(budget, { reservation: id, windowAt, nanoUsd, tokens, expiresAt, lost }) {
        putReservation(budget, id, windowAt, nanoUsd, tokens, expiresAt, lost)
      },
      removeReservation: (id) => void remove(id),
      renewReservation: (id, expiresAt) => void renew(expiresAt, id),
      takeExpired(budget, time) {
        forget(budget, time - forgottenMs)
        return expired(budget, time)
      },
    },
    now,
    write,
  )
}

function toBudget({ spentUsd, spentTokens, reservedUsd, reservedTokens, ...row }: BudgetRow): BudgetRecord {
  const spent = { nanoUsd: spentUsd, tokens: spentTokens }
  return { ...row, spent, reserved: { nanoUsd: reservedUsd, tokens: reservedTokens } }
}
