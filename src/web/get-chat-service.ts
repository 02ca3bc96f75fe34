import { internalsByAgent } from '../core/agent/agent-internals.js'
import { ConfigError } from '../core/base/errors.js'
import type { ChatAgent } from './chat-agent.js'
import { ChatService } from './chat-service.js'

/** All handlers of one agent share its service. */
const serviceByAgent = new WeakMap<object, ChatService>()

/**
 * Returns the chat service of an agent. Sending a message again does not start a second run, and every page that
 * subscribes gets the same answer: first from the log, then live. A page that disconnects does not stop the run.
 *
 * @throws {ConfigError} `invalid_config` for an agent without a store
 */
export function getChatService(agent: ChatAgent): ChatService {
  const existing = serviceByAgent.get(agent)
  if (existing) return existing
  if (typeof agent?.run !== 'function')
    throw new ConfigError('invalid_config', 'agent must be what createAgent() returns.', 'agent')
  const internals = internalsByAgent.get(agent)
  if (internals?.store === undefined) {
    throw new ConfigError(
      'invalid_config',
      'The agent has no store. Pages are shown what the store has: createAgent({ store: fileStore({ dir }) }).',
      'agent',
    )
  }
  const service = new ChatService(agent, {
    store: internals.store,
    clock: internals.parts.clock,
    getLabel: () => internals.label,
    readFolded: internals.readFolded,
    beginQueuedRun: internals.beginQueuedRun,
    inputShields: internals.parts.shields.input.length > 0,
  })
  serviceByAgent.set(agent, service)
  return service
}
