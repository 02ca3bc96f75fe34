import { expectArgument, listRule } from '../core/base/values.js'
import { foldRecords, toMachineState } from '../core/sessions/fold-session.js'
import { completeInput, restoreState } from '../core/sessions/log/stored-state.js'
import { logVersion, openRecord, type RecordContent } from '../core/sessions/log/log-record.js'
import type { LogRecord, ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { checkFacts } from './reference-model/check-facts.js'
import { details } from './reference-model/details.js'
import { judgeLog, type LogEntry } from './reference-model/judge-log.js'
import { StoreError } from '../core/sessions/store/store-error.js'

/** The first rule of the reference model that a log violates. */
export interface LogViolation {
  /** Sequence number of the record. */
  seq: number
  rule: string
  /** The rule as a sentence. */
  law: string
  /** How the record violates it. */
  message: string
}

/**
 * Checks a stored session against the reference model, an independent specification of the loop. Takes the
 * records of `store.read`, complete or from a snapshot on, and also checks the state restored from them.
 * Returns null, or the first record that violates a rule.
 *
 * @example
 * const violation = checkSessionLog(await memoryStore().read('ann'))
 * if (violation) console.log(`Record ${violation.seq}: ${violation.message} (${violation.law})`)
 * @throws {StoreError} `corrupt_log` for a record that is damaged, `newer_log`, `unknown_state`
 * @throws {UsageError} `invalid_argument` if the argument is not a list of records
 */
export function checkSessionLog(
  records: readonly LogRecord[],
  sessionId = 'of this log',
): LogViolation | null {
  expectArgument('checkSessionLog(records)', records, recordsRule)
  const entries: LogEntry[] = []
  let after = (records[0]?.type === 'snapshot' ? records[0].seq : 1) - 1
  for (const record of records) {
    const content = openRecord(record, after, sessionId)
    after = record.seq
    entries.push({ ...complete(content), seq: record.seq, at: record.at, type: content.type })
  }
  let facts: LogViolation | null = null
  /** The restored state is read only if the log itself is valid. */
  function* listEntries(): Iterable<LogEntry> {
    yield* entries
    facts = checkFacts(entries)
    const end = facts ? null : readEnd(records, sessionId)
    if (!end) return
    yield end
    facts = checkFacts([...entries, end])
  }
  return judgeLog(listEntries(), details) ?? facts
}

const recordsRule = listRule('the records of a session, as store.read() returns them')

/** Restores the parts that the log leaves out. */
function complete(content: RecordContent): object {
  if (content.type === 'start') return { ...content, input: completeInput(content.input) }
  return content.type === 'snapshot' ? { ...content, state: restoreState(content.state) } : content
}

/** The state a log leads to, as the snapshot that would follow; null if no run has started. */
function readEnd(records: readonly LogRecord[], sessionId: string): LogEntry | null {
  const { run, head, at, runs, inbox, queued } = foldRecords(records, sessionId)
  if (run === null) return null
  return {
    type: 'snapshot',
    seq: head + 1,
    at,
    version: logVersion,
    runs,
    inbox,
    queued,
    state: toMachineState(run),
  }
}

/** A violated rule of a log, or an error while reading it. */
export interface LogFault {
  /** Sequence number of the record; null if the log cannot be read. */
  seq: number | null
  /** The rule's name, or `corrupt_log`, `newer_log`, `unknown_state`. */
  rule: string
  message: string
  /** The rule as a sentence; null if the log cannot be read. */
  law: string | null
}

export interface CheckedLog {
  session: string
  violation: LogFault | null
}

const pageSize = 500

/** Checks the logs of all sessions in a store one by one, including those of sub-agents. Read-only. */
export async function* checkSessionLogs(store: SessionStore): AsyncGenerator<CheckedLog> {
  let cursor: ListedSession | undefined
  do {
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    const page = await store.list({ children: true, limit: pageSize, after: cursor })
    for (const { id } of page) {
      // oxlint-disable-next-line no-await-in-loop -- one log at a time is in memory
      const records = await store.read(id)
      // The session was deleted in the meantime, or never written.
      if (records.length > 0) yield { session: id, violation: findFault(() => checkSessionLog(records, id)) }
    }
    cursor = page.length === pageSize ? page.at(-1) : undefined
  } while (cursor)
}

function findFault(check: () => LogViolation | null): LogFault | null {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { seq: null, rule: error.code, message: error.message, law: null }
  }
}
