import type { Pool, PoolClient } from 'pg'
import { valueOr } from '../../core/base/maybe-promise.js'
import type { Listing } from '../../core/sessions/store/list-options.js'
import {
  createListQueries,
  type ListSource,
  toPrefixConditions,
  toTagCondition,
} from '../../core/sessions/store/list-sql.js'
import { StoreError, type StoreErrorCode } from '../../core/sessions/store/store-error.js'
import { ConfigError, StatewrightError } from '../../core/base/errors.js'

/**
 * The statements of the Postgres store. Each is one round trip and one transaction. The server evaluates the conditions
 * again after waiting for another writer. `$1` is the session. `$2` is the time, or null for the server's clock.
 */
export function createStatements(schema: string) {
  const sessions = `"${schema}".sessions`
  const records = `"${schema}".records`
  const inbox = `"${schema}".inbox`
  const tags = `"${schema}".tags`
  const now = `coalesce($2::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`
  const expiry = (ttl: string) => `least(${now} + ${ttl}::bigint, ${Number.MAX_SAFE_INTEGER})`
  const isHeld = `(s.token IS NOT NULL AND s.expires_at > ${now})`

  const entry = `s.id, created_at AS "createdAt", updated_at AS "updatedAt", head, summary, title, marks::text AS marks, holder, process, ${isHeld} AS held`

  return {
    /** $3 token, $4 holder, $5 process, $6 milliseconds, $7 the token of a dead holder, or null. */
    acquire: `
      INSERT INTO ${sessions} AS s (id, token, holder, process, expires_at)
      VALUES ($1, $3, $4, $5, ${expiry('$6')})
      ON CONFLICT (id) DO UPDATE SET token = excluded.token, holder = excluded.holder, process = excluded.process,
        expires_at = ${expiry('$6')}
      WHERE NOT ${isHeld} OR s.token = $7
      RETURNING expires_at AS "expiresAt", inbox, head`,

    session: `
      SELECT token, holder, process, head, ${isHeld} AS held FROM ${sessions} s WHERE id = $1`,

    /** $3 token, $4 milliseconds. */
    renew: `
      UPDATE ${sessions} SET expires_at = ${expiry('$4')} WHERE id = $1 AND token = $3
      RETURNING expires_at AS "expiresAt"`,

    /** $1 sessions, $3 tokens, $4 milliseconds. Rows are locked in a fixed order to avoid deadlocks. */
    renewAll: `
      WITH kept AS (
        SELECT s.id FROM ${sessions} s
        JOIN unnest($1::text[], $3::text[]) AS asked (id, token) ON s.id = asked.id AND s.token = asked.token
        ORDER BY s.id FOR UPDATE OF s
      )
      UPDATE ${sessions} s SET expires_at = ${expiry('$4')} FROM kept
      WHERE s.id = kept.id RETURNING s.token, s.expires_at AS "expiresAt"`,

    /** $1 session, $2 token. Deletes a session without records. */
    release: `
      WITH forgotten AS (
        DELETE FROM ${sessions} WHERE id = $1 AND token = $2 AND head = 0
      ), freed AS (
        UPDATE ${sessions} SET token = NULL, listed_at = updated_at WHERE id = $1 AND token = $2 AND head > 0
        RETURNING id, listed_at, inbox
      ), relisted AS (
        UPDATE ${tags} t SET listed_at = f.listed_at FROM freed f WHERE t.session_id = f.id
      )
      SELECT inbox FROM freed`,

    /**
     * Appends to many sessions. Each append succeeds or fails as a whole. Rows are locked in a fixed order to avoid
     * deadlocks. The parameters are $1 sessions; $3 tokens; $4 previous heads (null without records); $5 record counts;
     * $6 new summaries (or null); $7, $8 and $16 states, agents and parents of the sessions; $9 the sessions of the
     * records, followed by the record columns; $15 whether to release the lease (not without records); $17 the sessions
     * of the tags, followed by the tag columns.
     */
    append: `
      WITH asked AS (
        SELECT *, ${now} AS at FROM unnest(
          $1::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[], $15::boolean[],
          $16::text[]
        ) AS a (id, token, follows, added, summary, state, agent, is_last, parent)
      ), locked AS MATERIALIZED (
        SELECT s.id FROM ${sessions} s JOIN asked a ON s.id = a.id ORDER BY s.id FOR UPDATE OF s
      ), advanced AS (
        UPDATE ${sessions} s SET
          head = s.head + a.added,
          updated_at = a.at,
          created_at = CASE WHEN s.head = 0 THEN a.at ELSE s.created_at END,
          token = CASE WHEN a.is_last AND s.head + a.added > 0 THEN NULL ELSE s.token END,
          listed_at = CASE WHEN a.is_last AND s.head + a.added > 0 THEN a.at ELSE s.listed_at END,
          summary = coalesce(a.summary, s.summary),
          state = CASE WHEN a.summary IS NULL THEN s.state ELSE a.state END,
          agent = CASE WHEN a.summary IS NULL THEN s.agent ELSE a.agent END,
          parent = CASE WHEN a.summary IS NULL THEN s.parent ELSE a.parent END
        FROM asked a JOIN locked l ON l.id = a.id
        WHERE s.id = a.id AND s.token = a.token AND ${isHeld} AND (a.follows IS NULL OR s.head = a.follows)
        RETURNING s.id, s.inbox, s.listed_at, s.token IS NULL AS released, a.summary IS NOT NULL AS retold
      ), added AS (
        INSERT INTO ${records} (session_id, seq, at, type, data, checksum)
        SELECT r.* FROM unnest($9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[])
          AS r (session_id, seq, at, type, data, checksum)
        WHERE r.session_id IN (SELECT id FROM advanced)
      ), given AS (
        SELECT g.*, a.listed_at FROM unnest($17::text[], $18::text[], $19::text[]) AS g (session_id, name, value)
        JOIN advanced a ON a.id = g.session_id
      ), tagged AS (
        INSERT INTO ${tags} (session_id, name, value, listed_at) SELECT session_id, name, value, listed_at FROM given
        ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value, listed_at = excluded.listed_at
      ), untagged AS (
        DELETE FROM ${tags} t USING advanced a WHERE t.session_id = a.id AND a.retold
          AND NOT EXISTS (SELECT FROM given g WHERE g.session_id = t.session_id AND g.name = t.name)
      ), relisted AS (
        UPDATE ${tags} t SET listed_at = a.listed_at FROM advanced a
        WHERE t.session_id = a.id AND a.released AND NOT a.retold
      )
      SELECT id, inbox, released FROM advanced`,

    /** $1 session, $2 from, or null for the last snapshot, $3 to. */
    read: `
      SELECT seq, at, type, data, checksum AS "check" FROM ${records}
      WHERE session_id = $1 AND seq <= $3 AND seq >= coalesce($2::bigint, (
        SELECT seq FROM ${records} WHERE session_id = $1 AND seq <= $3 AND type = 'snapshot'
        ORDER BY seq DESC LIMIT 1), 1)
      ORDER BY seq`,

    /** $1 session, $2 title or null. */
    setTitle: `UPDATE ${sessions} SET title = $2 WHERE id = $1 AND head > 0 RETURNING id`,

    /** $1 session, $2 record, $3 mark as JSON, or null. */
    setMark: `
      UPDATE ${sessions} SET marks = CASE WHEN $3::jsonb IS NULL THEN marks - $2::text
        ELSE coalesce(marks, '{}') || jsonb_build_object($2::text, $3::jsonb) END
      WHERE id = $1 AND $2::bigint BETWEEN 1 AND head RETURNING id`,

    get: `SELECT ${entry} FROM ${sessions} s WHERE head > 0 AND id = $1`,

    /** Lists sessions by conditions, for one state or any. `$1` is null. */
    list: (listing: Listing) => createListStatement({ sessions, tags }, entry, listing),

    /** $1 names, $2 values. Rarest first, counted up to a thousand sessions. */
    sortTags: `
      SELECT a.name, a.value FROM unnest($1::text[], $2::text[]) AS a (name, value)
      ORDER BY (SELECT count(*) FROM (SELECT FROM ${tags} t WHERE t.name = a.name AND t.value = a.value LIMIT 1000) c)`,

    /** $3 text. Locks the session's row, so that messages become visible in the order of their numbers. */
    put: `
      WITH counted AS (
        UPDATE ${sessions} s SET last_message = last_message + 1, inbox = last_message + 1 WHERE id = $1 AND head > 0
        RETURNING id, last_message, holder, process, ${isHeld} AS held
      ), added AS (
        INSERT INTO ${inbox} (session_id, message, at, text) SELECT id, last_message, ${now}, $3 FROM counted
      )
      SELECT last_message AS message, holder, process, held FROM counted`,

    /** $1 session, $2 number of the previous message. */
    messages: `SELECT message, at, text FROM ${inbox} WHERE session_id = $1 AND message > $2 ORDER BY message`,

    /** $1 session, $2 numbers. If the last message is among them, there is no newer message. */
    take: `
      WITH gone AS (DELETE FROM ${inbox} WHERE session_id = $1 AND message = ANY($2::bigint[]))
      UPDATE ${sessions} SET inbox = coalesce((
        SELECT max(message) FROM ${inbox} WHERE session_id = $1 AND NOT message = ANY($2::bigint[])), 0)
      WHERE id = $1 AND inbox = ANY($2::bigint[])`,

    findUnread: `SELECT id AS "sessionId", inbox FROM ${sessions} WHERE id = ANY($1::text[]) AND inbox > 0`,

    listUnread: `SELECT session_id AS "sessionId", max(message) AS inbox FROM ${inbox} GROUP BY session_id`,

    /** $3 the token of a dead holder, or null. */
    remove: `
      DELETE FROM ${sessions} s WHERE id = $1 AND (NOT ${isHeld} OR token = $3) RETURNING head`,
  }
}

/** Idle sessions are in an index in list order, by state or first tag. `$1` is unused, `$2` is the time. */
function createListStatement(
  { sessions, tags: tagTable }: { sessions: string; tags: string },
  entry: string,
  listing: Listing,
): { text: string; values: unknown[] } {
  const [first, ...others] = listing.tags
  const toConditions = (id: string, tags: Listing['tags']) => [
    ...toPrefixConditions(listing.prefix, id),
    ...tags.map((tag) => toTagCondition(tag, tagTable)),
  ]
  const held: ListSource = {
    from: `${sessions} s`,
    time: 's.updated_at',
    id: 's.id',
    conditions: [['s.token IS NOT NULL AND s.head > 0'], ...toConditions('s.id', listing.tags)],
  }
  const tagged = first && {
    from: `${tagTable} t JOIN ${sessions} s ON s.id = t.session_id`,
    id: 't.session_id',
    conditions: [['t.name = ? AND t.value = ?', ...first] as const],
  }
  const { from, id, conditions } = tagged ?? { ...held, conditions: [] }
  const resting: ListSource = {
    from,
    id,
    time: tagged ? 't.listed_at' : 's.listed_at',
    conditions: [...conditions, ['s.token IS NULL'], ...toConditions(id, others)],
  }
  const queries = createListQueries(listing, [resting, held])
  const union = queries.map(([query]) => `(SELECT ${entry} ${query})`).join(' UNION ALL ')
  let bound = 2
  const text =
    `SELECT * FROM (${union}) l WHERE $1::text IS NULL ORDER BY "updatedAt" DESC, id LIMIT ?`.replaceAll(
      '?',
      () => `$${(bound += 1)}`,
    )
  return { text, values: [...queries.flatMap(([, ...values]) => values), listing.limit] }
}

const schemaVersion = 1

/** Creates missing tables. If all tables exist, the right to create tables is not needed. */
export async function prepareSchema(pool: Pool, schema: string): Promise<void> {
  if ((await currentVersion(pool, schema)) === schemaVersion) return
  const client = await pool.connect()
  // A pool does not listen for errors from clients in use. Their next query rejects with the same error.
  client.on('error', ignoreError)
  try {
    await client.query('BEGIN')
    // The second of two concurrent transactions waits here and then finds the tables.
    await client.query(`SELECT pg_advisory_xact_lock(hashtext('statewright'), hashtext($1))`, [schema])
    if ((await currentVersion(client, schema)) === null) await client.query(createSchemaSql(schema))
    await client.query('COMMIT')
    client.off('error', ignoreError)
    client.release()
  } catch (error) {
    // The connection is closed instead of returned to the pool. Closing also ends open transactions.
    client.release(true)
    throw error
  }
}

const ignoreError = (): void => undefined

/** Null without tables. Queries the catalog, because a connection may cache that a name is unknown. */
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
 * indexes. `inbox` is the last message in the inbox, `last_message` the last one ever added.
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
  const host = valueOr(() => new URL(connectionString ?? '').hostname, '')
  return host === '' ? 'Postgres' : `Postgres on ${host}`
}

/** Converts errors from the server and the connection. `place` contains no password. */
export function toPostgresError(error: unknown, place: string, schema: string): StatewrightError {
  if (error instanceof StatewrightError) return error
  const code = getCode(error)
  // Omits the cause, because it contains the URL with the password.
  if (code === 'ERR_INVALID_URL' || error instanceof URIError) {
    return new ConfigError(
      'invalid_store',
      'The connection string is not a valid URL. Write postgres://USER:PASSWORD@HOST:PORT/DATABASE, and percent-encode ' +
        'special characters in the password (%XX).',
      'connectionString',
    )
  }
  const [kind, advice] = classifyCode(code, schema)
  return new StoreError(kind, `The session store ${place} failed: ${getReason(error)}. ${advice}`, place, {
    cause: error,
  })
}

function classifyCode(code: string, schema: string): [StoreErrorCode, string] {
  if (code === '53100')
    return ['disk_full', 'Free some space on the server. The stored sessions are unchanged.']
  if (code === '25006' || code === '42501') {
    return ['read_only', 'Connect to the primary server, as a user who may write to the schema.']
  }
  // A table or a column is missing, exists already, or has another type.
  if (/^42(P01|P07|703|804)$/.test(code))
    return [
      'corrupt_log',
      `The schema ${schema} is incomplete or belongs to another program. Restore it from a backup, or use another schema.`,
    ]
  if (code.startsWith('XX00')) return ['corrupt_log', 'Check the server log, and restore from a backup.']
  return [
    'store_unavailable',
    'Check that the server is running and accepts connections from this host, then try again. The last write may or ' +
      'may not have been committed.',
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

/** Whether the server refused a statement because of its content, so that nothing was written. */
export function isStatementRefused(error: unknown): boolean {
  return /^(22|23|54)/.test(getCode(error instanceof StatewrightError ? error.cause : error))
}
