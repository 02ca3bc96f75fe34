import { checkBudgetList } from '../budgets/budgets-option.js'
import { indexBudgets } from '../budgets/reserve-in-all.js'
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

/** The shared budgets of a run, each once: of those above it, its agent's, and its own. @throws as `indexBudgets` */
export function listRunBudgets(
  { budgets: ofAgent }: Pick<AgentParts, 'budgets'>,
  { binding }: Pick<AgentRuntime, 'binding'>,
  sessionId: string,
): readonly SharedBudget[] {
  const { budgets: ofRun, budgetsAbove = [], tags } = binding
  const own = [ofAgent, ofRun].flatMap((option) =>
    typeof option === 'function'
      ? checkBudgetList(option({ tags: tags?.() ?? {}, sessionId }), 'budgets(…)')
      : (option ?? []),
  )
  return [...indexBudgets([...budgetsAbove, ...own]).values()]
}
