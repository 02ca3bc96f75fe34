import { loadOnce } from '../base/lazy-load.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { Session } from '../sessions/session.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { Agent } from './agent-options.js'

/** Only those who delete a session need it. */
const loadDeletion = loadOnce(() => import('../sessions/delete-session.js'))

/** How an agent deletes sessions. `sessions`: those in its memory, where it has no store. */
export function createDeleteMethods(
  store: SessionStore | undefined,
  { clock }: AgentParts,
  sessions: Map<string, Session>,
): Pick<Agent, 'deleteSession'> {
  return {
    deleteSession: async (sessionId) => {
      const id = checkSessionId(sessionId)
      if (store) {
        const { deleteSession } = await loadDeletion()
        return (await deleteSession(store, clock, id)) > 0
      }
      sessions.get(id)?.acquire('that forgets it')
      return sessions.delete(id)
    },
  }
}
