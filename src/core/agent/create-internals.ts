import { loadOnce } from '../base/lazy-load.js'
import { type AgentInternals, getStoredRuns } from './agent-internals.js'

/** Only pages need it. */
const loadQueuedRun = loadOnce(() => import('./queued-run.js'))

/** The internals of an agent that has no name yet, and that no run has been bound to. */
export function createInternals(parts: Pick<AgentInternals, 'tools' | 'store' | 'parts'>): AgentInternals {
  const made: AgentInternals = {
    ...parts,
    label: undefined,
    stored: undefined,
    beginQueuedRun: async (id, options) => {
      const { beginQueuedRun } = await loadQueuedRun()
      return beginQueuedRun(getStoredRuns(made), id, options)
    },
  }
  return made
}
