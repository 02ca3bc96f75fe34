import { getOrCreate, isObject } from '../../core/base/values.js'
import { toCanonicalJson } from '../canonical-json.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { internalsByAgent } from '../../core/agent/agent-internals.js'
import { getChildSessionId } from '../../core/sessions/agent-definition.js'
import { checkSessionId } from '../../core/sessions/store/session-id.js'
import type { LogRecord, SessionStore } from '../../core/sessions/store/store.js'
import { unknownSessionError } from '../../core/sessions/store/store-error.js'
import { clearRecords, type ClearedRecord } from '../../core/sessions/clear-records.js'
import { openRecord } from '../../core/sessions/log/log-record.js'
import {
  applyOpenedRecord,
  createFoldedSession,
  type FoldedSession,
} from '../../core/sessions/fold-session.js'
import { describeState } from '../../core/chart/state-labels.js'
import {
  ReplayError,
  type Recording,
  type RecordedAgent,
  recordingVersion,
  sealRecording,
  type RecordedTool,
} from './recording.js'
import { scrubSecrets } from '../../core/shields/secrets.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import { subAgentByDelegate } from '../../core/sub-agents/as-tool.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { Message } from '../../../machines/agent/messages.js'

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
    // oxlint-disable-next-line no-await-in-loop -- one log at a time is in memory
    if ((await store.read(id, { to: 1 })).length === 0) continue
    const caller = speaker === undefined ? agent : agent.team?.[speaker]
    const child = caller?.tools?.find(({ name }) => name === tool)?.agent ?? {}
    // oxlint-disable-next-line no-await-in-loop
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
    applyOpenedRecord(folded, record, openRecord(record, folded.head, session), session)
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

export interface LeafChange {
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
