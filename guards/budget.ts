/** Usage so far. Compatible with `Usage`. */
export interface BudgetTotals {
  inputTokens: number
  outputTokens: number
  cachedInputTokens: number
  /** The cost in USD. Null if a price is unknown, in which case no cost limit applies. */
  cost: number | null
}

/** For every limit, 0 means off. */
export interface BudgetLimits {
  /** Limit on input plus output tokens. */
  tokenBudget: number
  outputTokens: number
  /** In USD. */
  costLimit: number
  countCached: boolean
}

/** The remainder of each limit, at least 0. Null if the limit is off or the cost is unknown. */
export interface BudgetRemaining {
  tokens: number | null
  outputTokens: number | null
  cost: number | null
}

export type BudgetReason = 'token_budget' | 'output_tokens' | 'cost_limit'

export function findCrossedLimit(totals: BudgetTotals, limits: BudgetLimits): BudgetReason | null {
  const left = getRemaining(totals, limits)
  if (left.tokens === 0) return 'token_budget'
  if (left.outputTokens === 0) return 'output_tokens'
  if (left.cost === 0) return 'cost_limit'
  return null
}

export type NearReason = Exclude<BudgetReason, 'output_tokens'>

export function findNearLimit(
  totals: BudgetTotals,
  limits: BudgetLimits,
  reserve: { tokens: number; costFraction: number },
): NearReason | null {
  const { tokens, cost } = getRemaining(totals, limits)
  if (tokens !== null && tokens <= reserve.tokens) return 'token_budget'
  return cost !== null && cost <= limits.costLimit * reserve.costFraction * slack ? 'cost_limit' : null
}

export function getRemaining(totals: BudgetTotals, limits: BudgetLimits): BudgetRemaining {
  return {
    tokens:
      limits.tokenBudget > 0 ? Math.max(0, limits.tokenBudget - countBudgetTokens(totals, limits)) : null,
    outputTokens: limits.outputTokens > 0 ? Math.max(0, limits.outputTokens - totals.outputTokens) : null,
    cost: limits.costLimit > 0 && totals.cost !== null ? getCostLeft(totals.cost, limits.costLimit) : null,
  }
}

export function formatBudgetMessage(reason: BudgetReason, totals: BudgetTotals, limits: BudgetLimits) {
  const [used, unit, key] = {
    token_budget: [`${countBudgetTokens(totals, limits)} of ${limits.tokenBudget}`, 'tokens', 'tokenBudget'],
    output_tokens: [`${totals.outputTokens} of ${limits.outputTokens}`, 'output tokens', 'outputTokens'],
    cost_limit: [`${formatUsd(totals.cost ?? 0)} of ${formatUsd(limits.costLimit)}`, 'USD', 'costLimit'],
  }[reason]
  const isCrossed = findCrossedLimit(totals, limits) !== null
  return `The budget is ${isCrossed ? '' : 'nearly '}used up: ${used} ${unit}. Raise limits.${key} to continue.`
}

export function countBudgetTokens(totals: BudgetTotals, { countCached }: BudgetLimits): number {
  const all = totals.inputTokens + totals.outputTokens
  return countCached ? all : all - Math.min(totals.cachedInputTokens, totals.inputTokens)
}

/** Tolerates rounding errors in sums of prices, so that ten times 0.1 reaches a limit of 1. */
const slack = 1 + 1e-9

function getCostLeft(cost: number, limit: number): number {
  return cost * slack >= limit ? 0 : limit - cost
}

function formatUsd(amount: number): string {
  return String(Number(amount.toPrecision(6)))
}
