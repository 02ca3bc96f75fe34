import type { Pool, PoolClient } from 'pg'
import { StoreError } from '../../core/sessions/store/store-error.js'

const schemaVersion = 1

/**
 * Makes the tables that are not there yet. Nothing is asked for that a user without the right to create would need
 * once they are there.
 */
export async function prepareSchema(pool: Pool, schema: string): Promise<void> {
  if ((await currentVersion(pool, schema)) === schemaVersion) return
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    // Two that begin at once: the second waits here, and finds everything made. Any number that is ours will do.
    await client.query(`SELECT pg_advisory_xact_lock(hashtext('statewright'), hashtext($1))`, [schema])
    if ((await currentVersion(client, schema)) !== schemaVersion) await client.query(tables(schema))
    await client.query('COMMIT')
    client.release()
  } catch (error) {
    // Closed instead of returned to the pool: whatever is open on it ends with it.
    client.release(true)
    throw error
  }
}

/** Null: there are no tables. Asks the catalog itself, because a backend may remember that a name meant nothing. */
async function currentVersion(client: Pool | PoolClient, schema: string): Promise<number | null> {
  const found = await client.query(
    `SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'schema_version'`,
    [schema],
  )
  if (found.rowCount === 0) return null
  const { rows } = await client.query<{ version: number }>(`SELECT version FROM "${schema}".schema_version`)
  const version = rows[0]?.version ?? null
  if (version !== null && version > schemaVersion) {
    throw new StoreError(
      'newer_log',
      `The schema ${schema} was written by a newer Statewright (its format is ${version}, this one reads ` +
        `${schemaVersion}). Update Statewright, or use another schema.`,
      schema,
    )
  }
  return version
}

const tables = (schema: string): string => `
  CREATE SCHEMA IF NOT EXISTS "${schema}";
  CREATE TABLE "${schema}".sessions (
    id text COLLATE "C" PRIMARY KEY,
    head bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL DEFAULT 0,
    updated_at bigint NOT NULL DEFAULT 0,
    summary text,
    token text,
    holder text,
    process text,
    expires_at bigint NOT NULL DEFAULT 0
  );
  CREATE TABLE "${schema}".records (
    session_id text COLLATE "C" NOT NULL REFERENCES "${schema}".sessions ON DELETE CASCADE,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    type text NOT NULL,
    data text NOT NULL,
    checksum text NOT NULL,
    PRIMARY KEY (session_id, seq)
  );
  CREATE TABLE "${schema}".schema_version (version integer NOT NULL);
  INSERT INTO "${schema}".schema_version VALUES (${schemaVersion});`
