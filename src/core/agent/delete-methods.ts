import { loadOnce } from '../base/lazy-load.js'
import type { AgentParts } from '../live/agent-parts.js'
import { getStore } from '../sessions/session-errors.js'
import type { Session } from '../sessions/session.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { Agent } from './agent-options.js'

/** Only those who delete sessions need them. */
const loadDeletion = loadOnce(() => import('../sessions/delete-session.js'))
const loadDeletions = loadOnce(() => import('../run/delete-sessions.js'))

/** How an agent deletes sessions. `sessions`: those in its memory, where it has no store. */
export function createDeleteMethods(
  store: SessionStore | undefined,
  { clock }: AgentParts,
  sessions: Map<string, Session>,
): Pick<Agent, 'deleteSession' | 'deleteSessions'> {
  return {
    deleteSession: async (sessionId) => {
      const id = checkSessionId(sessionId)
      if (store) {
        const { deleteSession } = await loadDeletion()
        const deleted = await deleteSession(store, clock, id)
        await store.purge?.()
        return deleted > 0
      }
      sessions.get(id)?.acquire('that forgets it')
      return sessions.delete(id)
    },
    deleteSessions: async (owner) => {
      const kept = getStore(store)
      const { deleteSessions } = await loadDeletions()
      return deleteSessions({ store: kept, clock }, owner)
    },
  }
}
