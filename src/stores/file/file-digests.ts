import type { DigestTable, LogDigest } from '../../core/sessions/store/log-digests.js'
import { createdAtSql, headSql } from './list-sessions.js'
import { createPrepare, integer, text, type Wrap } from './database.js'
import type { SqliteDatabase } from './sqlite.js'

/** The table for digests, which is created on first use. A trigger deletes digests with their sessions. */
const digestTableSql = `
  CREATE TABLE IF NOT EXISTS log.digests (
    session_id TEXT PRIMARY KEY,
    head INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    data TEXT NOT NULL
  ) STRICT;
  CREATE TRIGGER IF NOT EXISTS log.session_deleted AFTER DELETE ON sessions BEGIN
    DELETE FROM digests WHERE session_id = OLD.id;
  END;
`

/** Creates the table for digests if it is missing. `write` runs a transaction, and `use` runs a read. */
export function createFileDigests(database: SqliteDatabase, write: Wrap, use: Wrap): DigestTable {
  database.exec(digestTableSql)
  const { run, select } = createPrepare(database)
  const read = select<LogDigest>(
    { sessionId: text, head: integer, createdAt: integer, data: text },
    'FROM digests WHERE session_id IN (SELECT value FROM json_each(?))',
  )
  const put = run(`
    INSERT INTO digests (session_id, head, created_at, data)
    SELECT ?, ?, ?, ? FROM sessions WHERE id = ? AND ${headSql} = ? AND ${createdAtSql} = ?
    ON CONFLICT (session_id) DO UPDATE SET head = excluded.head, created_at = excluded.created_at, data = excluded.data`)
  return {
    read: (sessionIds) => use(() => read(JSON.stringify(sessionIds))),

    put: (digests) =>
      write(() => {
        for (const { sessionId, head, createdAt, data } of digests)
          put(sessionId, head, createdAt, data, sessionId, head, createdAt)
      }),
  }
}
