import type { DigestTable, LogDigest } from '../../core/sessions/store/log-digests.js'
import { type Query, toColumns } from './postgres-rows.js'

export async function openPostgresDigests(query: Query, schema: string): Promise<DigestTable> {
  const digests = `"${schema}".digests`
  // Users without the right to create tables need only existing tables.
  const there = await query(
    `SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'digests'`,
    [schema],
  )
  if (there.length === 0) await query(createTableSql(schema), [])
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
const createTableSql = (schema: string): string => `
  SELECT pg_advisory_xact_lock(hashtext('statewright'), hashtext('${schema}'));
  CREATE TABLE IF NOT EXISTS "${schema}".digests (
    session_id text COLLATE "C" PRIMARY KEY REFERENCES "${schema}".sessions ON DELETE CASCADE,
    head bigint NOT NULL,
    created_at bigint NOT NULL,
    data text NOT NULL
  );`
