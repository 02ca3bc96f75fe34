import type { AgentConfig } from '../../../machines/agent/config.js'
import type { DelegateRequest } from '../tools/tool.js'

/** A sub-agent's own configuration, but it may spend no more than its run has left, and never waits for a message. */
export function createChildConfig(own: AgentConfig, { left, countCached }: DelegateRequest): AgentConfig {
  const { limits, budget } = own
  const isBound = left.tokens !== null
  return {
    ...own,
    interactive: false,
    limits: {
      ...limits,
      tokenBudget: toLowerLimit(limits.tokenBudget, left.tokens),
      outputTokens: toLowerLimit(limits.outputTokens, left.outputTokens),
      costLimit: toLowerLimit(limits.costLimit, left.cost),
    },
    budget: {
      ...budget,
      countCached: isBound && limits.tokenBudget === 0 ? countCached : budget.countCached,
    },
  }
}

/** 0 is no limit; null is none, either. */
function toLowerLimit(limit: number, left: number | null): number {
  if (left === null) return limit
  return limit === 0 ? left : Math.min(limit, left)
}
