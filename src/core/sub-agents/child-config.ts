import type { AgentConfig } from '../../../machines/agent/config.js'
import type { Errand } from '../tools/tool.js'

/** A sub-agent's own configuration, but it may spend no more than its run has left, and asks nobody for a message. */
export function childConfig(own: AgentConfig, { left, countCached }: Errand): AgentConfig {
  const { limits, budget } = own
  const isBound = left.tokens !== null
  return {
    ...own,
    interactive: false,
    limits: {
      ...limits,
      tokenBudget: lower(limits.tokenBudget, left.tokens),
      outputTokens: lower(limits.outputTokens, left.outputTokens),
      costLimit: lower(limits.costLimit, left.cost),
    },
    budget: {
      ...budget,
      countCached: isBound && limits.tokenBudget === 0 ? countCached : budget.countCached,
    },
  }
}

/** 0 is no limit; null is none, either. */
function lower(limit: number, left: number | null): number {
  if (left === null) return limit
  return limit === 0 ? left : Math.min(limit, left)
}
