import type { DigestTable, LogDigest } from '../../core/sessions/store/log-digests.js'
import { createdAtSql, headSql } from './list-sessions.js'
import { decodeText, selectBytes, selectInteger } from './database.js'
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

type Wrap = <Value>(work: () => Value) => Value

/** Creates the table for digests if it is missing. `write` runs a transaction, and `use` runs a read. */
export function createFileDigests(database: SqliteDatabase, write: Wrap, use: Wrap): DigestTable {
  database.exec(digestTableSql)
  const columns = [
    selectBytes('session_id'),
    ...['head', 'created_at'].map(selectInteger),
    selectBytes('data'),
  ].join(', ')
  const read = database.prepare(
    `SELECT ${columns} FROM digests WHERE session_id IN (SELECT value FROM json_each(?))`,
  )
  const put = database.prepare(`
    INSERT INTO digests (session_id, head, created_at, data)
    SELECT ?, ?, ?, ? FROM sessions WHERE id = ? AND ${headSql} = ? AND ${createdAtSql} = ?
    ON CONFLICT (session_id) DO UPDATE SET head = excluded.head, created_at = excluded.created_at, data = excluded.data`)
  return {
    read: (sessionIds) => use(() => read.all([JSON.stringify(sessionIds)]).map(readDigest)),

    put: (digests) =>
      write(() => {
        for (const { sessionId, head, createdAt, data } of digests)
          put.run([sessionId, head, createdAt, data, sessionId, head, createdAt])
      }),
  }
}

function readDigest(row: unknown): LogDigest {
  const [sessionId, head, createdAt, data] = row as [Uint8Array, number, number, Uint8Array]
  return { sessionId: decodeText(sessionId), head, createdAt, data: decodeText(data) }
}
