import { sha256 } from '../../../../guards/lib/sha256.js'
import type { LogRecord } from '../store/store.js'
import { StoreError } from '../store/store-error.js'
import { logFeatures } from './log-features.js'
import { logVersion, type RecordContent } from './record-content.js'

/** An entry that is not sealed yet. */
export type RecordDraft = Omit<LogRecord, 'check'>

/** An entry as it stands now: it may change later, and what cannot be written throws at once. */
export function draftRecord(seq: number, at: number, { type, ...rest }: RecordContent): RecordDraft {
  return { seq, at, type, data: JSON.stringify(rest) }
}

/** A record that tells when it is damaged. `lastEventSeq`: the number of the run's last event so far. */
export function sealDraft({ seq, at, type, data: written }: RecordDraft, lastEventSeq?: number): LogRecord {
  const data = lastEventSeq === undefined ? written : addEventSeq(written, lastEventSeq)
  return { seq, at, type, data, check: computeChecksum(seq, at, type, data) }
}

export function sealRecord(seq: number, at: number, entry: RecordContent): LogRecord {
  return sealDraft(draftRecord(seq, at, entry))
}

/** Entries are objects, and none is empty. */
function addEventSeq(data: string, seq: number): string {
  return `${data.slice(0, -1)},"lastEventSeq":${seq}}`
}

/**
 * What a record says.
 * @throws {StoreError} `corrupt_log` for a record that is damaged or does not follow `after`, naming the last good one;
 * `newer_log` for one that a newer Statewright wrote
 */
export function openRecord(record: LogRecord, after: number, sessionId: string): RecordContent {
  const { seq, at, type, data, check } = record
  if (seq !== after + 1) throw damagedLogError(sessionId, after, `record ${after + 1} is missing`)
  if (check !== computeChecksum(seq, at, type, data))
    throw damagedLogError(sessionId, after, `record ${seq} is damaged`)
  let entry: RecordContent
  try {
    entry = { type, ...(JSON.parse(data) as object) } as RecordContent
  } catch (error) {
    throw damagedLogError(sessionId, after, `record ${seq} is not JSON`, error)
  }
  const { version = logVersion, needs = [] }: { version?: unknown; needs?: unknown } = entry
  if (typeof version !== 'number')
    throw damagedLogError(sessionId, after, `record ${seq} names no log version`)
  const unknown = findUnknownFormat(version, needs)
  if (unknown === null) return entry
  const text = `Session '${sessionId}' ${unknown}. Open it with the newer Statewright that wrote it.`
  throw new StoreError('newer_log', text, sessionId)
}

/** The part of a record's format that this Statewright does not know, as a predicate; null: it knows all. */
export function findUnknownFormat(version: number, needs: unknown): string | null {
  if (version > logVersion)
    return `was written with log version ${version}; this Statewright knows versions up to ${logVersion}`
  const unknown = (Array.isArray(needs) ? needs : [needs]).filter(
    (name) => !Object.hasOwn(logFeatures, String(name)),
  )
  return unknown.length === 0 ? null : `uses ${unknown.join(', ')}, which this Statewright does not know`
}

function computeChecksum(seq: number, at: number, type: string, data: string): string {
  return sha256(`${seq} ${at} ${type} ${data}`).slice(0, 16)
}

/** What cannot be read, and up to where it can. */
export function damagedLogError(
  sessionId: string,
  lastGood: number,
  what: string,
  cause?: unknown,
): StoreError {
  const remedy =
    lastGood > 0
      ? `Everything up to record ${lastGood} is good: agent.fork('${sessionId}', ${lastGood}) goes on from there.`
      : 'No record before it is good: delete the session, or restore it from a backup.'
  return new StoreError('corrupt_log', `The log of session '${sessionId}': ${what}. ${remedy}`, sessionId, {
    cause,
  })
}
