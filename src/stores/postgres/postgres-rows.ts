import type pg from 'pg'
import { isProcessGone } from '../../core/sessions/store/process-identity.js'
import type {
  Appended,
  Lease,
  ListedSession,
  LogRecord,
  SessionSummary,
} from '../../core/sessions/store/store.js'
import { parseMarks } from '../../core/sessions/store/step-marks.js'
import { parseSummary, stringifySummary, withTitle } from '../../core/sessions/store/session-title.js'

/** Runs a query on the store's database. */
export type Query = <Row extends object>(text: string, values: unknown[]) => Promise<Row[]>

type Answer<Row> = Pick<pg.QueryResult<Row & pg.QueryResultRow>, 'rows'> & { fields?: pg.FieldDef[] }

/**
 * Converts bigints, which `pg` returns as strings. Stored integers are safe. Native pools ignore parsers. The answer to
 * several statements has no fields.
 */
export function readRows<Row extends object>({ rows, fields = [] }: Answer<Row>): Row[] {
  const numbers = fields.filter(({ dataTypeID }) => dataTypeID === bigintType)
  for (const { name } of numbers)
    for (const row of rows as Record<string, unknown>[]) if (row[name] !== null) row[name] = Number(row[name])
  return rows
}

const bigintType = 20

/** One array per column, for `unnest`. */
export function toColumns<Row extends object>(rows: readonly Row[], keys: readonly (keyof Row)[]) {
  return keys.map((key) => rows.map((row) => row[key] ?? null))
}

export interface SessionRow {
  token: string | null
  holder: string | null
  process: string | null
  head: number
  held: boolean
}

export function toAppendValues(group: readonly PendingAppend[], time: number | null): unknown[] {
  const records = group.flatMap(({ lease: { sessionId }, records: own }) =>
    own.map((record) => ({ sessionId, ...record })),
  )
  const tags = group.flatMap(({ lease: { sessionId }, summary }) =>
    Object.entries(summary?.tags ?? {}).map(([name, value]) => ({ sessionId, name, value })),
  )
  const summaries = group.map(({ summary }) => ({ ...summary }))
  return [
    group.map(({ lease }) => lease.sessionId),
    time,
    group.map(({ lease }) => lease.token),
    group.map(({ records: [first] }) => (first ? first.seq - 1 : null)),
    group.map(({ records: own }) => own.length),
    group.map(({ summary }) => stringifySummary(summary)),
    ...toColumns(summaries, ['state', 'agent']),
    ...toColumns(records, ['sessionId', 'seq', 'at', 'type', 'data', 'check']),
    group.map(({ isLast }) => isLast),
    group.map(({ summary }) => summary?.parent ?? null),
    ...toColumns(tags, ['sessionId', 'name', 'value']),
  ]
}

export interface EntryRow extends SessionRow, Pick<ListedSession, 'id' | 'createdAt' | 'updatedAt'> {
  summary: string | null
  title: string | null
  /** The marks as JSON. */
  marks: string | null
}

/** The live holder of a session. */
export const findHolder = ({
  held,
  process,
  holder,
}: Pick<SessionRow, 'held' | 'process' | 'holder'>): string | null =>
  held && !isProcessGone(process) ? holder : null

export function toListedSession(row: EntryRow): ListedSession {
  const { id, createdAt, updatedAt, head, summary, title, marks } = row
  return {
    id,
    createdAt,
    updatedAt,
    head,
    summary: withTitle(parseSummary(summary), title),
    holder: findHolder(row),
    ...parseMarks(marks),
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

const maxGroupSize = 100

/** Concurrent appends share a statement, at most one per session. `write` settles them and never rejects. */
export function groupAppends(
  write: (group: readonly PendingAppend[]) => Promise<void>,
): (append: Omit<PendingAppend, 'settle' | 'fail'>) => Promise<Appended | null> {
  let waiting: PendingAppend[] = []
  let underWay = 0
  /** Sessions of the groups in flight. */
  const written = new Set<string>()
  let isDue = false

  const takeGroup = (): PendingAppend[] => {
    const group: PendingAppend[] = []
    waiting = waiting.filter((append) => {
      const { sessionId } = append.lease
      if (group.length >= maxGroupSize || written.has(sessionId)) return true
      written.add(sessionId)
      group.push(append)
      return false
    })
    return group
  }

  const writeNext = (): void => {
    while (underWay < maxGroupsUnderWay && waiting.length > 0) {
      const group = takeGroup()
      if (group.length === 0) return
      underWay += 1
      void write(group).finally(() => {
        underWay -= 1
        for (const { lease } of group) written.delete(lease.sessionId)
        writeNext()
      })
    }
  }

  return (append) =>
    new Promise((settle, fail) => {
      waiting.push({ ...append, settle, fail })
      if (isDue) return
      isDue = true
      queueMicrotask(() => {
        isDue = false
        writeNext()
      })
    })
}
