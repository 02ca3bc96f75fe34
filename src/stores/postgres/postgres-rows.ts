import { isProcessGone } from '../../core/sessions/store/process-identity.js'
import type { UnreadInbox } from '../../core/sessions/store/inbox.js'
import type {
  Appended,
  Lease,
  ListedSession,
  LogRecord,
  SessionSummary,
} from '../../core/sessions/store/store.js'
import { parseMarks } from '../../core/sessions/store/step-marks.js'
import { parseSummary, stringifySummary, withTitle } from '../../core/sessions/store/session-title.js'
export interface SessionRow {
  token: string | null
  holder: string | null
  process: string | null
  /** Postgres returns a bigint as a string. */
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

/** The parameters of a group of appends, with one array per column for `unnest`. */
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
  last_message: string
}

export interface EntryRow extends SessionRow {
  id: string
  created_at: string
  updated_at: string
  summary: string | null
  title: string | null
  /** The marks as JSON. */
  marks: string | null
}

export function toListedSession(row: EntryRow): ListedSession {
  return {
    id: row.id,
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    head: Number(row.head),
    summary: withTitle(parseSummary(row.summary), row.title),
    holder: row.held && !isProcessGone(row.process) ? row.holder : null,
    ...parseMarks(row.marks),
  }
}

/** An append, with the callbacks that settle it. */
export interface PendingAppend {
  lease: Lease
  records: readonly LogRecord[]
  summary: SessionSummary | undefined
  /** Whether the append also releases the lease. */
  isLast: boolean
  /** Called with null if the store refused the append for a reason that is not known yet. */
  settle(answer: Appended | null): void
  fail(error: unknown): void
}

/** The maximum number of groups in flight. One group is written while the next one is collected. */
const maxGroupsUnderWay = 2

/** Maximum number of appends per statement. */
const maxGroupSize = 100

/**
 * Groups concurrent appends into one statement, so that many sessions of a process share a round trip. Each session has
 * at most one append in flight, and further appends wait.
 */
export class AppendGroups {
  #waiting: PendingAppend[] = []
  #underWay = 0
  /** Sessions of the groups in flight. */
  readonly #written = new Set<string>()
  #isDue = false
  readonly #write: (group: readonly PendingAppend[]) => Promise<void>

  /** `write` settles each append of the group and never rejects. */
  constructor(write: (group: readonly PendingAppend[]) => Promise<void>) {
    this.#write = write
  }

  add(append: Omit<PendingAppend, 'settle' | 'fail'>): Promise<Appended | null> {
    return new Promise((settle, fail) => {
      this.#waiting.push({ ...append, settle, fail })
      if (this.#isDue) return
      this.#isDue = true
      queueMicrotask(() => {
        this.#isDue = false
        this.#writeNext()
      })
    })
  }

  #writeNext(): void {
    while (this.#underWay < maxGroupsUnderWay && this.#waiting.length > 0) {
      const group = this.#takeGroup()
      if (group.length === 0) return
      this.#underWay += 1
      void this.#write(group).finally(() => {
        this.#underWay -= 1
        for (const { lease } of group) this.#written.delete(lease.sessionId)
        this.#writeNext()
      })
    }
  }

  #takeGroup(): PendingAppend[] {
    const group: PendingAppend[] = []
    const rest: PendingAppend[] = []
    for (const append of this.#waiting) {
      const { sessionId } = append.lease
      if (group.length >= maxGroupSize || this.#written.has(sessionId)) rest.push(append)
      else {
        this.#written.add(sessionId)
        group.push(append)
      }
    }
    this.#waiting = rest
    return group
  }
}
