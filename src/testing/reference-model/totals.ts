import type { Json } from '../../../spec/run.js'
import { Broken } from './walk-table.js'

const amounts = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'cachedInputTokens',
  'reasoningTokens',
] as const
export type Usage = Record<(typeof amounts)[number], number> & { cost: number | null }
export const noUsage = { ...Object.fromEntries(amounts.map((key) => [key, 0])), cost: 0 } as Usage

interface Totals {
  run: Usage
  session: Usage
}

/** Adds what was used to the totals of the run, and of the session. */
export function spend({ run, session }: Totals, usage: Usage): Totals {
  if (amounts.some((key) => !(usage[key] >= 0)) || (usage.cost ?? 0) < 0)
    throw new Broken(
      'usage: What is used is never less than nothing.',
      `It has used ${JSON.stringify(usage)}.`,
    )
  const add = (total: Usage): Usage => {
    const cost = total.cost === null || usage.cost === null ? null : total.cost + usage.cost
    return { ...Object.fromEntries(amounts.map((key) => [key, total[key] + usage[key]])), cost } as Usage
  }
  return { run: add(run), session: add(session) }
}

/** The limit that is reached; null: there is budget left. */
export function findSpent({ limits, budget }: Json, { run, session }: Totals): string | null {
  const { inputTokens, outputTokens, cachedInputTokens, cost } = budget.scope === 'session' ? session : run
  const free = budget.countCached ? 0 : Math.min(cachedInputTokens, inputTokens)
  if (limits.tokenBudget > 0 && inputTokens + outputTokens - free >= limits.tokenBudget) return 'token_budget'
  if (limits.outputTokens > 0 && outputTokens >= limits.outputTokens) return 'output_tokens'
  return limits.costLimit > 0 && (cost ?? 0) * (1 + 1e-9) >= limits.costLimit ? 'cost_limit' : null
}

/** The limit of which only the reserve is left. */
export function findNear({ limits, budget, guardrails }: Json, totals: Totals): string | null {
  const { inputTokens, outputTokens, cachedInputTokens, cost } = totals[budget.scope as 'run' | 'session']
  const free = budget.countCached ? 0 : Math.min(cachedInputTokens, inputTokens)
  const tokensLeft = Math.max(0, limits.tokenBudget - (inputTokens + outputTokens - free))
  if (limits.tokenBudget > 0 && tokensLeft <= guardrails.reserveTokens) return 'token_budget'
  const costLeft = findCostLeft(limits.costLimit, cost)
  const reserve = limits.costLimit * guardrails.reserveCostFraction * (1 + 1e-9)
  return costLeft !== null && costLeft <= reserve ? 'cost_limit' : null
}

function findCostLeft(limit: number, cost: number | null): number | null {
  if (!(limit > 0) || cost === null) return null
  return cost * (1 + 1e-9) >= limit ? 0 : limit - cost
}

/** Totals as they are compared: sums of prices carry rounding errors. */
export const toTotals = (usage: Usage): unknown[] => [
  ...amounts.map((key) => usage[key]),
  usage.cost?.toPrecision(9),
]
