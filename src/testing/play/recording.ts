import { isObject } from '../../core/base/values.js'
import { StatewrightError } from '../../core/base/errors.js'
import { quoteShellWord } from '../../core/format/shell-words.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { ToolSpec } from '../../core/models/provider.js'
import { findUnknownFormat, openRecord } from '../../core/sessions/log/log-record.js'
import { logVersion } from '../../core/sessions/log/record-content.js'
import type { ClearedRecord } from '../../core/sessions/clear-records.js'
import type { LogRecord } from '../../core/sessions/store/store.js'

/**
 * What is otherwise than it was recorded.
 *
 * - `prompt`: the instructions · `tools`: a tool is gone, new, or looks otherwise to the model · `settings`: sampling,
 *   toolChoice, extraBody · `output`: the schema of answers
 * - `arguments`: what the model gave a tool fits its schema no more, or does now · `result`: a live tool returned something
 *   else · `approval`: who has to act on a call before it runs
 * - `message`: the transcript has something else in it · `guidance`: what rides on a request besides
 * - `state`: the run stands elsewhere, because of how the agent is made now · `chart`: because of this version of Statewright
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

/** One difference between a recording and how the agent plays it now. */
export interface SessionDifference {
  by: DifferenceKind
  /** Which run of the session, from 1; null for what is true of all. */
  run: number | null
  /** Which step of it, from 1; null before the first. */
  step: number | null
  /** The number of the record at which it showed. */
  record: number | null
  /** The sub-agent in which it showed, by the names of the tools that lead to it; empty for the session itself. */
  path: readonly string[]
  /** The tool, call or setting that it is about. */
  subject: string | null
  /** How it was, and how it is now, in words. */
  recorded: string
  now: string
  /** All of that, as a person reads it; it may have several lines. */
  message: string
}

/**
 * - `session_differs`: the session does not play as it was recorded; `differences` says where
 * - `invalid_recording`, `newer_recording`, `damaged_recording`: what was given cannot be played
 * - `not_an_agent`, `invalid_option`: nor on this, nor like that
 */
export type ReplayErrorCode =
  | 'session_differs'
  | 'invalid_recording'
  | 'newer_recording'
  | 'damaged_recording'
  | 'not_an_agent'
  | 'invalid_option'

/**
 * A session that does not play as it was recorded, or a recording that cannot be played.
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
  /** In the order in which they showed; empty for a recording that cannot be played. */
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

/** The version of a recording's own form. The records in it have that of the log. */
export const recordingVersion = 1

/** A tool as it was when the session was recorded. */
export interface RecordedTool extends ToolSpec {
  /** Executed by the caller of the run. */
  client?: true
  /** It is read in full only once it is loaded. */
  defer?: true
  /** What a sub-agent was made of. */
  agent?: RecordedAgent
  /** The agent in `team` that it hands the conversation to. */
  handoff?: string
}

/**
 * What of an agent goes out with each request, and what its loop is set to. What is left out was not known when the
 * recording was taken, and is not compared.
 */
export interface RecordedAgent {
  /** Null: there were none. */
  instructions?: string | null
  tools?: RecordedTool[]
  /** `sampling`, `toolChoice` and `extraBody`. */
  settings?: JsonObject
  /** What answers have to be; null: nothing. */
  output?: { name: string; schema: JsonObject } | null
  config?: AgentConfig
  /** The agents that its handoffs lead to, by name. */
  team?: Record<string, RecordedAgent>
}

/**
 * A record of the session's log, and where the machine stood after it (`RUNNING.asking.requesting`; null before the
 * first run).
 */
export type RecordedEntry = ClearedRecord & { reached: string | null }

/**
 * A session that can be played without a model: what `recordSession` and `statewright sessions export ID --as test` take,
 * and `replaySession` plays. Plain JSON.
 */
export interface Recording {
  /** What this is. */
  statewright: 'recording'
  version: typeof recordingVersion
  /** The session's id. */
  session: string
  agent: RecordedAgent
  records: RecordedEntry[]
  /**
   * A fingerprint of each message of the transcript as it stood at the end. Null: the recording ends before the session
   * does, because what shields have withheld decided how it went on.
   */
  messages: string[] | null
  /** The sessions of sub-agents, by the tool that each was called by. `speaker`: the agent that called it after a handoff. */
  subAgents: { tool: string; callId: string; speaker?: string; recording: Recording }[]
  /** The checksum of everything else. Without it, damage is not detected. */
  check?: string
}

/** A recording with its checksum. */
export function sealRecording(recording: Omit<Recording, 'check'>): Recording {
  return { ...recording, check: computeCheck(recording) }
}

function computeCheck(recording: Omit<Recording, 'check'>): string {
  return sha256(JSON.stringify(recording)).slice(0, 16)
}

/** What is played: a recording, whatever it was made of. */
export interface ReadableRecording extends Omit<Recording, 'records'> {
  records: (ClearedRecord & { reached?: string | null })[]
}

/**
 * A recording, or the records of a log as a store reads them.
 * @throws {ReplayError} `invalid_recording`, `newer_recording`, `damaged_recording`
 * @throws {StoreError} `corrupt_log`, `newer_log` for records of a store
 */
export function readRecording(given: unknown): ReadableRecording {
  if (Array.isArray(given)) return fromRecords(given as LogRecord[])
  if (typeof given === 'string')
    throw invalidRecordingError('This is a text: parse it with JSON.parse, or import the file as JSON.')
  if (typeof given !== 'object' || given === null) throw invalidRecordingError(`This is ${String(given)}.`)
  const { statewright, version, check, ...rest } = given as Partial<Recording>
  if (statewright !== 'recording') {
    const isSession = 'messages' in given && 'usage' in given
    throw invalidRecordingError(
      isSession ? 'This is a session as JSON, which has no log in it.' : 'This is something else.',
    )
  }
  if (typeof version !== 'number' || version < 1)
    throw invalidRecordingError(`It has no version (${String(version)}).`)
  if (version > recordingVersion) {
    throw new ReplayError(
      'newer_recording',
      `The recording has version ${String(version)}; this Statewright knows versions up to ${recordingVersion}. ` +
        'Play it with the newer Statewright that took it, or take it again with this one.',
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
  if (!isWhole) throw damagedRecordingError(session, 'something of it is missing')
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
    throw damagedRecordingError(session, 'its checksum does not fit what is in it')
  return { ...whole, records: checkRecords(records, session) }
}

/** That each record follows the one before it, and is of a version that is known. */
function checkRecords(records: readonly RecordedEntry[], session: string): RecordedEntry[] {
  if (records.length === 0) throw damagedRecordingError(session, 'it has no records')
  for (const [i, record] of records.entries()) {
    const before = records[i - 1]
    if (!isWellFormed(record)) throw damagedRecordingError(session, `record ${record.seq} is incomplete`)
    if (before && record.seq <= before.seq)
      throw damagedRecordingError(session, `record ${record.seq} is not in its place`)
    const unknown = findUnknownFormat(record.version ?? logVersion, record.needs ?? [])
    if (unknown !== null) {
      throw new ReplayError(
        'newer_recording',
        `The recording of session '${session}' ${unknown}. Play it with the newer Statewright that took it.`,
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

function fromRecords(given: readonly LogRecord[]): ReadableRecording {
  const session = '(records)'
  if (given.length === 0)
    throw invalidRecordingError('There is no record in it: the store has no such session.')
  const isLog = given.every((record) => isObject(record) && typeof record.data === 'string')
  if (!isLog)
    throw invalidRecordingError('This is a list, but not one of the records that store.read() gives.')
  let last = (given[0]?.type === 'snapshot' ? given[0].seq : 1) - 1
  const records = given.map((record) => {
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
    `A recording is what 'statewright sessions export ID --as test' writes, what recordSession() gives, or the records of store.read(). ${what}`,
  )
}

function damagedRecordingError(session: unknown, what: string): ReplayError {
  const id = typeof session === 'string' ? session : 'ID'
  return new ReplayError(
    'damaged_recording',
    `The recording of session '${id}' is damaged: ${what}. Bring the file back from version control, or take it again: ` +
      `statewright sessions export ${quoteShellWord(id)} --as test --update. If you have changed it on purpose, delete its "check".`,
    id,
  )
}
