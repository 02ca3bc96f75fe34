import { internalsByAgent } from '../agent/agent-internals.js'
import { ConfigError } from '../base/errors.js'
import { objectRule } from '../base/values.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { Agents } from './define-agents.js'

/** What functions for several agents take. */
export const agentsRule = objectRule(['findAgentFor', 'names'], 'what defineAgents({ … }) returned')

/**
 * The store that all these agents have.
 * @throws {ConfigError} `invalid_config` where they have none, or several
 */
export function getCommonStore(agents: Agents): SessionStore {
  const stores = new Set(agents.names.map((name) => internalsByAgent.get(agents.get(name).agent)?.store))
  const [store] = stores
  if (stores.size === 1 && store !== undefined) return store
  const message =
    'Agents whose sessions an engine runs have one store: createAgent({ store }), the same for all.'
  throw new ConfigError('invalid_config', message, 'store')
}
