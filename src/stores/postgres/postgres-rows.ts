import { isProcessGone } from '../../core/sessions/store/process-identity.js'
import type { UnreadInbox } from '../../core/sessions/store/inbox.js'
import type { Appended, LogRecord, ListedSession } from '../../core/sessions/store/store.js'
import { withTitle } from '../../core/sessions/store/session-title.js'
import { parseSummary, stringifySummary } from '../../core/sessions/store/summary-text.js'
import type { PendingAppend } from './append-groups.js'

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

export function toLogRecord({ seq, at, type, data, checksum }: RecordRow): LogRecord {
  return { seq: Number(seq), at: Number(at), type, data, check: checksum }
}

/** What a group of appends is written with: one array a column, as `unnest` takes them. */
export function toAppendValues(group: readonly PendingAppend[], time: number | null): unknown[] {
  const records = group.flatMap(({ lease, records: own }) =>
    own.map((record) => ({ sessionId: lease.sessionId, ...record })),
  )
  const tags = group.flatMap(({ lease, summary }) =>
    Object.entries(summary?.tags ?? {}).map(([name, value]) => ({ sessionId: lease.sessionId, name, value })),
  )
  return [
    group.map(({ lease }) => lease.sessionId),
    time,
    group.map(({ lease }) => lease.token),
    group.map(({ records: [first] }) => (first ? first.seq - 1 : null)),
    group.map(({ records: own }) => own.length),
    group.map(({ summary }) => stringifySummary(summary)),
    group.map(({ summary }) => summary?.state ?? null),
    group.map(({ summary }) => summary?.agent ?? null),
    records.map(({ sessionId }) => sessionId),
    records.map(({ seq }) => seq),
    records.map(({ at }) => at),
    records.map(({ type }) => type),
    records.map(({ data }) => data),
    records.map(({ check }) => check),
    group.map(({ isLast }) => isLast),
    group.map(({ summary }) => summary?.parent ?? null),
    tags.map(({ sessionId }) => sessionId),
    tags.map(({ name }) => name),
    tags.map(({ value }) => value),
  ]
}

export interface AcquiredRow {
  expires_at: string
  inbox: string
  head: string
}

export interface NewsRow {
  id: string
  inbox: string
}

export function toInboxNews({ id, inbox }: NewsRow): UnreadInbox {
  return { sessionId: id, inbox: Number(inbox) }
}

export interface AppendedRow {
  id: string
  inbox: string
  released: boolean
}

export function toAppended({ inbox, released }: AppendedRow): Appended {
  return { inbox: Number(inbox), ...(released && { released }) }
}

export interface PutRow extends Pick<SessionRow, 'holder' | 'process' | 'held'> {
  told: string
}

export interface EntryRow extends SessionRow {
  id: string
  created_at: string
  updated_at: string
  summary: string | null
  title: string | null
}

export function toListedSession(row: EntryRow): ListedSession {
  return {
    id: row.id,
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    head: Number(row.head),
    summary: withTitle(parseSummary(row.summary), row.title),
    holder: row.held && !isProcessGone(row.process) ? row.holder : null,
  }
}
