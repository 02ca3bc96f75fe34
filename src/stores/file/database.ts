import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  statSync,
  statfsSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { valueOr } from '../../core/base/maybe-promise.js'
import { StoreError, type StoreErrorCode } from '../../core/sessions/store/store-error.js'
import { getSqliteCode, openSqlite, type SqliteDatabase } from './sqlite.js'

/** Maximum time that a write waits for writes by other processes, which take microseconds. */
const busyMs = 5000

/** Size of the write-ahead log (in 4 KiB pages) at which a checkpoint is made. A checkpoint waits for the disk. */
const checkpointPages = 4000

/** The schema version, which is stored in `user_version` of the database. */
const schemaVersion = 1

/**
 * Records are clustered by session, so that a log is read from neighboring pages. A session without records was
 * acquired but not written. `listed_at` is the last write, and lags behind while a lease is held, to spare its indexes.
 */
const schemaSql = `
  CREATE TABLE log.sessions (
    id TEXT PRIMARY KEY,
    summary TEXT,
    title TEXT,
    marks TEXT,
    state TEXT,
    agent TEXT,
    parent TEXT,
    listed_at INTEGER NOT NULL DEFAULT 0,
    last_message INTEGER NOT NULL DEFAULT 0,
    token TEXT,
    holder TEXT,
    process TEXT,
    expires_at INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE log.records (
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    checksum TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, seq)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE log.inbox (
    session_id TEXT NOT NULL,
    message INTEGER NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (session_id, message)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE log.tags (
    session_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    listed_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session_id, name)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE log.timers (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    data TEXT NOT NULL
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX log.listed ON sessions (listed_at DESC, id) WHERE token IS NULL;
  CREATE INDEX log.listed_by_state ON sessions (state, listed_at DESC, id) WHERE token IS NULL;
  CREATE INDEX log.listed_by_agent ON sessions (agent, listed_at DESC, id) WHERE token IS NULL;
  CREATE INDEX log.listed_by_both ON sessions (agent, state, listed_at DESC, id) WHERE token IS NULL;
  CREATE INDEX log.held ON sessions (id) WHERE token IS NOT NULL;
  CREATE INDEX log.children_of ON sessions (parent, listed_at DESC, id)
    WHERE token IS NULL AND parent IS NOT NULL;
  CREATE INDEX log.tagged ON tags (name, value, listed_at DESC, session_id);
  CREATE INDEX log.due ON timers (at, id);
  PRAGMA log.user_version = ${schemaVersion};
`

/**
 * Opens the database of a file store and creates missing tables.
 *
 * The file is attached to an in-memory connection. A closed connection keeps its files and locks until its statements
 * are garbage-collected, but an attached file can be detached immediately.
 */
export function openDatabase(file: string, sync: 'normal' | 'full'): SqliteDatabase {
  const database = openSqlite()
  try {
    makeFile(file)
    database.exec(`PRAGMA busy_timeout = ${busyMs}`)
    database.exec(`ATTACH '${file.replaceAll("'", "''")}' AS log`)
    useWriteAheadLog(database)
    // NORMAL survives a process crash; FULL also survives a power loss.
    database.exec(`PRAGMA log.synchronous = ${sync}; PRAGMA fullfsync = ${sync === 'full' ? 1 : 0};`)
    database.exec('PRAGMA log.secure_delete = ON')
    database.exec(`PRAGMA log.wal_autocheckpoint = ${checkpointPages}`)
    database.exec('BEGIN IMMEDIATE')
    createSchema(database, file)
    database.exec('COMMIT')
    return database
  } catch (error) {
    closeDatabase(database)
    throw error
  }
}

/** Removes deleted content from the write-ahead log. Returns false if another process is reading from the log. */
export function emptyWriteAheadLog(database: SqliteDatabase): boolean {
  const [row] = database.prepare('PRAGMA log.wal_checkpoint(TRUNCATE)').all([]) as [[number]]
  return row[0] === 0
}

/** Releases the files and their locks, even during a transaction. */
export function closeDatabase(database: SqliteDatabase): void {
  // There may be no open transaction or no attached file.
  for (const last of ['ROLLBACK', 'DETACH log']) valueOr(() => database.exec(last), undefined)
  database.close()
}

/** SQLite copies the mode to its other files. `wx`, because closing an existing file would drop its locks. */
function makeFile(file: string): void {
  makeFolder(dirname(file))
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  accessSync(file, constants.R_OK | constants.W_OK)
  accessSync(dirname(file), constants.W_OK)
}

/** Node's recursive `mkdir` never returns below /proc, where mkdir fails with ENOENT. */
function makeFolder(dir: string): void {
  try {
    mkdirSync(dir, { mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(dir).isDirectory()) return
    if (code !== 'ENOENT' || existsSync(dirname(dir))) throw error
    makeFolder(dirname(dir))
    makeFolder(dir)
  }
}

/** Retries, because two processes that switch a new file at the same time do not wait for each other. */
function useWriteAheadLog(database: SqliteDatabase): void {
  const until = Date.now() + busyMs
  for (;;) {
    try {
      database.exec('PRAGMA log.journal_mode = WAL')
      return
    } catch (error) {
      if (!getSqliteCode(error).startsWith('SQLITE_BUSY') || Date.now() > until) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

function createSchema(database: SqliteDatabase, file: string): void {
  const [[version]] = database.prepare('PRAGMA log.user_version').all([]) as [[number]]
  if (version === schemaVersion) return
  if (version > schemaVersion) {
    throw new StoreError(
      'newer_log',
      `${file} was written by a newer Statewright (its format is ${version}; this version reads ${schemaVersion}). ` +
        'Update Statewright, or choose another folder.',
      file,
    )
  }
  if (database.prepare('SELECT 1 FROM log.sqlite_master LIMIT 1').all([]).length > 0) {
    throw new StoreError(
      'store_unavailable',
      `${file} belongs to another program. Choose another folder for the sessions.`,
      file,
    )
  }
  database.exec(schemaSql)
}

/** Converts errors from SQLite and the file system. `file` is the database. */
export function toFileStoreError(error: unknown, file: string): StoreError {
  const code = getSqliteCode(error)
  const { message } = error as { message?: string }
  const folder = dirname(file)
  const fail = (kind: StoreErrorCode, text: string, subject = file): StoreError =>
    new StoreError(kind, text, subject, { cause: error })
  if (isDiskFull(code, folder))
    return fail(
      'disk_full',
      `The disk with ${folder} is full. Free some space and try again. The stored sessions are unchanged.`,
      folder,
    )
  if (/^(EACCES|EPERM|EROFS)$|^SQLITE_(READONLY|PERM|AUTH)/.test(code))
    return fail(
      'read_only',
      `Sessions cannot be written to ${folder}. Give this user write permission for the folder and its files, or choose ` +
        'another folder.',
      folder,
    )
  // Statements and values are fixed, so a mismatch (3091: text for a number) means that the tables are not ours.
  if (/^SQLITE_(CORRUPT|NOTADB|ERROR|CONSTRAINT)|_3091$/.test(code))
    return fail(
      'corrupt_log',
      `${file} is damaged or is not a database (${message}). Restore it from a backup, or move it away to start with an empty store.`,
    )
  if (/^SQLITE_(BUSY|LOCKED)/.test(code))
    return fail(
      'store_unavailable',
      `Another process has held the lock on ${file} for several seconds. Find that process, wait for it or stop it, then try again.`,
    )
  return fail(
    'store_unavailable',
    `${file} cannot be used: ${message ?? String(error)}. Check that the folder exists and is on a local disk, or ` +
      'choose another.',
  )
}

/** On a full disk, SQLite reports some failures (such as a failure of the WAL index) as a plain I/O error. */
function isDiskFull(code: string, folder: string): boolean {
  if (code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT') return true
  if (!code.startsWith('SQLITE_IOERR')) return false
  return valueOr(() => statfsSync(folder).bavail === 0, false)
}

interface Field {
  sql: string
  read: (value: never) => unknown
}

const decodeText = (value: Uint8Array | null): string | null =>
  value && Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8')

/** Bytes and casts, because invalid UTF-8 in a damaged file would crash libsql. Checksums detect changes. */
export const textOrNull = (column: string): Field => ({ sql: `CAST(${column} AS BLOB)`, read: decodeText })
export const text = (column: string): Field => ({
  ...textOrNull(column),
  read: (value) => decodeText(value) ?? '',
})
export const integer = (column: string): Field => ({
  sql: `CAST(${column} AS INTEGER)`,
  read: (value) => value,
})

/** By default, the column has the name of the key, in snake case. */
type Column = Field | ((column: string) => Field)

export type Wrap = <Value>(work: () => Value) => Value
export type Prepare = ReturnType<typeof createPrepare>

export function createPrepare(database: SqliteDatabase) {
  return {
    /** The statement returns the number of changed rows. */
    run: (sql: string): ((...values: unknown[]) => number) => {
      const statement = database.prepare(sql)
      return (...values) => statement.run(values).changes
    },

    /** Every read runs to completion, because an open statement keeps the database files open. */
    select: <Row>(
      of: { readonly [Key in keyof Row]: Column },
      from: string,
    ): ((...values: unknown[]) => Row[]) => {
      const fields = Object.entries<Column>(of).map(([key, field]) => {
        const column = key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
        return { key, ...(typeof field === 'function' ? field(column) : field) }
      })
      const statement = database.prepare(`SELECT ${fields.map(({ sql }) => sql).join(', ')} ${from}`)
      const readRow = (row: unknown): Row => {
        const found: Record<string, unknown> = {}
        for (const [i, { key, read }] of fields.entries()) found[key] = read((row as never[])[i] as never)
        return found as Row
      }
      return (...values) => statement.all(values).map(readRow)
    },
  }
}
