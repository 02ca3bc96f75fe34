import { formatMoney } from '../core/format/format-words.js'

/** USD, excluding usage without a price. `isWhole` is false if there was such usage. */
export interface CostSum {
  usd: number
  isWhole: boolean
}

/** Adds costs. Null stands for usage without a price. */
export function sumCosts(costs: readonly (number | null)[]): CostSum {
  return {
    usd: costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0),
    isWhole: !costs.includes(null),
  }
}

export function addCosts(sums: readonly CostSum[]): CostSum {
  return {
    usd: sums.reduce((sum, { usd }) => sum + usd, 0),
    isWhole: sums.every(({ isWhole }) => isWhole),
  }
}

/** Formats `$0.0283`, or `≥ $0.0283` if some usage has no price, or `unknown` if none has. */
export function formatCost({ usd, isWhole }: CostSum): string {
  if (isWhole) return formatMoney(usd)
  return usd === 0 ? 'unknown' : `≥ ${formatMoney(usd)}`
}

export function formatChange(change: number, format: (value: number) => string): string {
  if (change === 0) return '0'
  return `${change > 0 ? '+' : '−'}${format(Math.abs(change))}`
}

export function formatCostChange(a: CostSum, b: CostSum): string {
  return a.isWhole && b.isWhole ? formatChange(b.usd - a.usd, formatMoney) : 'unknown'
}
