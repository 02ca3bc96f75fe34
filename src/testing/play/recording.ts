import { isObject, getOrCreate } from '../../core/base/values.js'
import { StatewrightError } from '../../core/base/errors.js'
import { quoteShellWord } from '../../core/format/shell-words.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { ToolSpec } from '../../core/models/provider.js'
import { findUnknownFormat, logVersion, openRecord } from '../../core/sessions/log/log-record.js'
import { type ClearedRecord, clearRecords } from '../../core/sessions/clear-records.js'
import type { LogRecord, SessionStore } from '../../core/sessions/store/store.js'
import { toCanonicalJson } from '../canonical-json.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { internalsByAgent } from '../../core/agent/agent-internals.js'
import { getChildSessionId } from '../../core/sessions/agent-definition.js'
import { checkSessionId } from '../../core/sessions/store/session-id.js'
import { unknownSessionError } from '../../core/sessions/store/store-error.js'
import {
  applyOpenedRecord,
  applyRecord,
  createFoldedSession,
  type FoldedSession,
} from '../../core/sessions/fold-session.js'
import { describeState } from '../../core/chart/state-labels.js'
import { scrubSecrets } from '../../core/shields/secrets.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import { subAgentByDelegate } from '../../core/sub-agents/as-tool.js'
import type { Message } from '../../../machines/agent/messages.js'

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
const recordingVersion = 1

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

function sealRecording(recording: Omit<Recording, 'check'>): Recording {
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

/**
 * Records a session from the agent's store with the agent's current prompt, tools and settings, for `replaySession`.
 * Content pending shield review is excluded.
 *
 * @example
 * const taken = await recordSession(agent, 'ann')
 * const { state } = await replaySession(agent, taken)
 *
 * @param store the store of the session. Defaults to the agent's store
 * @throws {ReplayError} `not_an_agent`, `invalid_option` for an agent without a store
 * @throws {StoreError} `unknown_session`, `corrupt_log`, `newer_log`, …
 */
export async function recordSession(
  agent: Pick<Agent, 'config'>,
  sessionId: string,
  { store: storeOption }: { store?: SessionStore } = {},
): Promise<Recording> {
  const internals = internalsByAgent.get(agent)
  if (!internals)
    throw new ReplayError(
      'not_an_agent',
      'Only sessions of an agent created by createAgent() can be recorded.',
    )
  const store = storeOption ?? internals.store
  if (!store) {
    const text =
      'This agent has no store, so its sessions are not stored. Give the agent a store or pass { store }.'
    throw new ReplayError('invalid_option', text, 'store')
  }
  return takeRecording(store, checkSessionId(sessionId), toRecordedAgent(internals.parts, agent.config))
}

export async function takeRecording(
  store: SessionStore,
  session: string,
  agent: RecordedAgent,
): Promise<Recording> {
  const log = await store.read(session)
  if (log.length === 0) throw unknownSessionError(session)
  const { records: shown, problem } = clearRecords(log, session)
  if (problem !== null) throw problem
  const remaining = removeNeedless(shown)
  const { reached, folded } = foldRecords(remaining, session)
  const { below, whole } = foldWholeLog(log, session)
  const subAgents: Recording['subAgents'] = []
  for (const [id, { callId, tool, speaker }] of below) {
    // One log at a time is in memory.
    if ((await store.read(id, { to: 1 })).length === 0) continue
    const caller = speaker === undefined ? agent : agent.team?.[speaker]
    const child = caller?.tools?.find(({ name }) => name === tool)?.agent ?? {}
    const recording = await takeRecording(store, id, child)
    subAgents.push({ tool, callId, ...(speaker !== undefined && { speaker }), recording })
  }
  // If withheld content determined the next step, the recording cannot follow the log and ends before that record.
  const end = reached.findIndex((place, i) => place !== whole.get(remaining[i]?.seq ?? 0))
  const isWhole = end < 0
  const records = remaining.map((record, i) => ({ ...record, reached: reached[i] ?? null }))
  const messages = folded.run?.context.messages ?? folded.state.messages
  return sealRecording({
    statewright: 'recording',
    version: recordingVersion,
    session,
    agent,
    records: isWhole ? records : records.slice(0, Math.max(1, end)),
    messages: isWhole ? messages.map(digestMessage) : null,
    subAgents,
  })
}

/** Drops redundant snapshots. Keeps the snapshot at the start of a fork. */
function removeNeedless(records: readonly ClearedRecord[]): ClearedRecord[] {
  let isBegun = false
  return records.filter((record) => {
    const { type } = record
    const selected = record.type === 'snapshot' ? record.selected : undefined
    if (type === 'snapshot' && isBegun && selected === undefined) return false
    if (type === 'start' || type === 'snapshot') isBegun = true
    return true
  })
}

function foldRecords(
  records: readonly ClearedRecord[],
  session: string,
): { reached: (string | null)[]; folded: FoldedSession } {
  const folded = createFoldedSession(records.slice(0, 1).map(toRecord))
  const reached = records.map((record) => {
    const { seq: _seq, at: _at, hidden: _hidden, ...entry } = record
    applyOpenedRecord(folded, toRecord(record), entry, session)
    return getPlace(folded)
  })
  return { reached, folded }
}

/** A record without its stored text. */
export const toRecord = ({ seq, at, type }: Pick<LogRecord, 'seq' | 'at' | 'type'>): LogRecord => ({
  seq,
  at,
  type,
  data: '',
  check: '',
})

function foldWholeLog(
  log: readonly LogRecord[],
  session: string,
): { whole: Map<number, string | null>; below: Map<string, DelegatedCall> } {
  const folded = createFoldedSession(log)
  const whole = new Map<number, string | null>()
  const below = new Map<string, DelegatedCall>()
  for (const record of log) {
    applyRecord(folded, record, session)
    whole.set(record.seq, getPlace(folded))
    const context = folded.run?.context
    // Result shields have not screened the events that the sub-agent emitted.
    if (!context || context.features.resultShields) continue
    for (const [id, call] of listDelegated(context)) below.set(id, call)
  }
  return { whole, below }
}

type DelegatedCall = Pick<Recording['subAgents'][number], 'callId' | 'tool' | 'speaker'>

function listDelegated(context: AgentContext): [string, DelegatedCall][] {
  const by = context.speaker === null ? {} : { speaker: context.speaker }
  return context.calls
    .filter(({ name, started }) => started && context.tools[name]?.delegate)
    .map(({ id, name }) => [getChildSessionId(context, id), { callId: id, tool: name, ...by }])
}

export function getPlace({ run }: FoldedSession): string | null {
  return run && describeState(run)
}

export type CompleteRecordedAgent = Required<Omit<RecordedAgent, 'team'>> & {
  team?: Record<string, CompleteRecordedAgent>
}

/** The parts of an agent that requests contain, as plain JSON without secrets. */
export function toRecordedAgent(parts: AgentParts, config: AgentConfig): CompleteRecordedAgent {
  const members = (parts.tools.team?.list() ?? []) as readonly [string, AgentParts][]
  const team = members.map(([name, member]) => [name, toRecordedParts(member, config)] as const)
  return {
    ...toRecordedParts(parts, config),
    ...(team.length > 0 && { team: Object.fromEntries(team) }),
  }
}

function toRecordedParts(parts: AgentParts, config: AgentConfig): CompleteRecordedAgent {
  const { instructions, tools, sampling, toolChoice, extraBody, output } = parts
  return toPlainJson({
    instructions,
    tools: tools.specs.map((spec): RecordedTool => {
      const tool = tools.get(spec.name)
      const below = tool?.delegate && subAgentByDelegate.get(tool.delegate)
      return {
        ...spec,
        ...(tool?.client && { client: true as const }),
        ...(tool?.defer && { defer: true as const }),
        ...(below && { agent: toRecordedAgent(below.parts, below.config) }),
        ...(tool?.handoff && { handoff: tool.handoff.to }),
      }
    }),
    settings: toPlainJson(
      { sampling, ...(toolChoice !== undefined && { toolChoice }), extraBody },
      scrubSecrets,
    ),
    output: output ? { name: output.name, schema: output.schema } : null,
    config,
  }) as CompleteRecordedAgent
}

function toPlainJson(value: unknown, change = (text: string) => text): unknown {
  return JSON.parse(JSON.stringify(value), (_key, one: unknown) =>
    typeof one === 'string' ? change(one) : one,
  ) as unknown
}

interface LeafChange {
  path: string
  before: unknown
  after: unknown
}

export function listLeafChanges(before: unknown, after: unknown, path = ''): LeafChange[] {
  if (isObject(before) && isObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...keys].flatMap((key) =>
      listLeafChanges(before[key], after[key], path === '' ? key : `${path}.${key}`),
    )
  }
  return toCanonicalJson(before) === toCanonicalJson(after) ? [] : [{ path, before, after }]
}

/** A recorded run's configuration today, with the changes of the agent and the overrides of the run. */
export function mergeConfig(
  run: AgentConfig,
  then: AgentConfig | undefined,
  now: AgentConfig,
  limits: Partial<AgentConfig['limits']>,
): AgentConfig {
  const base = then === undefined ? { ...now, limits: run.limits } : mergeChanges(run, then, now)
  return { ...base, limits: { ...base.limits, ...limits } }
}

function mergeChanges<Value extends object>(run: Value, then: Value, now: Value): Value {
  const keys = new Set([...Object.keys(run), ...Object.keys(now)]) as Set<keyof Value>
  const result = {} as Value
  for (const key of keys) {
    const [a, b, c] = [run[key], then[key], now[key]]
    if (isObject(a) && isObject(b) && isObject(c)) result[key] = mergeChanges(a, b, c) as Value[keyof Value]
    else result[key] = toCanonicalJson(b) === toCanonicalJson(c) ? a : c
  }
  return result
}

const known = new WeakMap<Message, string>()

/** A hash of a message without its id and time. */
export function digestMessage(message: Message): string {
  return getOrCreate(known, message, () => {
    const { id: _id, createdAt: _createdAt, ...content } = message
    return sha256(toCanonicalJson(content)).slice(0, 16)
  })
}

/** Masks ids and times, because they differ between runs. */
export function maskVolatile(text: string): string {
  return text
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '(id)')
    .replace(/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?\b/g, '(time)')
    .replace(/\b1\d{12}\b/g, '(time)')
}
