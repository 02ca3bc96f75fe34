import { createRequire } from 'node:module'
import { StatewrightError } from '../../core/base/errors.js'

/** Rows are arrays, integers numbers, blobs bytes. Numbered parameters (`?1`) do not work in Node 22.13. */
export interface SqliteDatabase {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

interface Statement {
  run(values: readonly unknown[]): { changes: number }
  all(values: readonly unknown[]): unknown[]
}

/** The parts of `node:sqlite` that are used. Node 20's types do not include it. */
interface NodeSqlite {
  DatabaseSync: new (
    file: string,
  ) => {
    exec(sql: string): void
    prepare(sql: string): {
      run(...values: unknown[]): { changes: number }
      all(...values: unknown[]): unknown[]
      /** Available since Node 22.16. */
      setReturnArrays?(enabled: boolean): void
    }
    close(): void
  }
}

/** The parts of `libsql` that are used. */
type Libsql = new (
  file: string,
) => {
  exec(sql: string): unknown
  prepare(sql: string): { run(values: readonly unknown[]): { changes: number }; raw(): Statement }
  close(): unknown
}

/** Opens a database in memory with Node's SQLite or, if that is missing, the package `libsql`. */
export function openSqlite(): SqliteDatabase {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): unknown } }
  const builtin = process?.getBuiltinModule?.('node:sqlite') as NodeSqlite | undefined
  return builtin ? openNodeSqlite(builtin) : openLibsql(loadLibsql())
}

function openNodeSqlite({ DatabaseSync }: NodeSqlite): SqliteDatabase {
  const database = new DatabaseSync(':memory:')
  return {
    exec: (sql) => database.exec(sql),
    prepare(sql) {
      const statement = database.prepare(sql)
      statement.setReturnArrays?.(true)
      const all = (values: readonly unknown[]) => statement.all(...values)
      return {
        run: (values) => statement.run(...values),
        all: statement.setReturnArrays
          ? all
          : (values) => all(values).map((row) => Object.values(row as object)),
      }
    },
    close: () => database.close(),
  }
}

function openLibsql(Database: Libsql): SqliteDatabase {
  const database = new Database(':memory:')
  return {
    exec: (sql) => void database.exec(sql),
    prepare(sql) {
      const statement = database.prepare(sql)
      // Statements without rows cannot be switched to arrays.
      let rows: Statement | undefined
      return {
        run: (values) => statement.run(values),
        all: (values) => (rows ??= statement.raw()).all(values),
      }
    },
    close: () => void database.close(),
  }
}

function loadLibsql(): Libsql {
  try {
    return createRequire(import.meta.url)('libsql') as Libsql
  } catch (error) {
    const { message } = error as Error
    const isInstalled = !message.startsWith("Cannot find module 'libsql'")
    throw new StatewrightError(
      'missing_package',
      `Sessions in files need SQLite. Use Node 22.13 or later, or run: npm install libsql${
        isInstalled ? `. The installed one does not load: ${message}` : ''
      }`,
      'libsql',
      { cause: error },
    )
  }
}

/** Primary result codes that `node:sqlite` reports as numbers, with their names in `libsql`. */
const codeNames: Record<number, string> = {
  1: 'SQLITE_ERROR',
  3: 'SQLITE_PERM',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  // SQLite reports out of memory if the length of a value is damaged.
  7: 'SQLITE_CORRUPT',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  19: 'SQLITE_CONSTRAINT',
  23: 'SQLITE_AUTH',
  26: 'SQLITE_NOTADB',
}

/** The code of an error from SQLite or the file system. Empty for other errors. */
export function getSqliteCode(error: unknown): string {
  const { code = '', errcode, message = '' } = error as { code?: string; errcode?: number; message?: string }
  // Deno does not report the number.
  if (code === 'ERR_SQLITE_ERROR' && errcode === undefined)
    return /database is locked/.test(message) ? 'SQLITE_BUSY' : code
  // A damaged integer, because only safe integers are stored.
  if (code === 'ERR_OUT_OF_RANGE') return 'SQLITE_CORRUPT'
  return errcode === undefined ? code : (codeNames[errcode & 0xff] ?? code)
}
