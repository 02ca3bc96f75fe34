import { ConfigError } from '../base/errors.js'
import type { SharedBudget } from './shared-budget.js'

/** The run that spends, for a function that says which budgets it spends from. */
export interface SpendingRun {
  /** The tags of its session; none without a store. */
  tags: Readonly<Record<string, string>>
  sessionId: string
}

/** The shared budgets that runs spend from: a list, or a function that is asked before each request. */
export type BudgetsOption = readonly SharedBudget[] | ((run: SpendingRun) => readonly SharedBudget[])

/** @throws {ConfigError} `invalid_config` for what is no list of budgets, and for two of one id */
export function checkBudgets(given: unknown, key = 'budgets'): BudgetsOption | undefined {
  if (given === undefined || typeof given === 'function') return given as BudgetsOption | undefined
  return checkBudgetList(given, key)
}

/** @throws {ConfigError} as `checkBudgets` */
export function checkBudgetList(given: unknown, key: string): readonly SharedBudget[] {
  const list: unknown[] | null = Array.isArray(given) ? given : null
  const wrong = list?.findIndex((one) => typeof (one as Partial<SharedBudget> | null)?.reserve !== 'function')
  if (list === null || (wrong !== undefined && wrong >= 0)) {
    const at = list === null ? key : `${key}[${wrong}]`
    throw new ConfigError(
      'invalid_config',
      `${at} must be ${list === null ? 'a list of budgets, or a function that returns one' : 'what createBudget() of statewright/fleet returns'}.`,
      at,
    )
  }
  const ids = (list as SharedBudget[]).map(({ id }) => id)
  const twice = ids.find((id, i) => ids.indexOf(id) !== i)
  if (twice !== undefined) {
    throw new ConfigError('invalid_config', `${key} has the budget '${twice}' twice. Give each once.`, key)
  }
  return list as SharedBudget[]
}
