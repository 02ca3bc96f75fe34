import { sha256 } from '../../../../guards/lib/sha256.js'
import type { LogRecord } from '../store/store.js'
import { StoreError } from '../store/store-error.js'
import type { AgentInput, SessionState } from '../../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../../machines/agent/machine-events.js'
import type { AgentDefinition } from '../agent-definition.js'
import type { BranchStart, BranchTree } from '../branch-tree.js'
import type { LoggedEdit } from '../fork-edit.js'
import type { SessionTags } from '../store/session-tags.js'

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

/** The version of the record format. Readers refuse logs with a higher version. */
export const logVersion = 1

/** What a run starts from, but for what the log itself says: the session's state. So a start is small, too. */
export type StartInput = Omit<AgentInput, keyof SessionState>

/** The machine at one moment, as XState keeps it: plain JSON. */
export interface MachineState {
  status: 'active' | 'done' | 'error' | 'stopped'
  value: unknown
  context: object
  [key: string]: unknown
}

/**
 * What a session's log is made of, in this order: one `opened`, then a `start` and its `event`s for each run. A
 * `snapshot` may stand anywhere after an event: it says what all before it comes to, so that reading can begin there.
 */
export type RecordContent = Content & {
  /** The number of the run's last event when this was written: on the last of those that were written together. */
  lastEventSeq?: number
  /** What the run's telemetry leaves for the process that resumes the run: see `JournalEntry`. A snapshot repeats the last. */
  link?: string
  /** The features that the log uses from here on. A snapshot repeats all. A reader that does not know one refuses the log. */
  needs?: string[]
}

type Content =
  | {
      type: 'opened'
      version: number
      name?: string
      /** What the session is found by: from its first run, or from the session that it was forked from. */
      tags?: SessionTags
      /** Of a sub-agent's session: the session of the run that called it. */
      parent?: string
      /** What the session had when it came here: stored elsewhere, or forked. */
      state?: SessionState
      /** The record of another session that it begins at, and what it has otherwise. */
      forkedFrom?: { sessionId: string; seq: number; edit?: LoggedEdit }
    }
  | {
      type: 'start'
      input: StartInput
      /** The agent that begins the run. */
      definition?: AgentDefinition
      /** The number of the queued message of the session's inbox that the run begins with. */
      queued?: number
      /** What the session is found by from here on, where the run changes it. */
      tags?: SessionTags
      /** The run begins a branch: it leaves the transcript before its end. */
      branch?: BranchStart
    }
  | { type: 'event'; event: AgentMachineEvent }
  | {
      type: 'snapshot'
      version: number
      name?: string
      tags?: SessionTags
      parent?: string
      runs: number
      /** Of the latest run. */
      definition?: AgentDefinition
      /** The last message of the session's inbox that is in the log. */
      inbox?: number
      /** The last queued message of the inbox that a run began with. */
      queued?: number
      /** The idempotency keys of the last messages that are in the log. */
      keys?: string[]
      /** The branches of the session, where it has several. */
      branches?: BranchTree
      /** The session is put back on this branch. Absent: the record repeats what those before it say. */
      selected?: number
      state: MachineState
    }

/**
 * What later versions have added to the log, and which records use it. A record that uses a feature names it in `needs`,
 * and a Statewright that does not know the feature refuses the log (`newer_log`). Version 1 has none.
 */
export const logFeatures: Record<string, (record: RecordContent) => boolean> = {}

/** The features that a record uses. */
export function listFeatures(record: RecordContent): string[] {
  return Object.keys(logFeatures).filter((name) => logFeatures[name]?.(record))
}
