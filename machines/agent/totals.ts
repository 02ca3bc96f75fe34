import { type BudgetLimits, type BudgetReason, crossed, near } from '../../guards/budget.js'
import type { AgentConfig } from './config.js'
import type { AgentContext } from './context.js'
import { addUsage, type Usage } from './usage.js'

type Spent = Pick<AgentContext, 'config' | 'usage'>

/** The budget's limits, as its guard knows them. */
export function budgetLimits({ limits, budget }: AgentConfig): BudgetLimits {
  const { tokenBudget, outputTokens, costLimit } = limits
  return { tokenBudget, outputTokens, costLimit, countCached: budget.countCached }
}

/** The first limit that the run has reached. */
export function budgetReason(context: Spent): BudgetReason | null {
  return crossed(budgetTotals(context), budgetLimits(context.config))
}

/** Whether the budget is nearly used up (`guardrails.reserveTokens`, `guardrails.reserveCostFraction`). */
export function isNearBudget(context: Spent): boolean {
  const { reserveTokens, reserveCostFraction } = context.config.guardrails
  const reserve = { tokens: reserveTokens, costFraction: reserveCostFraction }
  return near(budgetTotals(context), budgetLimits(context.config), reserve)
}

/** The totals that the budget is held against: the session's, or this run's alone. */
export function budgetTotals(context: Spent): Usage {
  return context.config.budget.scope === 'session' ? context.usage.session : context.usage.run
}

/** The totals with a response, or a failed attempt, added to them. */
export function spent({ usage }: AgentContext, response: Usage): Pick<AgentContext, 'usage'> {
  return { usage: { run: addUsage(usage.run, response), session: addUsage(usage.session, response) } }
}
