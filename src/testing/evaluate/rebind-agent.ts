import { assembleAgent } from '../../core/agent/agent.js'
import { type AgentInternals, internalsByAgent } from '../../core/agent/agent-internals.js'
import type { Agent } from '../../core/agent/agent-options.js'
import type { AnyAgent } from '../../core/drive/define-agents.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import { EvaluationError } from './evaluation-error.js'

/** @throws {EvaluationError} `not_an_agent` */
export function getInternals(agent: AnyAgent): AgentInternals {
  const internals = internalsByAgent.get((agent as AnyAgent | null) ?? ({} as AnyAgent))
  if (internals) return internals
  throw new EvaluationError('not_an_agent', 'evaluate takes an agent that createAgent() has made.', 'agent')
}

/** The same agent with another store, and with other parts where they are given. */
export function rebindAgent(
  parts: AgentParts,
  store: SessionStore,
  changes: Partial<AgentParts> = {},
): Agent {
  return assembleAgent({ ...parts, ...changes }, { store, inspect: undefined })
}
