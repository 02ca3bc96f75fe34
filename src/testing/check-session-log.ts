import { expectArgument, listRule } from '../core/base/values.js'
import { foldRecords, toMachineState } from '../core/sessions/fold-session.js'
import { completeInput } from '../core/sessions/log/complete-context.js'
import { openRecord } from '../core/sessions/log/log-record.js'
import { logVersion, type RecordContent } from '../core/sessions/log/record-content.js'
import { restoreState } from '../core/sessions/log/stored-state.js'
import type { LogRecord, ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { checkFacts } from './reference-model/check-facts.js'
import { details } from './reference-model/details.js'
import { judgeLog, type LogEntry } from './reference-model/judge-log.js'
import { StoreError } from '../core/sessions/store/store-error.js'

/** Which record of a log breaks which rule of the reference model. */
export interface LogViolation {
  /** The number of the record. */
  seq: number
  /** The rule's name. */
  rule: string
  /** The rule, in a sentence. */
  law: string
  /** How the record breaks it. */
  message: string
}

/**
 * Judges a stored session by the reference model: the rules of the loop, written a second time without the machine. Takes
 * the records as `store.read` returns them, whole or from a snapshot on. Judged as well is the state that this version makes
 * of the log. Null: every rule is kept; otherwise the first record that breaks one, as `{ seq, rule, law, message }`.
 *
 * @example
 * const violation = checkSessionLog(await memoryStore().read('ann'))
 * if (violation) console.log(`Record ${violation.seq}: ${violation.message} (${violation.law})`)
 * @throws {StoreError} `corrupt_log` for a record that is damaged, `newer_log`, `unknown_state`
 * @throws {UsageError} `invalid_argument` for what is no list of records
 */
export function checkSessionLog(
  records: readonly LogRecord[],
  sessionId = 'of this log',
): LogViolation | null {
  expectArgument('checkSessionLog(records)', records, recordsRule)
  const entries: LogEntry[] = []
  let isFirstVersion = false
  let after = (records[0]?.type === 'snapshot' ? records[0].seq : 1) - 1
  for (const record of records) {
    const content = openRecord(record, after, sessionId)
    after = record.seq
    if ('version' in content && content.version < 2) isFirstVersion = true
    entries.push({ ...complete(content), seq: record.seq, at: record.at, type: content.type })
  }
  // The first versions of logs have no marks of what is withheld.
  const marks = !isFirstVersion
  let facts: LogViolation | null = null
  /** The state that the log leads to is read where the log itself is sound. */
  function* listEntries(): Iterable<LogEntry> {
    yield* entries
    facts = checkFacts(entries, { marks })
    const end = facts ? null : readEnd(records, sessionId)
    if (!end) return
    yield end
    facts = checkFacts([...entries, end], { marks })
  }
  return judgeLog(listEntries(), details) ?? facts
}

const recordsRule = listRule('the records of a session, as store.read() returns them')

/** A record of an earlier version with what this one adds. */
function complete(content: RecordContent): object {
  if (content.type === 'start') return { ...content, input: completeInput(content.input) }
  return content.type === 'snapshot' ? { ...content, state: restoreState(content.state) } : content
}

/** The state that a log leads to, as the snapshot that could follow; null where no run has started. */
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

/** What is wrong with a log: a rule that a record breaks, or the code of the error that reading it ends with. */
export interface LogFault {
  /** The record; null where the log cannot be read. */
  seq: number | null
  /** The name of the rule, or `corrupt_log`, `newer_log`, `unknown_state`. */
  rule: string
  message: string
  /** The rule, in a sentence; null where the log cannot be read. */
  law: string | null
}

/** A session of a store, and what is wrong with its log; null: nothing is. */
export interface CheckedLog {
  session: string
  violation: LogFault | null
}

const pageSize = 500

/** Judges the log of every session of a store, those of sub-agents too, one after the other. Nothing is written. */
export async function* checkSessionLogs(store: SessionStore): AsyncGenerator<CheckedLog> {
  let cursor: ListedSession | undefined
  do {
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    const page = await store.list({ children: true, limit: pageSize, after: cursor })
    for (const { id } of page) {
      // oxlint-disable-next-line no-await-in-loop -- one log at a time is in memory
      const records = await store.read(id)
      // It was deleted in the meantime, or nothing was ever written.
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
