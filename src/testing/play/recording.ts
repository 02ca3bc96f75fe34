import { isObject } from '../../core/base/values.js'
import { StatewrightError } from '../../core/base/errors.js'
import { quoteShellWord } from '../../core/format/shell-words.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { ToolSpec } from '../../core/models/provider.js'
import { findUnknownFormat, logVersion, openRecord } from '../../core/sessions/log/log-record.js'
import type { ClearedRecord } from '../../core/sessions/clear-records.js'
import type { LogRecord } from '../../core/sessions/store/store.js'

/**
 * The kind of a difference.
 *
 * - `prompt`: the instructions
 * - `tools`: a tool is missing, new or described differently
 * - `settings`: `sampling`, `toolChoice` or `extraBody`
 * - `output`: the answer schema
 * - `arguments`: a tool accepts or rejects different arguments
 * - `result`: a live tool returned a different result
 * - `approval`: who must act on a call
 * - `message`: the transcript
 * - `guidance`: the guards' messages to the model
 * - `state`: the agent leads to a different state
 * - `chart`: this version of Statewright leads to a different state
 */
export type DifferenceKind =
  | 'prompt'
  | 'tools'
  | 'settings'
  | 'output'
  | 'arguments'
  | 'result'
  | 'approval'
  | 'message'
  | 'guidance'
  | 'state'
  | 'chart'

/** A difference between a recording and its replay. */
export interface SessionDifference {
  by: DifferenceKind
  /** Number of the run, from 1. Null if the difference applies to all runs. */
  run: number | null
  /** Number of the step, from 1. Null before the first step. */
  step: number | null
  /** Sequence number of the record. */
  record: number | null
  /** Names of the tools that lead to the sub-agent. Empty for the session itself. */
  path: readonly string[]
  /** The tool, call or setting that differs. */
  subject: string | null
  recorded: string
  now: string
  /** The complete description, which may have several lines. */
  message: string
}

/**
 * - `session_differs`: the replay differs; see `differences`
 * - `invalid_recording`, `newer_recording`, `damaged_recording`: the recording cannot be replayed
 * - `not_an_agent`, `invalid_option`: an invalid argument
 */
export type ReplayErrorCode =
  | 'session_differs'
  | 'invalid_recording'
  | 'newer_recording'
  | 'damaged_recording'
  | 'not_an_agent'
  | 'invalid_option'

/**
 * A replay that differs, or a recording that cannot be replayed.
 *
 * @example
 * try {
 *   await replaySession(agent, recording)
 * } catch (error) {
 *   if (error instanceof ReplayError) for (const { by, message } of error.differences) console.log(by, message)
 * }
 */
export class ReplayError extends StatewrightError {
  override readonly name = 'ReplayError'
  declare readonly code: ReplayErrorCode
  /** The differences in the order found. Empty if the recording cannot be replayed. */
  readonly differences: readonly SessionDifference[]

  constructor(
    code: ReplayErrorCode,
    message: string,
    subject?: string,
    { differences = [], ...options }: ErrorOptions & { differences?: readonly SessionDifference[] } = {},
  ) {
    super(code, message, subject, options)
    this.differences = differences
  }
}

/** Version of the recording format. The records in a recording have the version of the log. */
export const recordingVersion = 1

/** A tool as it was recorded. */
export interface RecordedTool extends ToolSpec {
  /** Executed by the caller of the run. */
  client?: true
  /** Deferred until it is loaded. */
  defer?: true
  /** The agent behind a sub-agent tool. */
  agent?: RecordedAgent
  /** The agent in `team` that receives the conversation. */
  handoff?: string
}

/**
 * The parts of an agent that are sent with each request, and its configuration. Missing parts were unknown during the
 * recording and are not compared.
 */
export interface RecordedAgent {
  /** The instructions of the agent. Null if there are none. */
  instructions?: string | null
  tools?: RecordedTool[]
  /** `sampling`, `toolChoice` and `extraBody`. */
  settings?: JsonObject
  /** The required answer format, or null. */
  output?: { name: string; schema: JsonObject } | null
  config?: AgentConfig
  /** Agents reachable by handoff, by name. */
  team?: Record<string, RecordedAgent>
}

/** A log record and the state after it (`RUNNING.asking.requesting`), or null before the first run. */
export type RecordedEntry = ClearedRecord & { reached: string | null }

/**
 * A session that can be replayed without a model, as plain JSON. Created by `recordSession` or `statewright sessions
 * export ID --as test`, and replayed by `replaySession`.
 */
export interface Recording {
  statewright: 'recording'
  version: typeof recordingVersion
  session: string
  agent: RecordedAgent
  records: RecordedEntry[]
  /**
   * Hashes of the final transcript's messages. Null if the recording ends early because withheld content
   * determined the next step.
   */
  messages: string[] | null
  /** Sub-agent sessions by calling tool. After a handoff, `speaker` is the calling agent. */
  subAgents: { tool: string; callId: string; speaker?: string; recording: Recording }[]
  /** Checksum of the other fields. Without a checksum, damage is not detected. */
  check?: string
}

export function sealRecording(recording: Omit<Recording, 'check'>): Recording {
  return { ...recording, check: computeCheck(recording) }
}

function computeCheck(recording: Omit<Recording, 'check'>): string {
  return sha256(JSON.stringify(recording)).slice(0, 16)
}

export interface ReadableRecording extends Omit<Recording, 'records'> {
  records: (ClearedRecord & { reached?: string | null })[]
}

/**
 * Reads a recording, or log records from a store.
 * @throws {ReplayError} `invalid_recording`, `newer_recording`, `damaged_recording`
 * @throws {StoreError} `corrupt_log`, `newer_log` for records of a store
 */
export function readRecording(value: unknown): ReadableRecording {
  if (Array.isArray(value)) return fromRecords(value as LogRecord[])
  if (typeof value === 'string')
    throw invalidRecordingError('This is a string. Parse it with JSON.parse, or import the file as JSON.')
  if (typeof value !== 'object' || value === null) throw invalidRecordingError(`This is ${String(value)}.`)
  const { statewright, version, check, ...rest } = value as Partial<Recording>
  if (statewright !== 'recording') {
    const isSession = 'messages' in value && 'usage' in value
    throw invalidRecordingError(
      isSession ? 'This is a session exported as JSON, which contains no log.' : 'This is not a recording.',
    )
  }
  if (typeof version !== 'number' || version < 1)
    throw invalidRecordingError(`It has no version (${String(version)}).`)
  if (version > recordingVersion) {
    throw new ReplayError(
      'newer_recording',
      `The recording has version ${String(version)}; this version of Statewright supports versions up to ${recordingVersion}. ` +
        'Replay it with the newer Statewright, or record it again with this one.',
    )
  }
  const { session, agent, records, messages, subAgents } = rest
  const isWhole =
    typeof session === 'string' &&
    isObject(agent) &&
    Array.isArray(records) &&
    records.every((record) => isObject(record) && typeof record.seq === 'number') &&
    (messages === null || Array.isArray(messages)) &&
    Array.isArray(subAgents)
  if (!isWhole) throw damagedRecordingError(session, 'parts are missing')
  const whole = {
    statewright,
    version: recordingVersion,
    session,
    agent,
    records,
    messages,
    subAgents,
  } as const
  if (check !== undefined && check !== computeCheck(whole))
    throw damagedRecordingError(session, 'its checksum does not match its content')
  return { ...whole, records: checkRecords(records, session) }
}

function checkRecords(records: readonly RecordedEntry[], session: string): RecordedEntry[] {
  if (records.length === 0) throw damagedRecordingError(session, 'it has no records')
  for (const [i, record] of records.entries()) {
    const before = records[i - 1]
    if (!isWellFormed(record)) throw damagedRecordingError(session, `record ${record.seq} is incomplete`)
    if (before && record.seq <= before.seq)
      throw damagedRecordingError(session, `record ${record.seq} is out of order`)
    const unknown = findUnknownFormat('version' in record ? record.version : logVersion, record.needs ?? [])
    if (unknown !== null) {
      throw new ReplayError(
        'newer_recording',
        `The recording of session '${session}' ${unknown}. Replay it with the newer Statewright.`,
        session,
      )
    }
  }
  const [first] = records
  if (first && first.type !== 'snapshot' && first.seq !== 1)
    throw damagedRecordingError(session, 'its beginning is missing')
  return [...records]
}

function isWellFormed(record: RecordedEntry): boolean {
  const { type, input, event, state } = record as Partial<Record<string, unknown>>
  if (type === 'start') return isObject(input) && Array.isArray(input.input) && isObject(input.config)
  if (type === 'event') return isObject(event) && typeof event.type === 'string'
  return type === 'opened' || (type === 'snapshot' && isObject(state) && isObject(state.context))
}

function fromRecords(value: readonly LogRecord[]): ReadableRecording {
  const session = '(records)'
  if (value.length === 0)
    throw invalidRecordingError('It contains no records, so the store has no such session.')
  const isLog = value.every((record) => isObject(record) && typeof record.data === 'string')
  if (!isLog) throw invalidRecordingError('This is a list, but not one of log records from store.read().')
  let last = (value[0]?.type === 'snapshot' ? value[0].seq : 1) - 1
  const records = value.map((record) => {
    const entry = openRecord(record, last, session)
    last = record.seq
    return { seq: record.seq, at: record.at, ...entry }
  })
  const start = records.find((record) => record.type === 'start')
  return {
    statewright: 'recording',
    version: recordingVersion,
    session: start?.type === 'start' ? start.input.sessionId : session,
    agent: {},
    records,
    messages: null,
    subAgents: [],
  }
}

function invalidRecordingError(what: string): ReplayError {
  return new ReplayError(
    'invalid_recording',
    `A recording must be the output of 'statewright sessions export ID --as test' or recordSession(), or the records of store.read(). ${what}`,
  )
}

function damagedRecordingError(session: unknown, what: string): ReplayError {
  const id = typeof session === 'string' ? session : 'ID'
  return new ReplayError(
    'damaged_recording',
    `The recording of session '${id}' is damaged: ${what}. Restore the file from version control, or record it again: ` +
      `statewright sessions export ${quoteShellWord(id)} --as test --update. If you changed it on purpose, delete its "check".`,
    id,
  )
}
