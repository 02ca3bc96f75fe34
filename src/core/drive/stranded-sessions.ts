import { expectArgument, objectRule } from '../base/values.js'
import { agentsRule } from './common-store.js'
import type { AgentState } from '../../../machines/agent/run-result.js'
import { type AgentDefinition, describeAgent, isSubAgentName } from '../sessions/agent-definition.js'
import type { ListedSession, SessionStore } from '../sessions/store/store.js'
import type { Agents } from './define-agents.js'

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
