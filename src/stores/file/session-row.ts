import { selectBytes, selectInteger, decodeText } from './sql-values.js'

/** A session's row, as far as it says who may write. */
export interface LeaseRow {
  token: string | null
  holder: string | null
  /** Where the holder runs; see process-identity.ts. */
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
  /** What the session was given. */
  title: string | null
}

/** From the records themselves: to write a session's row with each of them would double what is written. */
const createWrittenAtSql = (seq: string) =>
  `coalesce((SELECT written_at FROM records WHERE session_id = id AND seq = ${seq}), 0)`
export const headSql = 'coalesce((SELECT max(seq) FROM records WHERE session_id = id), 0)'
export const createdAtSql = createWrittenAtSql('1')
export const updatedAtSql = `max(summed_up_at, ${createWrittenAtSql(headSql)})`

export const sessionColumns = [
  ...[headSql, createdAtSql, updatedAtSql, 'expires_at'].map(selectInteger),
  ...['id', 'summary', 'token', 'holder', 'process', 'title'].map(selectBytes),
].join(', ')

type Bytes = Buffer | null

export function readSessionRow(row: unknown): SessionRow {
  const [head, createdAt, updatedAt, expiresAt, id, summary, token, holder, process, title] = row as [
    ...[number, number, number, number],
    ...[Bytes, Bytes, Bytes, Bytes, Bytes, Bytes],
  ]
  return {
    id: decodeText(id),
    head,
    createdAt,
    updatedAt,
    summary: summary && decodeText(summary),
    title: title && decodeText(title),
    token: token && decodeText(token),
    holder: holder && decodeText(holder),
    process: process && decodeText(process),
    expiresAt,
  }
}
