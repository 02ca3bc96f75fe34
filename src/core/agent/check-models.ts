import { ConfigError } from '../base/errors.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { ModelProvider } from '../models/provider.js'

/**
 * Whether every model that a run may ask can be asked: the agent's own, those of `models`, and those of the agents that it may hand
 * over to.
 * @throws {ConfigError} as `check` of the model, which says where the model stands if not in `model`; as `Team.check`
 */
export function checkModels(parts: AgentParts): void {
  parts.model.check?.()
  checkNamedModels('', parts)
  const { team } = parts.tools
  if (!team) return
  team.check(parts, { isBegun: true })
  for (const [name, agent] of team.list() as readonly [string, AgentParts][]) {
    checkAt(`model of '${name}'`, agent.model)
    checkNamedModels(` of '${name}'`, agent)
  }
}

function checkNamedModels(whose: string, { models = {} }: AgentParts): void {
  for (const [name, model] of Object.entries(models)) checkAt(`models.${name}${whose}`, model)
}

function checkAt(place: string, model: ModelProvider): void {
  try {
    model.check?.()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(error.code, `${place}: ${error.message}`, error.subject, { cause: error })
  }
}
