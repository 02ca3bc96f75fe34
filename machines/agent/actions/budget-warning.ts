import { remaining } from '../../../guards/budget.js'
import type { Announcement } from '../announcements.js'
import type { AgentContext } from '../context.js'
import { budgetLimits, budgetTotals, isNearBudget } from '../totals.js'

/** The one warning of a session, when its budget is nearly used up. */
export function warnsOfBudget(
  spent: Pick<AgentContext, 'config' | 'usage'>,
  hasWarned: boolean,
  tell: (announcement: Announcement) => void,
): boolean {
  if (hasWarned || !isNearBudget(spent)) return false
  const { tokens, cost } = remaining(budgetTotals(spent), budgetLimits(spent.config))
  tell({
    type: 'budget_warning',
    message:
      'The budget is nearly used up: raise limits.tokenBudget or limits.costLimit if the run should go on.',
    remainingTokens: tokens,
    remainingCost: cost,
  })
  return true
}
