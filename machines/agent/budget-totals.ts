import {
  type BudgetLimits,
  type BudgetReason,
  type NearReason,
  findCrossedLimit,
  findNearLimit,
} from '../../guards/budget.js'
import type { AgentConfig } from './config.js'
import type { AgentContext } from './context.js'
import { addUsage, type Usage } from './usage.js'

type BudgetState = Pick<AgentContext, 'config' | 'usage'>

export function toBudgetLimits({ limits, budget }: AgentConfig): BudgetLimits {
  const { tokenBudget, outputTokens, costLimit } = limits
  return { tokenBudget, outputTokens, costLimit, countCached: budget.countCached }
}

export function findBudgetReason(context: BudgetState): BudgetReason | null {
  return findCrossedLimit(getBudgetTotals(context), toBudgetLimits(context.config))
}

/** The limit that is down to its reserve (`guardrails.reserveTokens`, `guardrails.reserveCostFraction`), or null. */
export function findNearReason(context: BudgetState): NearReason | null {
  const { reserveTokens, reserveCostFraction } = context.config.guardrails
  const reserve = { tokens: reserveTokens, costFraction: reserveCostFraction }
  return findNearLimit(getBudgetTotals(context), toBudgetLimits(context.config), reserve)
}

export function isNearBudget(context: BudgetState): boolean {
  return findNearReason(context) !== null
}

export function getBudgetTotals(context: BudgetState): Usage {
  return context.config.budget.scope === 'session' ? context.usage.session : context.usage.run
}

export function addToTotals({ usage }: AgentContext, response: Usage): Pick<AgentContext, 'usage'> {
  const run = addUsage(usage.run, response)
  // In the first run of a session both totals are the same object.
  const session = usage.session === usage.run ? run : addUsage(usage.session, response)
  return { usage: { run, session } }
}
