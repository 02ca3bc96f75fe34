import { loadOnce } from '../base/lazy-load.js'
import { type AgentInternals, getStoredRuns } from './agent-internals.js'

/** Only pages need it. */
const loadQueuedRun = loadOnce(() => import('./queued-run.js'))

const loadSessionFunctions = loadOnce(() => import('../sessions/log/lazy-session-functions.js'))

/** The internals of an agent that has no name yet, and that no run has been bound to. */
export function createInternals(parts: Pick<AgentInternals, 'tools' | 'store' | 'parts'>): AgentInternals {
  const made: AgentInternals = {
    ...parts,
    label: undefined,
    stored: undefined,
    readFolded: async (id) => (await loadSessionFunctions()).readSessionAt(getStoredRuns(made).store, id),
    beginQueuedRun: async (id, options) => {
      const { beginQueuedRun } = await loadQueuedRun()
      return beginQueuedRun(getStoredRuns(made), id, options)
    },
  }
  return made
}
