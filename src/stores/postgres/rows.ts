import { isGone } from '../../core/sessions/store/holder.js'
import type { LogRecord, ListedSession } from '../../core/sessions/store/store.js'
import { summaryOf } from '../../core/sessions/store/summary-text.js'

export interface SessionRow {
  token: string | null
  holder: string | null
  process: string | null
  /** A bigint comes as text. */
  head: string
  held: boolean
}

export interface RecordRow {
  seq: string
  at: string
  type: LogRecord['type']
  data: string
  checksum: string
}

export function logRecord({ seq, at, type, data, checksum }: RecordRow): LogRecord {
  return { seq: Number(seq), at: Number(at), type, data, check: checksum }
}

/** One array a column, as `unnest` takes them. */
export const columnsOf = (records: readonly LogRecord[]): unknown[][] => [
  records.map(({ seq }) => seq),
  records.map(({ at }) => at),
  records.map(({ type }) => type),
  records.map(({ data }) => data),
  records.map(({ check }) => check),
]

export interface PutRow extends Pick<SessionRow, 'holder' | 'process' | 'held'> {
  told: string
}

export interface EntryRow extends SessionRow {
  id: string
  created_at: string
  updated_at: string
  summary: string | null
}

export function sessionEntry(row: EntryRow): ListedSession {
  return {
    id: row.id,
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    head: Number(row.head),
    summary: summaryOf(row.summary),
    holder: row.held && !isGone(row.process) ? row.holder : null,
  }
}
