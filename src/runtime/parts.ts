import type { JsonObject } from '../../machines/agent/json.js'
import type { AgentConfig } from '../../machines/agent/config.js'
import type { ModelProvider, Sampling, ToolChoice, ToolSpec } from '../providers/provider.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { PriceBook } from '../usage/prices.js'
import type { UserGuard } from '../user-guards/guard.js'
import type { Clock } from './clock.js'

/** What an agent is made of, besides its plain configuration. */
export interface Parts {
  model: ModelProvider
  instructions: string | null
  tools: ToolSet
  specs: readonly ToolSpec[]
  /** The guards of its author's own. */
  guards: readonly UserGuard[]
  sampling: Sampling
  toolChoice: ToolChoice | undefined
  extraBody: JsonObject
  prices: PriceBook
  config: AgentConfig
  clock: Clock
}
