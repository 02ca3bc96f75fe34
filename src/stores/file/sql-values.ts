/**
 * Text is read as bytes, and numbers as numbers whatever is there: text that is no UTF-8, which only a damaged file has,
 * would end the process inside libsql. Whether a record is what was written, its checksum tells.
 */
export const selectBytes = (column: string) => `CAST(${column} AS BLOB)`
export const selectInteger = (column: string) => `CAST(${column} AS INTEGER)`

/** What `bytes` gave. */
export const decodeText = (value: Buffer | null): string => value?.toString('utf8') ?? ''

/** SQL, prepared. */
export type Prepare = (sql: string) => Statement

export interface Statement {
  run(values: readonly unknown[]): { changes: number }
  raw(): { all(values: readonly unknown[]): unknown[] }
}
