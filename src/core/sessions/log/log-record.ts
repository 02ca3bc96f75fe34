import { sha256 } from '../../../../guards/lib/sha256.js'
import type { LogRecord } from '../store/store.js'
import { StoreError } from '../store/store-error.js'
import type {
  AgentContext,
  AgentInput,
  SessionState,
  AgentMachineEvent,
} from '../../../../machines/agent/context.js'
import type { AgentDefinition } from '../agent-definition.js'
import type { BranchStart, BranchTree } from '../branch-tree.js'
import type { ContentPart } from '../../../../machines/agent/messages.js'
import type { SessionTags } from '../store/session-tags.js'

export type RecordDraft = Omit<LogRecord, 'check'>

/** Serializes an entry at once, because it may change later and an unserializable entry must throw here. */
export function draftRecord(seq: number, at: number, { type, ...rest }: RecordContent): RecordDraft {
  return { seq, at, type, data: JSON.stringify(rest) }
}

/** `lastEventSeq` is the number of the run's last event so far. */
export function sealDraft({ seq, at, type, data: written }: RecordDraft, lastEventSeq?: number): LogRecord {
  // Entries are JSON objects with at least one key.
  const data =
    lastEventSeq === undefined ? written : `${written.slice(0, -1)},"lastEventSeq":${lastEventSeq}}`
  return { seq, at, type, data, check: computeChecksum(seq, at, type, data) }
}

export function sealRecord(seq: number, at: number, entry: RecordContent): LogRecord {
  return sealDraft(draftRecord(seq, at, entry))
}

/**
 * @throws {StoreError} `corrupt_log`, naming the last intact record, if the record is damaged or does not follow
 * `after`; `newer_log`; `machine_session`
 */
export function openRecord(record: LogRecord, after: number, sessionId: string): RecordContent {
  const content = verifyRecord(record, after, sessionId)
  const { machine } = content as { machine?: unknown }
  if (typeof machine === 'string') throw machineSessionError(sessionId, machine)
  return content
}

export function verifyRecord(
  record: LogRecord,
  after: number,
  sessionId: string,
): RecordContent & Record<string, unknown> {
  const { seq, at, type, data, check } = record
  if (seq !== after + 1) throw damagedLogError(sessionId, after, `record ${after + 1} is missing`)
  if (check !== computeChecksum(seq, at, type, data))
    throw damagedLogError(sessionId, after, `record ${seq} is damaged`)
  let entry: RecordContent & Record<string, unknown>
  try {
    entry = { type, ...(JSON.parse(data) as object) } as typeof entry
  } catch (error) {
    throw damagedLogError(sessionId, after, `record ${seq} is not JSON`, error)
  }
  const { version = logVersion, needs = [] }: { version?: unknown; needs?: unknown } = entry
  if (typeof version !== 'number') throw damagedLogError(sessionId, after, `record ${seq} has no log version`)
  const unknown = findUnknownFormat(version, needs)
  if (unknown === null) return entry
  const text = `Session '${sessionId}' ${unknown}. Open it with the newer Statewright that wrote it.`
  throw new StoreError('newer_log', text, sessionId)
}

function machineSessionError(sessionId: string, machine: string): StoreError {
  const message =
    `Session '${sessionId}' belongs to the machine '${machine}', not to an agent. Use send, settled, replay and fork of ` +
    "durable(machine, …), from 'statewright/durable'."
  return new StoreError('machine_session', message, sessionId)
}

/** The part of a record's format that this version does not know, as the predicate of a sentence. */
export function findUnknownFormat(version: number, needs: unknown): string | null {
  if (version > logVersion)
    return `was written with log version ${version}; this version of Statewright supports versions up to ${logVersion}`
  const unknown = [needs].flat().filter((name) => !Object.hasOwn(logFeatures, String(name)))
  return unknown.length === 0
    ? null
    : `uses ${unknown.join(', ')}, which this version of Statewright does not support`
}

function computeChecksum(seq: number, at: number, type: string, data: string): string {
  return sha256(`${seq} ${at} ${type} ${data}`).slice(0, 16)
}

export function damagedLogError(
  sessionId: string,
  lastGood: number,
  what: string,
  cause?: unknown,
): StoreError {
  const remedy =
    lastGood > 0
      ? `Everything up to record ${lastGood} is intact. agent.fork('${sessionId}', ${lastGood}) continues from there, or, for a ` +
        `machine, its fork('${sessionId}', { at: ${lastGood} }).`
      : 'No record before it is intact. Delete the session, or restore it from a backup.'
  const message = `The log of session '${sessionId}': ${what}. ${remedy}`
  return new StoreError('corrupt_log', message, sessionId, { cause })
}

/** Version of the record format. Readers reject logs with a higher version. */
export const logVersion = 1

/** The input of a run without the session state, which the log already contains. This keeps start records small. */
export type StartInput = Omit<AgentInput, keyof SessionState>

/** A snapshot of the machine, as XState persists it. Plain JSON. */
export interface MachineState {
  status: 'active' | 'done' | 'error' | 'stopped'
  value: unknown
  context: Pick<AgentContext, 'runId' | 'sessionId' | 'messages'>
  [key: string]: unknown
}

/** An edit as stored in the log, after the shields have checked it. */
export type LoggedEdit =
  | { message: string; content: string | ContentPart[] }
  | { call: string; arguments: string }
  | { call: string; result: string }
  | { instructions: string }

/**
 * The content of a log record. A log has one `opened` record and then, for each run, a `start` followed by its
 * `event`s. A `snapshot` may follow any event. A snapshot contains the state up to that point, so that reading can
 * start there.
 */
export type RecordContent = Content & {
  /** Number of the run's last event at the time of writing. Set on the last record of a write. */
  lastEventSeq?: number
  /** The trace link for the process that resumes the run. See `JournalEntry`. A snapshot repeats the last link. */
  link?: string
  /** The features used from this record on, all in a snapshot. A reader that does not know one rejects the log. */
  needs?: string[]
}

type Content =
  | {
      type: 'opened'
      version: typeof logVersion
      name?: string
      /** The session's tags, from its first run or from the session that it was forked from. */
      tags?: SessionTags
      /** For a sub-agent, the session of the run that called it. */
      parent?: string
      /** The initial state of a session that was stored elsewhere or forked. */
      state?: SessionState
      /** The session and record that this session was forked from, and the edit. */
      forkedFrom?: { sessionId: string; seq: number; edit?: LoggedEdit }
    }
  | {
      type: 'start'
      input: StartInput
      /** The agent that starts the run. */
      definition?: AgentDefinition
      /** Number of the queued inbox message that starts the run. */
      queued?: number
      /** The session's tags from this record on, if the run changes them. */
      tags?: SessionTags
      /** The new branch. Set if the run starts a branch before the end of the transcript. */
      branch?: BranchStart
    }
  | { type: 'event'; event: AgentMachineEvent }
  | {
      type: 'snapshot'
      version: typeof logVersion
      name?: string
      tags?: SessionTags
      parent?: string
      runs: number
      /** The agent of the latest run. */
      definition?: AgentDefinition
      /** Number of the last inbox message in the log. */
      inbox?: number
      /** Number of the last queued inbox message that started a run. */
      queued?: number
      /** Idempotency keys of the latest messages in the log. */
      keys?: string[]
      /** The branches of the session, if there are several. */
      branches?: BranchTree
      /** The branch that the session switches back to. Absent if the record only repeats the state. */
      selected?: number
      state: MachineState
    }

/**
 * Features that later versions add to the log, each with a predicate for records that use the feature. Such a record
 * lists the feature in `needs`, and a version that does not know the feature rejects the log (`newer_log`). Version 1
 * has none.
 */
export const logFeatures: Record<string, (record: RecordContent) => boolean> = {}

export function listFeatures(record: RecordContent): string[] {
  return Object.keys(logFeatures).filter((name) => logFeatures[name]?.(record))
}
