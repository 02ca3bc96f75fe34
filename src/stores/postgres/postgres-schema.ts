import type { Pool, PoolClient } from 'pg'
import { StoreError, type StoreErrorCode } from '../../core/sessions/store/store-error.js'
import { ConfigError, StatewrightError } from '../../core/base/errors.js'

const schemaVersion = 1

/** Creates missing tables. If they exist, no right to create is needed. */
export async function prepareSchema(pool: Pool, schema: string): Promise<void> {
  if ((await currentVersion(pool, schema)) === schemaVersion) return
  const client = await pool.connect()
  // A pool does not listen to clients in use. Their next query rejects with the same error.
  client.on('error', ignoreError)
  try {
    await client.query('BEGIN')
    // The second of two concurrent transactions waits here and finds the tables.
    await client.query(`SELECT pg_advisory_xact_lock(hashtext('statewright'), hashtext($1))`, [schema])
    if ((await currentVersion(client, schema)) === null) await client.query(createSchemaSql(schema))
    await client.query('COMMIT')
    client.off('error', ignoreError)
    client.release()
  } catch (error) {
    // Closed instead of returned to the pool, which also ends open transactions.
    client.release(true)
    throw error
  }
}

const ignoreError = (): void => undefined

/** The version, or null without tables. Queries the catalog, because a connection may cache that a name is unknown. */
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

/**
 * `listed_at` is the time of the last write. It lags behind while a lease is held, so that appends do not update its
 * indexes. `inbox` is the last message in the inbox, and `last_message` is the last message ever added to it.
 */
const createSchemaSql = (schema: string): string => `
  CREATE SCHEMA IF NOT EXISTS "${schema}";
  CREATE TABLE "${schema}".sessions (
    id text COLLATE "C" PRIMARY KEY,
    head bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL DEFAULT 0,
    updated_at bigint NOT NULL DEFAULT 0,
    listed_at bigint NOT NULL DEFAULT 0,
    summary text,
    title text,
    marks jsonb,
    state text,
    agent text,
    parent text COLLATE "C",
    inbox bigint NOT NULL DEFAULT 0,
    last_message bigint NOT NULL DEFAULT 0,
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
  CREATE TABLE "${schema}".inbox (
    session_id text COLLATE "C" NOT NULL REFERENCES "${schema}".sessions ON DELETE CASCADE,
    message bigint NOT NULL,
    at bigint NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (session_id, message)
  );
  CREATE TABLE "${schema}".tags (
    session_id text COLLATE "C" NOT NULL REFERENCES "${schema}".sessions ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    listed_at bigint NOT NULL,
    PRIMARY KEY (session_id, name)
  );
  CREATE TABLE "${schema}".timers (
    id text COLLATE "C" PRIMARY KEY,
    at bigint NOT NULL,
    data text NOT NULL
  );
  CREATE INDEX listed ON "${schema}".sessions (listed_at DESC, id) WHERE token IS NULL;
  CREATE INDEX listed_by_state ON "${schema}".sessions (state, listed_at DESC, id) WHERE token IS NULL;
  CREATE INDEX listed_by_agent ON "${schema}".sessions (agent, listed_at DESC, id) WHERE token IS NULL;
  CREATE INDEX listed_by_both ON "${schema}".sessions (agent, state, listed_at DESC, id) WHERE token IS NULL;
  CREATE INDEX held ON "${schema}".sessions (state) WHERE token IS NOT NULL;
  CREATE INDEX children_of ON "${schema}".sessions (parent, listed_at DESC, id)
    WHERE token IS NULL AND parent IS NOT NULL;
  CREATE INDEX tagged ON "${schema}".tags (name, value, listed_at DESC, session_id);
  CREATE INDEX due ON "${schema}".timers (at, id);
  CREATE TABLE "${schema}".schema_version (version integer NOT NULL);
  INSERT INTO "${schema}".schema_version VALUES (${schemaVersion});`

/** A description of the database without user and password. */
export function describePlace(options: object): string {
  const { connectionString } = options as { connectionString?: string }
  try {
    const { hostname } = new URL(connectionString ?? '')
    return hostname === '' ? 'Postgres' : `Postgres on ${hostname}`
  } catch {
    return 'Postgres'
  }
}

/** Converts errors of the server and connection. `place` contains no password. */
export function toPostgresError(error: unknown, place: string): StatewrightError {
  if (error instanceof StatewrightError) return error
  const code = getCode(error)
  // Without its cause, which contains the URL with the password.
  if (code === 'ERR_INVALID_URL' || error instanceof URIError) {
    return new ConfigError(
      'invalid_store',
      'The connection string is no URL. Write postgres://USER:PASSWORD@HOST:PORT/DATABASE, and special characters of ' +
        'the password as %XX.',
      'connectionString',
    )
  }
  const [kind, advice] = classifyCode(code)
  return new StoreError(kind, `The sessions in ${place}: ${getReason(error)}. ${advice}`, place, {
    cause: error,
  })
}

function classifyCode(code: string): [StoreErrorCode, string] {
  if (code === '53100')
    return ['disk_full', 'Free some space on the server: the sessions are as they were before.']
  if (code === '25006' || code === '42501') {
    return ['read_only', 'Connect to the primary server, as a user who may write to the schema.']
  }
  if (code.startsWith('XX00')) return ['corrupt_log', 'See the log of the server, and restore from a backup.']
  return [
    'store_unavailable',
    'See that the server runs and takes connections from here, then try again. What was being written may or may not ' +
      'have been kept.',
  ]
}

/** Node reports a host with several addresses as an aggregate error without a message. */
function getReason(error: unknown): string {
  const { message, errors } = error as { message?: string; errors?: unknown[] }
  if (message) return message
  return errors?.length ? getReason(errors[0]) : getCode(error) || 'no answer'
}

function getCode(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** Whether the server refused a statement for its content, so that it wrote nothing. */
export function isStatementRefused(error: unknown): boolean {
  return /^(22|23|54)/.test(getCode(error instanceof StatewrightError ? error.cause : error))
}
