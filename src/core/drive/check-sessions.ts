import { isUnderWay } from '../../../machines/agent/call-state.js'
import type { AgentState } from '../../../machines/agent/run-result.js'
import { internalsByAgent } from '../agent/agent-internals.js'
import { describeAgent, isSubAgentName } from '../sessions/agent-definition.js'
import { getSpeakerTools, isLostSpeaker } from '../live/agent-parts.js'
import { describeLostSpeaker } from '../sessions/session-errors.js'
import { readSessionAt } from '../sessions/replay-session.js'
import type { FoldedSession } from '../sessions/fold-session.js'
import type { ListedSession, SessionStore } from '../sessions/store/store.js'
import { StoreError } from '../sessions/store/store-error.js'
import type { Agents } from './define-agents.js'
import { listOpenSessions } from './stranded-sessions.js'

/** What an open session comes to on the code at hand. */
export interface CheckedSession {
  session: string
  state: AgentState | null
  /** The agent that began it, with its version. */
  agent: string
  /** Whether it can go on here. */
  ok: boolean
  /**
   * - `same`: with the agent that began it · `changed`: with one whose instructions, tools or model are others
   * - `unknown`: with the one that is asked for, because its log does not say
   * - `stranded`: with none · `missing_tool`: a call of it waits for a tool that is not there any more
   * - `missing_agent`: it was handed to an agent that no handoff leads to any more
   * - `corrupt_log`, `newer_log`, `unknown_state`: it cannot be read here
   */
  verdict: string
  /** For people, where it cannot go on. */
  why?: string
}

/** Folds every session that has not ended on this code, one after the other, and says which can go on. */
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
  const told = { session: id, state: summary?.state ?? null, agent: summary?.agent ?? '' }
  try {
    const folded = await readSessionAt(store, id)
    const { run, definition } = folded
    // It was forked, or begun elsewhere, and has nothing that goes on.
    if (run === null || run.status !== 'active') return null
    // The run that called it goes on with it, and is checked itself.
    if (isSubAgentName(definition?.name)) return null
    const about = { ...told, state: run.context.state, agent: describeAgent(definition) }
    return { ...about, ...judgeSession(agents, folded, run) }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    // It was deleted in the meantime.
    if (error.code === 'unknown_session') return null
    return { ...told, ok: false, verdict: error.code, why: error.message }
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
  const made = internalsByAgent.get(acceptor.agent)
  const { speaker } = context
  if (made && isLostSpeaker(made.tools, speaker))
    return { ok: false, verdict: 'missing_agent', why: describeLostSpeaker(speaker) }
  const tools = made && getSpeakerTools(made.tools, speaker)
  const missing = context.calls.find(
    (call) => !tools?.get(call.name) && (isUnderWay(call) || isWaitingForAnswer(call)),
  )
  if (missing && Object.hasOwn(context.tools, missing.name)) {
    const why = `A call of it waits for the tool '${missing.name}', which ${acceptor.name} has no more.`
    return { ok: false, verdict: 'missing_tool', why }
  }
  const isSame = definition?.hash === made?.stored?.definition().hash
  return { ok: true, verdict: isSame ? 'same' : 'changed' }
}

function isWaitingForAnswer({ needs, result }: { needs?: unknown; result?: unknown }): boolean {
  return result === undefined && needs !== 'nobody'
}
