import { checkBudgetList } from '../budgets/budgets-option.js'
import type { SharedBudget } from '../budgets/shared-budget.js'
import type { AgentParts } from './agent-parts.js'
import type { AgentRuntime } from './runtime.js'

/** Whether a run spends from any. */
export function hasSharedBudgets(
  { budgets }: Pick<AgentParts, 'budgets'>,
  { binding }: Pick<AgentRuntime, 'binding'>,
): boolean {
  return budgets !== undefined || binding.budgets !== undefined || binding.budgetsAbove !== undefined
}

/** The shared budgets of a run, each once: of those above it, its agent's, and its own. */
export function listRunBudgets(
  { budgets: ofAgent }: Pick<AgentParts, 'budgets'>,
  { binding }: Pick<AgentRuntime, 'binding'>,
  sessionId: string,
): readonly SharedBudget[] {
  const { budgets: ofRun, budgetsAbove = [], tags } = binding
  const byId = new Map<string, SharedBudget>()
  for (const budget of budgetsAbove) byId.set(budget.id, budget)
  for (const given of [ofAgent, ofRun]) {
    const list =
      typeof given === 'function'
        ? checkBudgetList(given({ tags: tags?.() ?? {}, sessionId }), 'budgets(…)')
        : (given ?? [])
    for (const budget of list) if (!byId.has(budget.id)) byId.set(budget.id, budget)
  }
  return [...byId.values()]
}
