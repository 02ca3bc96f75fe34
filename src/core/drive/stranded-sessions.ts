import { expectArgument, objectRule } from '../base/values.js'
import { type Agents, agentsRule } from './define-agents.js'
import { type AgentState, openStates } from '../../../machines/agent/run-result.js'
import { describeAgent, getListedDefinition, isSubAgentName } from '../sessions/agent-definition.js'
import type { ListedSession, SessionStore } from '../sessions/store/store.js'
import { isUnderWay } from '../../../machines/agent/call-state.js'
import { listSessions } from '../run/delete-sessions.js'
import { internalsByAgent } from '../agent/agent-internals.js'
import { getSpeakerTools, isLostSpeaker } from '../live/agent-parts.js'
import { describeLostSpeaker } from '../sessions/session-errors.js'
import { readSessionAt } from '../sessions/replay-session.js'
import type { FoldedSession } from '../sessions/fold-session.js'
import { StoreError } from '../sessions/store/store-error.js'

/** A session that no agent of a process may continue. */
export interface StrandedSession {
  session: string
  /** Name and version of the required agent, such as `billing 3`. */
  needs: string
  /** The time of the session's last record, in milliseconds since the epoch. */
  updatedAt: number
}

export function listOpenSessions(
  store: SessionStore,
  state: readonly AgentState[] = openStates,
): AsyncGenerator<ListedSession> {
  return listSessions(store, { state }, 500)
}

/**
 * The unfinished sessions of a store that no agent here may continue. `runSession` skips these sessions. Deploy or
 * accept the version that each session needs.
 * @example
 * const agents = defineAgents({ support: createAgent({ model, store: memoryStore() }) })
 * console.log(await listStrandedSessions(agents, memoryStore())) // → []
 */
export async function listStrandedSessions(agents: Agents, store: SessionStore): Promise<StrandedSession[]> {
  expectArgument('listStrandedSessions(agents)', agents, agentsRule)
  expectArgument(
    'listStrandedSessions(agents, store)',
    store,
    objectRule(['list'], 'a store, such as fileStore({ dir })'),
  )
  const found: StrandedSession[] = []
  for await (const listed of listOpenSessions(store)) {
    const definition = getListedDefinition(listed.summary)
    if (listed.summary === null || isSubAgentName(definition?.name) || agents.findAgentFor(definition))
      continue
    found.push({ session: listed.id, needs: describeAgent(definition), updatedAt: listed.updatedAt })
  }
  return found
}

export interface CheckedSession {
  session: string
  state: AgentState | null
  /** The agent that started the session, with its version. */
  agent: string
  /** Whether the session can continue here. */
  ok: boolean
  /**
   * - `same`: continues with the agent that started it
   * - `changed`: continues with an agent whose instructions, tools or model have changed
   * - `unknown`: continues with the requested agent, because the log does not name one
   * - `stranded`: no agent in this process accepts the session
   * - `missing_tool`: waits for a call to a tool that no longer exists
   * - `missing_agent`: handed over to an agent that no handoff reaches anymore
   * - `corrupt_log`, `newer_log`, `unknown_state`: this process cannot read the log
   */
  verdict: string
  /** A sentence for people. Set if the session cannot continue. */
  why?: string
}

export async function* checkSessions(agents: Agents, store: SessionStore): AsyncGenerator<CheckedSession> {
  for await (const listed of listOpenSessions(store)) {
    const checked = await checkSession(agents, store, listed)
    if (checked) yield checked
  }
}

async function checkSession(
  agents: Agents,
  store: SessionStore,
  { id, summary }: ListedSession,
): Promise<CheckedSession | null> {
  const row = { session: id, state: summary?.state ?? null, agent: summary?.agent ?? '' }
  try {
    const folded = await readSessionAt(store, id)
    const { run, definition } = folded
    // The session was forked or imported without an active run, or its parent run continues it.
    if (run === null || run.status !== 'active' || isSubAgentName(definition?.name)) return null
    const about = { ...row, state: run.context.state, agent: describeAgent(definition) }
    return { ...about, ...judgeSession(agents, folded, run) }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    // The session was deleted in the meantime.
    if (error.code === 'unknown_session') return null
    return { ...row, ok: false, verdict: error.code, why: error.message }
  }
}

function judgeSession(
  agents: Agents,
  { definition }: FoldedSession,
  { context }: NonNullable<FoldedSession['run']>,
): Pick<CheckedSession, 'ok' | 'verdict' | 'why'> {
  const acceptor = agents.findAgentFor(definition)
  if (definition?.name === undefined && !acceptor) return { ok: true, verdict: 'unknown' }
  if (!acceptor) return { ok: false, verdict: 'stranded', why: `It needs ${describeAgent(definition)}.` }
  const internals = internalsByAgent.get(acceptor.agent)
  const { speaker } = context
  if (internals && isLostSpeaker(internals.parts.tools, speaker))
    return { ok: false, verdict: 'missing_agent', why: describeLostSpeaker(speaker) }
  const tools = internals && getSpeakerTools(internals.parts.tools, speaker)
  const missing = context.calls.find(
    (call) =>
      !tools?.get(call.name) && (isUnderWay(call) || (call.result === undefined && call.needs !== 'nobody')),
  )
  if (missing && Object.hasOwn(context.tools, missing.name)) {
    const why = `One of its calls is waiting for the tool '${missing.name}', which ${acceptor.name} no longer has.`
    return { ok: false, verdict: 'missing_tool', why }
  }
  const isSame = definition?.hash === internals?.host.definitionAs(undefined).hash
  return { ok: true, verdict: isSame ? 'same' : 'changed' }
}
