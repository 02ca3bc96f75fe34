/**
 * The SQL of the Postgres store. Each is one statement, and so one round trip and one transaction, whose conditions the
 * server looks at again after it has waited for another writer. `$1` is the session, `$2` the time, or null for the
 * server's own.
 */
export function statements(schema: string) {
  const sessions = `"${schema}".sessions`
  const records = `"${schema}".records`
  const now = `coalesce($2::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`
  const expiry = (ttl: string) => `least(${now} + ${ttl}::bigint, ${Number.MAX_SAFE_INTEGER})`
  const isHeld = `(s.token IS NOT NULL AND s.expires_at > ${now})`

  return {
    /** $3 token, $4 holder, $5 process, $6 milliseconds; $7 the token of a holder that is gone, or null. */
    acquire: `
      INSERT INTO ${sessions} AS s (id, token, holder, process, expires_at)
      VALUES ($1, $3, $4, $5, ${expiry('$6')})
      ON CONFLICT (id) DO UPDATE SET token = excluded.token, holder = excluded.holder, process = excluded.process,
        expires_at = ${expiry('$6')}
      WHERE NOT ${isHeld} OR s.token = $7
      RETURNING expires_at`,

    session: `
      SELECT token, holder, process, head, ${isHeld} AS held FROM ${sessions} s WHERE id = $1`,

    /** $3 token, $4 milliseconds. */
    renew: `
      UPDATE ${sessions} SET expires_at = ${expiry('$4')} WHERE id = $1 AND token = $3 RETURNING expires_at`,

    /** $1 session, $2 token. A session without records is forgotten. */
    release: `
      WITH forgotten AS (DELETE FROM ${sessions} WHERE id = $1 AND token = $2 AND head = 0)
      UPDATE ${sessions} SET token = NULL WHERE id = $1 AND token = $2 AND head > 0`,

    /** $3 token, $4 the head that the records follow, or null without records, $5 the new summary, or null. */
    append: `
      WITH advanced AS (
        UPDATE ${sessions} s SET
          head = head + cardinality($6::bigint[]),
          updated_at = ${now},
          created_at = CASE WHEN head = 0 THEN ${now} ELSE created_at END,
          summary = coalesce($5, summary)
        WHERE id = $1 AND token = $3 AND ${isHeld} AND ($4::bigint IS NULL OR head = $4)
        RETURNING id
      ), added AS (
        INSERT INTO ${records} (session_id, seq, at, type, data, checksum)
        SELECT id, r.* FROM advanced, unnest($6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::text[]) r
      )
      SELECT id FROM advanced`,

    /** $1 session, $2 from, or null for the last snapshot, $3 to. */
    read: `
      SELECT seq, at, type, data, checksum FROM ${records}
      WHERE session_id = $1 AND seq <= $3 AND seq >= coalesce($2::bigint, (
        SELECT seq FROM ${records} WHERE session_id = $1 AND seq <= $3 AND type = 'snapshot'
        ORDER BY seq DESC LIMIT 1), 1)
      ORDER BY seq`,

    /** `$1` is null: every session. */
    list: `
      SELECT id, created_at, updated_at, head, summary, holder, process, ${isHeld} AS held
      FROM ${sessions} s WHERE head > 0 AND ($1::text IS NULL OR id = $1) ORDER BY updated_at DESC, id`,

    /** $3 the token of a holder that is gone, or null. */
    remove: `
      DELETE FROM ${sessions} s WHERE id = $1 AND (NOT ${isHeld} OR token = $3) RETURNING head`,
  }
}
