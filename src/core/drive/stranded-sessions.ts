import { expectArgument, objectRule } from '../base/values.js'
import { agentsRule } from './define-agents.js'
import type { AgentState } from '../../../machines/agent/run-result.js'
import { type AgentDefinition, describeAgent, isSubAgentName } from '../sessions/agent-definition.js'
import type { ListedSession, SessionStore } from '../sessions/store/store.js'
import type { Agents } from './define-agents.js'
import { isUnderWay } from '../../../machines/agent/call-state.js'
import { internalsByAgent } from '../agent/agent-internals.js'
import { getSpeakerTools, isLostSpeaker } from '../live/agent-parts.js'
import { describeLostSpeaker } from '../sessions/session-errors.js'
import { readSessionAt } from '../sessions/replay-session.js'
import type { FoldedSession } from '../sessions/fold-session.js'
import { StoreError } from '../sessions/store/store-error.js'

/** A session that no agent of a process may go on with. */
export interface StrandedSession {
  session: string
  /** Name and version of the agent that it needs: `billing 3`. */
  needs: string
  /** Of its last record; milliseconds since the epoch. */
  updatedAt: number
}

/** States of runs that have not ended. */
const openStates = ['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED'] as const
const pageSize = 500

/** The sessions of a store whose latest run is in one of these states, the one written last first, page by page. */
export async function* listOpenSessions(
  store: SessionStore,
  state: readonly AgentState[] = openStates,
): AsyncGenerator<ListedSession> {
  let cursor: ListedSession | undefined
  do {
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    const page = await store.list({ state, limit: pageSize, after: cursor })
    // A store of one's own may know nothing of pages, and gives all at once.
    yield* page.filter(({ summary }) => summary?.state && state.includes(summary.state))
    cursor = page.length === pageSize ? page.at(-1) : undefined
  } while (cursor)
}

/**
 * The sessions of a store that have not ended and that no agent here may go on with: `runSession` leaves them alone. Deploy the
 * version that each needs, or accept it.
 *
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
    const definition = getListedDefinition(listed)
    if (listed.summary === null || isSubAgentName(definition?.name) || agents.findAgentFor(definition))
      continue
    found.push({ session: listed.id, needs: describeAgent(definition), updatedAt: listed.updatedAt })
  }
  return found
}

/** The agent that began the latest run of a session, as far as a list tells it; null where it does not. */
export function getListedDefinition({ summary }: Pick<ListedSession, 'summary'>): AgentDefinition | null {
  const { agent: name, version } = summary ?? {}
  return name === undefined ? null : { hash: '', name, ...(version !== undefined && { version }) }
}

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
