import type { AgentContext } from '../../machines/agent/context.js'
import { toBudgetLimits, getBudgetTotals } from '../../machines/agent/budget-totals.js'
import type { Usage } from '../../machines/agent/usage.js'
import type { GaugeView } from './protocol.js'

/** The limits of a run, and what it has used by the time `at`. */
export function createGauges(context: AgentContext, children: Usage, at: number): GaugeView[] {
  const totals = getBudgetTotals(context)
  const { tokenBudget, outputTokens, costLimit, countCached } = toBudgetLimits(context.config)
  const counted = (usage: Usage): number =>
    usage.inputTokens + usage.outputTokens - (countCached ? 0 : usage.cachedInputTokens)
  const { maxSteps, timeoutMs } = context.config.limits
  return [
    {
      name: 'tokens',
      used: counted(totals),
      limit: toLimit(tokenBudget),
      children: counted(children),
    },
    {
      name: 'output tokens',
      used: totals.outputTokens,
      limit: toLimit(outputTokens),
      children: children.outputTokens,
    },
    { name: 'cost', used: totals.cost, limit: toLimit(costLimit), children: children.cost ?? 0 },
    { name: 'steps', used: context.steps, limit: maxSteps, children: 0 },
    { name: 'time', used: measureTimeUsed(context, timeoutMs, at), limit: toLimit(timeoutMs), children: 0 },
  ]
}

const toLimit = (limit: number): number | null => (limit > 0 ? limit : null)

/** The used time; the clock stops while the run rests. Null without a limit. */
function measureTimeUsed({ deadline, timeLeft }: AgentContext, timeoutMs: number, at: number): number | null {
  if (timeoutMs === 0) return null
  const left = timeLeft ?? (deadline === null ? timeoutMs : deadline - at)
  return Math.min(timeoutMs, Math.max(0, timeoutMs - left))
}
