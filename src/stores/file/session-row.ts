import { bytes, integer, text } from './sql-values.js'

/** A session's row, as far as it says who may write. */
export interface LeaseRow {
  token: string | null
  holder: string | null
  /** Where the holder runs; see holder.ts. */
  process: string | null
  expiresAt: number
}

export interface SessionRow extends LeaseRow {
  id: string
  head: number
  createdAt: number
  updatedAt: number
  /** JSON text. */
  summary: string | null
}

/** From the records themselves: to write a session's row with each of them would double what is written. */
const writtenAt = (seq: string) =>
  `coalesce((SELECT written_at FROM records WHERE session_id = id AND seq = ${seq}), 0)`
export const head = 'coalesce((SELECT max(seq) FROM records WHERE session_id = id), 0)'
const createdAt = writtenAt('1')
export const updatedAt = `max(summed_up_at, ${writtenAt(head)})`

export const sessionColumns = [
  ...[head, createdAt, updatedAt, 'expires_at'].map(integer),
  ...['id', 'summary', 'token', 'holder', 'process'].map(bytes),
].join(', ')

type Bytes = Buffer | null

export function sessionRow(row: unknown): SessionRow {
  const [head, createdAt, updatedAt, expiresAt, id, summary, token, holder, process] = row as [
    ...[number, number, number, number],
    ...[Bytes, Bytes, Bytes, Bytes, Bytes],
  ]
  return {
    id: text(id),
    head,
    createdAt,
    updatedAt,
    summary: summary && text(summary),
    token: token && text(token),
    holder: holder && text(holder),
    process: process && text(process),
    expiresAt,
  }
}
