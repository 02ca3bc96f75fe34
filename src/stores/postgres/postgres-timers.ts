import type { SessionTimers, StoredTimer } from '../../core/sessions/store/timers.js'
import { type Query, toColumns } from './postgres-rows.js'

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
