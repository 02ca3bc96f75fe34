import type { BudgetStore, StoredBudget } from '../../core/budgets/budget-store.js'
import { forgottenMs, refuseWindow } from '../../core/budgets/ledger.js'
import { type Query, toColumns } from './postgres-rows.js'
import type { DigestTable, LogDigest } from '../../core/sessions/store/log-digests.js'
import type { SessionTimers, StoredTimer } from '../../core/sessions/store/timers.js'

/** Each call is one statement, which locks the budget's row and evaluates it again after waiting. */
export async function openPostgresBudgets(
  query: Query,
  schema: string,
  time: () => number | null,
): Promise<BudgetStore> {
  await query(createBudgetTablesSql(schema), [])
  const sql = createBudgetStatements(schema)
  return {
    async reserve(options) {
      const { budget, terms, windowAt, windowEndsAt, reservation, allowance } = options
      const amounts = [options.nanoUsd, options.tokens, allowance.nanoUsd, allowance.tokens]
      const times = [options.ttlMs, options.countsLost, forgottenMs, windowEndsAt]
      const values = [budget, time(), terms, windowAt, reservation, ...amounts, ...times]
      const [row] = await query<{ stored: string; granted: string | null }>(sql.reserve, values)
      const stored = JSON.parse(row?.stored ?? '') as StoredBudget | { budget: null; now: number }
      if (stored.budget !== null) return { ...stored, granted: row?.granted === reservation }
      // The budget does not exist, and the requested window is not the current one.
      return refuseWindow(null, options, stored.now)
    },

    async settle({ reservation, nanoUsd, tokens }) {
      await query(sql.settle, [reservation, nanoUsd, tokens])
    },

    async renew(reservations, ttlMs) {
      await query(sql.renew, [[...reservations], time(), ttlMs])
    },

    async list(budget) {
      const rows = await query<{ stored: string }>(sql.list, [budget ?? null, time()])
      return rows.map(({ stored }) => JSON.parse(stored) as StoredBudget)
    },

    replaceTerms: async (budget, terms) => (await query(sql.replaceTerms, [budget, terms])).length > 0,
  }
}

/** Run on first use. The second of two concurrent transactions waits and finds the tables. */
const createBudgetTablesSql = (schema: string): string => `
  SELECT pg_advisory_xact_lock(hashtext('statewright'), hashtext('${schema}'));
  CREATE TABLE IF NOT EXISTS "${schema}".budgets (
    id text COLLATE "C" PRIMARY KEY,
    terms text NOT NULL,
    window_at bigint NOT NULL,
    spent_usd bigint NOT NULL,
    spent_tokens bigint NOT NULL,
    reserved_usd bigint NOT NULL,
    reserved_tokens bigint NOT NULL,
    live bigint NOT NULL,
    granted text
  );
  CREATE TABLE IF NOT EXISTS "${schema}".budget_reservations (
    id text PRIMARY KEY,
    budget text COLLATE "C" NOT NULL,
    window_at bigint NOT NULL,
    usd bigint NOT NULL,
    tokens bigint NOT NULL,
    expires_at bigint NOT NULL,
    lost text
  );
  CREATE INDEX IF NOT EXISTS budget_expiry ON "${schema}".budget_reservations (budget, expires_at);`

/** The rules of `core/budgets/ledger.ts` in SQL. `$2` is the time, or null for the server's clock. */
function createBudgetStatements(schema: string) {
  const budgets = `"${schema}".budgets`
  const reservations = `"${schema}".budget_reservations`
  const now = `coalesce($2::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`
  const columns = 'id, terms, window_at, spent_usd, spent_tokens, reserved_usd, reserved_tokens, live'
  const toAmount = (what: string) => `jsonb_build_object('nanoUsd', ${what}_usd, 'tokens', ${what}_tokens)`
  const toStored = (at: string) =>
    `jsonb_build_object('budget', id, 'terms', terms, 'windowAt', window_at, 'spent', ${toAmount('spent')},
      'reserved', ${toAmount('reserved')}, 'live', live, 'now', ${at})::text AS stored`
  /** Like `limitTotal`, because Postgres totals can exceed safe JavaScript integers. */
  const limit = (total: string) => `least(${Number.MAX_SAFE_INTEGER}, greatest(0, ${total}))`
  /** The amount of the lost reservations in the budget's current window. */
  const lost = (what: string) =>
    `(SELECT coalesce(sum(${what}), 0)::bigint FROM expired e WHERE e.window_at = b.window_at AND b.window_at = $4::bigint)`
  /** A window in the future was opened by a wrong clock, so its spending counts in the current window. */
  const spent = (what: string) => `
    CASE WHEN b.window_at < $4::bigint THEN 0
      WHEN b.window_at > $4::bigint THEN ${limit(`b.spent_${what} + b.reserved_${what}`)}
      WHEN $11::boolean THEN ${limit(`b.spent_${what} + ${lost(what)}`)}
      ELSE b.spent_${what} END`
  const reserved = (what: string) =>
    `CASE WHEN b.window_at = $4::bigint THEN ${limit(`b.reserved_${what} - ${lost(what)}`)} ELSE 0 END`
  const fits = (what: string, amount: string, most: string) =>
    `(${most}::bigint IS NULL OR (${spent(what)}) + (${reserved(what)}) + ${amount}::bigint <= ${most}::bigint)`
  const granted = `(b.terms = $3 AND ${fits('usd', '$6', '$8')} AND ${fits('tokens', '$7', '$9')})`
  const firstGranted = `(($8::bigint IS NULL OR $6::bigint <= $8::bigint) AND ($9::bigint IS NULL OR $7::bigint <= $9::bigint))`
  const ifGranted = (amount: string) => `CASE WHEN ${granted} THEN ${amount}::bigint ELSE 0 END`
  const ifFirst = (amount: string) => `CASE WHEN ${firstGranted} THEN ${amount}::bigint ELSE 0 END`

  return {
    /**
     * $1 budget, $3 terms, $4 window, $5 reservation, $6 and $7 amount, $8 and $9 allowance, $10 milliseconds, $11
     * whether lost reservations count, $12 milliseconds until a lost reservation is deleted, $13 next window.
     * Reservations locked by another statement are skipped. Outside the window, only the stored row is returned.
     */
    reserve: `
      WITH moment AS (
        SELECT at FROM (SELECT ${now} AS at) t WHERE at >= $4::bigint AND ($13::bigint IS NULL OR at < $13::bigint)
      ), expired AS (
        UPDATE ${reservations} SET lost = CASE WHEN $11::boolean THEN 'counted' ELSE 'free' END
        WHERE id IN (
          SELECT r.id FROM ${reservations} r, moment
          WHERE budget = $1 AND lost IS NULL AND expires_at <= moment.at FOR UPDATE OF r SKIP LOCKED
        )
        RETURNING window_at, usd, tokens, 1 AS live
      ), forgotten AS (
        DELETE FROM ${reservations} WHERE id IN (
          SELECT r.id FROM ${reservations} r, moment
          WHERE budget = $1 AND lost IS NOT NULL AND expires_at <= moment.at - $12::bigint FOR UPDATE OF r SKIP LOCKED
        )
      ), kept AS (
        INSERT INTO ${budgets} AS b (${columns}, granted)
        SELECT $1, $3, $4::bigint, 0, 0, ${ifFirst('$6')}, ${ifFirst('$7')}, ${ifFirst('1')},
          CASE WHEN ${firstGranted} THEN $5::text END
        FROM moment
        ON CONFLICT (id) DO UPDATE SET
          window_at = $4::bigint,
          spent_usd = ${spent('usd')},
          spent_tokens = ${spent('tokens')},
          reserved_usd = ${limit(`${reserved('usd')} + ${ifGranted('$6')}`)},
          reserved_tokens = ${limit(`${reserved('tokens')} + ${ifGranted('$7')}`)},
          live = CASE WHEN b.window_at = $4::bigint THEN b.live - ${lost('live')} ELSE 0 END + ${ifGranted('1')},
          granted = CASE WHEN ${granted} THEN $5::text END
        RETURNING ${columns}, granted
      ), held AS (
        INSERT INTO ${reservations} (id, budget, window_at, usd, tokens, expires_at)
        SELECT $5, kept.id, window_at, $6::bigint, $7::bigint, moment.at + $10::bigint FROM kept, moment WHERE granted = $5
      )
      SELECT ${toStored('(SELECT at FROM moment)')}, granted FROM kept
      UNION ALL
      SELECT ${toStored(now)}, NULL FROM (SELECT 1) one LEFT JOIN ${budgets} ON id = $1
      WHERE NOT EXISTS (SELECT FROM moment)`,

    /** $1 reservation, $2 and $3 amount paid. */
    settle: `
      WITH gone AS (
        DELETE FROM ${reservations} WHERE id = $1 RETURNING budget, window_at, usd, tokens, lost
      )
      UPDATE ${budgets} b SET
        spent_usd = ${limit(`greatest(0, b.spent_usd - CASE WHEN gone.lost = 'counted' THEN gone.usd ELSE 0 END) + $2::bigint`)},
        spent_tokens = ${limit(`greatest(0, b.spent_tokens - CASE WHEN gone.lost = 'counted' THEN gone.tokens ELSE 0 END) + $3::bigint`)},
        reserved_usd = ${limit(`b.reserved_usd - CASE WHEN gone.lost IS NULL THEN gone.usd ELSE 0 END`)},
        reserved_tokens = ${limit(`b.reserved_tokens - CASE WHEN gone.lost IS NULL THEN gone.tokens ELSE 0 END`)},
        live = b.live - CASE WHEN gone.lost IS NULL THEN 1 ELSE 0 END
      FROM gone WHERE b.id = gone.budget AND b.window_at = gone.window_at`,

    /** $1 reservations, $3 milliseconds. */
    renew: `
      UPDATE ${reservations} SET expires_at = ${now} + $3::bigint
      WHERE id IN (
        SELECT id FROM ${reservations} WHERE id = ANY($1::text[]) AND lost IS NULL ORDER BY id FOR UPDATE SKIP LOCKED
      )`,

    list: `
      SELECT ${toStored(now)} FROM ${budgets} WHERE $1::text IS NULL OR id = $1 ORDER BY id`,

    replaceTerms: `UPDATE ${budgets} SET terms = $2 WHERE id = $1 RETURNING id`,
  }
}

export async function openPostgresDigests(query: Query, schema: string): Promise<DigestTable> {
  const digests = `"${schema}".digests`
  // Users without the right to create tables need only existing tables.
  const there = await query(
    `SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'digests'`,
    [schema],
  )
  if (there.length === 0) await query(createDigestTableSql(schema), [])
  return {
    read: (sessionIds) =>
      query<LogDigest>(
        `SELECT session_id AS "sessionId", head, created_at AS "createdAt", data FROM ${digests}
         WHERE session_id = ANY($1::text[])`,
        [sessionIds],
      ),

    async put(all) {
      // A concurrent deletion of the session waits for this statement and then deletes its digest.
      await query(
        `INSERT INTO ${digests} (session_id, head, created_at, data)
        SELECT s.id, s.head, s.created_at, g.data
        FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS g (id, head, created_at, data)
        JOIN "${schema}".sessions s ON s.id = g.id AND s.head = g.head AND s.created_at = g.created_at
        ORDER BY s.id FOR KEY SHARE OF s
        ON CONFLICT (session_id) DO UPDATE SET head = excluded.head, created_at = excluded.created_at, data = excluded.data`,
        toColumns(all, ['sessionId', 'head', 'createdAt', 'data']),
      )
    },
  }
}

/** Run on first use. The second of two concurrent transactions waits and finds the table. */
const createDigestTableSql = (schema: string): string => `
  SELECT pg_advisory_xact_lock(hashtext('statewright'), hashtext('${schema}'));
  CREATE TABLE IF NOT EXISTS "${schema}".digests (
    session_id text COLLATE "C" PRIMARY KEY REFERENCES "${schema}".sessions ON DELETE CASCADE,
    head bigint NOT NULL,
    created_at bigint NOT NULL,
    data text NOT NULL
  );`

/** Timers in Postgres. Each method is one statement. `time` is null for the server's clock. */
export function createPostgresTimers(query: Query, schema: string, time: () => number | null): SessionTimers {
  const table = `"${schema}".timers`
  const now = `coalesce($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`
  return {
    async get(id) {
      const [timer] = await query<StoredTimer>(`SELECT id, at, data FROM ${table} WHERE id = $1`, [id])
      return timer ?? null
    },

    async set(timers) {
      // A statement cannot update a row twice, so only the last timer per id is kept.
      const last = [...new Map(timers.map((timer) => [timer.id, timer])).values()]
      await query(
        `INSERT INTO ${table} (id, at, data) SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])
         ON CONFLICT (id) DO UPDATE SET at = excluded.at, data = excluded.data`,
        toColumns(last, ['id', 'at', 'data']),
      )
    },

    async listDue({ limit, after }) {
      const rows = await query<{ now: number } & (StoredTimer | { id: null })>(
        `SELECT n.now, t.id, t.at, t.data FROM (SELECT ${now} AS now) n LEFT JOIN LATERAL (
           SELECT id, at, data FROM ${table}
           WHERE at <= n.now AND ($2::bigint IS NULL OR (at, id) > ($2::bigint, $3::text COLLATE "C"))
           ORDER BY at, id LIMIT $4
         ) t ON true ORDER BY t.at, t.id`,
        [time(), after?.at ?? null, after?.id ?? null, limit],
      )
      const timers = rows.flatMap((row) =>
        row.id === null ? [] : [{ id: row.id, at: row.at, data: row.data }],
      )
      return { now: rows[0]?.now ?? NaN, timers }
    },

    list: ({ prefix, limit, after = '' }) =>
      query<StoredTimer>(
        `SELECT id, at, data FROM ${table} WHERE id > $1 AND starts_with(id, $2) ORDER BY id LIMIT $3`,
        [after, prefix, limit],
      ),

    async move({ id, from, to }) {
      const place = `WHERE id = $1 AND at = $2`
      const rows =
        to === null
          ? await query(`DELETE FROM ${table} ${place} RETURNING id`, [id, from])
          : await query(`UPDATE ${table} SET at = $3 ${place} RETURNING id`, [id, from, to])
      return rows.length > 0
    },
  }
}
