import { expectArgument, listRule } from '../core/base/expect-argument.js'
import { foldRecords, toMachineState } from '../core/sessions/fold-session.js'
import { completeInput } from '../core/sessions/log/complete-context.js'
import { openRecord } from '../core/sessions/log/log-record.js'
import { logVersion, type RecordContent } from '../core/sessions/log/record-content.js'
import { restoreState } from '../core/sessions/log/stored-state.js'
import type { LogRecord } from '../core/sessions/store/store.js'
import { checkFacts } from './reference-model/check-facts.js'
import { details } from './reference-model/details.js'
import { judgeLog, type LogEntry } from './reference-model/judge-log.js'

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
