import { selectBytes, selectInteger, type Prepare } from './sql-values.js'

/** Made when budgets are first asked for, so that folders without budgets stay as they are. */
const budgetTablesSql = `
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

const rowColumns = [
  ...['id', 'terms'].map(selectBytes),
  ...['window_at', 'spent_usd', 'spent_tokens', 'reserved_usd', 'reserved_tokens', 'live'].map(selectInteger),
].join(', ')
const reservationColumns = [
  selectBytes('id'),
  ...['window_at', 'usd', 'tokens', 'expires_at'].map(selectInteger),
  selectBytes('lost'),
].join(', ')

export type BudgetValues = [Buffer, Buffer, number, number, number, number, number, number]
export type ReservationValues = [Buffer, number, number, number, number, Buffer | null]

/** The SQL of the budgets, prepared once; `create` has been called before. */
export function prepareBudgetStatements(one: Prepare, execute: (sql: string) => void) {
  const prepare = () => ({
    row: one(`SELECT ${rowColumns} FROM budgets WHERE id = ?`).raw(),
    rows: one(`SELECT ${rowColumns} FROM budgets ORDER BY id`).raw(),
    put: one(`
      INSERT INTO budgets (id, terms, window_at, spent_usd, spent_tokens, reserved_usd, reserved_tokens, live)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET terms = excluded.terms, window_at = excluded.window_at,
        spent_usd = excluded.spent_usd, spent_tokens = excluded.spent_tokens, reserved_usd = excluded.reserved_usd,
        reserved_tokens = excluded.reserved_tokens, live = excluded.live`),
    expired: one(`
      SELECT ${reservationColumns} FROM budget_reservations
      WHERE budget = ? AND lost IS NULL AND expires_at <= ?`).raw(),
    forget: one('DELETE FROM budget_reservations WHERE budget = ? AND lost IS NOT NULL AND expires_at <= ?'),
    reservation: one(`SELECT ${reservationColumns} FROM budget_reservations WHERE id = ?`).raw(),
    hold: one(`
      INSERT INTO budget_reservations (id, budget, window_at, usd, tokens, expires_at, lost) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET lost = excluded.lost`),
    drop: one('DELETE FROM budget_reservations WHERE id = ?'),
    renew: one('UPDATE budget_reservations SET expires_at = ? WHERE id = ? AND lost IS NULL'),
  })
  let prepared: ReturnType<typeof prepare> | undefined
  return {
    create() {
      execute(budgetTablesSql)
    },
    get sql() {
      return (prepared ??= prepare())
    },
  }
}
