import type { AgentContext } from '../../../machines/agent/context.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { internalsByAgent } from '../../core/agent/agent-internals.js'
import { getChildSessionId } from '../../core/sessions/child-session.js'
import { checkSessionId } from '../../core/sessions/store/session-id.js'
import type { LogRecord, SessionStore } from '../../core/sessions/store/store.js'
import { unknownSessionError } from '../../core/sessions/store/store-refusals.js'
import { clearRecords, type ClearedRecord } from '../../core/sessions/clear-records.js'
import { openRecord } from '../../core/sessions/log/log-record.js'
import {
  applyOpenedRecord,
  createFoldedSession,
  pureReducer,
  type FoldedSession,
} from '../../core/sessions/fold-session.js'
import { digestMessage } from './digest-message.js'
import { getPlace } from './session-player.js'
import { ReplayError } from './play-error.js'
import { toRecordedAgent } from './record-agent.js'
import { type Recording, type RecordedAgent, recordingVersion, sealRecording } from './recording.js'

/**
 * A session of the agent's store as a recording, with the prompt, tools and settings that the agent has now: for
 * `replaySession`. What shields have not cleared is not in it.
 *
 * @example
 * const taken = await recordSession(agent, 'ann')
 * const { state } = await replaySession(agent, taken)
 *
 * @param store where the session is. Default: the agent's own
 * @throws {ReplayError} `not_an_agent`, `invalid_option` for an agent without a store
 * @throws {StoreError} `unknown_session`, `corrupt_log`, `newer_log`, …
 */
export async function recordSession(
  agent: Pick<Agent, 'config'>,
  sessionId: string,
  { store: given }: { store?: SessionStore } = {},
): Promise<Recording> {
  const internals = internalsByAgent.get(agent)
  if (!internals)
    throw new ReplayError(
      'not_an_agent',
      'Only a session of an agent that createAgent() has made is recorded.',
    )
  const store = given ?? internals.store
  if (!store) {
    const text =
      'This agent has no store, so nothing of its sessions is kept. Give it one, or name one: { store }.'
    throw new ReplayError('invalid_option', text, 'store')
  }
  return takeRecording(store, checkSessionId(sessionId), toRecordedAgent(internals.parts, agent.config))
}

/** The same for an agent of which this is known. */
export async function takeRecording(
  store: SessionStore,
  session: string,
  agent: RecordedAgent,
): Promise<Recording> {
  const log = await store.read(session)
  if (log.length === 0) throw unknownSessionError(session)
  const { records: shown, problem } = clearRecords(log, session)
  if (problem !== null) throw problem
  const kept = removeNeedless(shown)
  const { reached, standing } = foldRecords(kept, session)
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
  // Where withheld content decided what happened next, the recording cannot follow the log. It ends before that record.
  const end = reached.findIndex((place, i) => place !== whole.get(kept[i]?.seq ?? 0))
  const isWhole = end < 0
  const records = kept.map((record, i) => ({ ...record, reached: reached[i] ?? null }))
  const messages = standing.run?.context.messages ?? standing.state.messages
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

/** Snapshots say what is known already; a fork begins with one. */
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

/** Where these records lead, one by one. */
function foldRecords(
  records: readonly ClearedRecord[],
  session: string,
): { reached: (string | null)[]; standing: FoldedSession } {
  const standing = createFoldedSession(
    records.slice(0, 1).map((record) => ({ ...record, data: '', check: '' })),
  )
  const reached = records.map(({ seq, at, hidden: _hidden, ...entry }) => {
    applyOpenedRecord(
      standing,
      { seq, at, type: entry.type, data: '', check: '' },
      entry,
      session,
      pureReducer,
    )
    return getPlace(standing)
  })
  return { reached, standing }
}

/** Where the log itself leads, by the numbers of its records, and the sub-agents that were called on the way. */
function foldWholeLog(
  log: readonly LogRecord[],
  session: string,
): { whole: Map<number, string | null>; below: Map<string, DelegatedCall> } {
  const standing = createFoldedSession(log)
  const whole = new Map<number, string | null>()
  const below = new Map<string, DelegatedCall>()
  for (const record of log) {
    applyOpenedRecord(standing, record, openRecord(record, standing.head, session), session, pureReducer)
    whole.set(record.seq, getPlace(standing))
    const context = standing.run?.context
    // What looks at what a sub-agent returns has not looked at what it said on the way.
    if (!context || context.features.resultShields) continue
    for (const [id, call] of listDelegated(context)) below.set(id, call)
  }
  return { whole, below }
}

/** A call of a sub-agent, and the agent that made it where the conversation was handed on. */
type DelegatedCall = Pick<Recording['subAgents'][number], 'callId' | 'tool' | 'speaker'>

function listDelegated(context: AgentContext): [string, DelegatedCall][] {
  const by = context.speaker === null ? {} : { speaker: context.speaker }
  return context.calls
    .filter(({ name, started }) => started && context.tools[name]?.delegate)
    .map(({ id, name }) => [getChildSessionId(context, id), { callId: id, tool: name, ...by }])
}
