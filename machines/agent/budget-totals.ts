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

/** The budget's limits, as its guard knows them. */
export function toBudgetLimits({ limits, budget }: AgentConfig): BudgetLimits {
  const { tokenBudget, outputTokens, costLimit } = limits
  return { tokenBudget, outputTokens, costLimit, countCached: budget.countCached }
}

/** The first limit that the run has reached. */
export function findBudgetReason(context: BudgetState): BudgetReason | null {
  return findCrossedLimit(getBudgetTotals(context), toBudgetLimits(context.config))
}

/** The limit of which only the reserve is left (`guardrails.reserveTokens`, `guardrails.reserveCostFraction`). */
export function findNearReason(context: BudgetState): NearReason | null {
  const { reserveTokens, reserveCostFraction } = context.config.guardrails
  const reserve = { tokens: reserveTokens, costFraction: reserveCostFraction }
  return findNearLimit(getBudgetTotals(context), toBudgetLimits(context.config), reserve)
}

/** Whether only the reserve of the budget is left, or less. */
export function isNearBudget(context: BudgetState): boolean {
  return findNearReason(context) !== null
}

/** The totals that the budget limits: those of the session, or of this run alone. */
export function getBudgetTotals(context: BudgetState): Usage {
  return context.config.budget.scope === 'session' ? context.usage.session : context.usage.run
}

/** The totals with a response, or a failed attempt, added to them. */
export function addToTotals({ usage }: AgentContext, response: Usage): Pick<AgentContext, 'usage'> {
  const run = addUsage(usage.run, response)
  // In the first run of a session, both totals are one object.
  const session = usage.session === usage.run ? run : addUsage(usage.session, response)
  return { usage: { run, session } }
}
