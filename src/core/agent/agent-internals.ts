import type { SessionStore } from '../sessions/store/store.js'
import type { AgentLabel } from '../sessions/agent-definition.js'
import type { FoldedSession } from '../sessions/fold-session.js'
import { noStoreError } from '../sessions/session-errors.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { Run } from '../run/run.js'
import type { Agent } from './agent-options.js'
import type { QueuedRunOptions } from './queued-run.js'
import type { StoredRuns } from './stored-runs.js'

/** The parts of an agent that its public interface does not show. */
export interface AgentInternals {
  tools: ToolSet
  store: SessionStore | undefined
  /** How `defineAgents` calls it; set there. */
  label: AgentLabel | undefined
  /** What its runs in a store are begun and brought back with. Absent without a store. */
  stored: StoredRuns | undefined
  parts: AgentParts
  /** All that the log of a session says. */
  readFolded: (id: string) => Promise<FoldedSession>
  /** See `beginQueuedRun`. */
  beginQueuedRun: (id: string, options: QueuedRunOptions) => Promise<(() => Run) | null>
}

/** Only for agents that `createAgent` made: another implementation of the interface has no internals. */
export const internalsByAgent = new WeakMap<Pick<Agent, 'config'>, AgentInternals>()

/** @throws {UsageError} `no_store` */
export function getStoredRuns({ stored }: AgentInternals): StoredRuns {
  if (stored) return stored
  throw noStoreError()
}
