import * as fc from 'fast-check'
import {
  type BudgetLimits,
  formatBudgetMessage,
  type BudgetTotals,
  findCrossedLimit,
  findNearLimit,
  getRemaining,
} from '../../guards/budget.js'

const totals = (changes: Partial<BudgetTotals> = {}): BudgetTotals => ({
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cost: 0,
  ...changes,
})
const limits = (changes: Partial<BudgetLimits> = {}): BudgetLimits => ({
  tokenBudget: 0,
  outputTokens: 0,
  costLimit: 0,
  countCached: true,
  ...changes,
})

describe('a limit', () => {
  test('trips as soon as it is reached', () => {
    const at = (inputTokens: number) =>
      findCrossedLimit(totals({ inputTokens, outputTokens: 10 }), limits({ tokenBudget: 100 }))
    expect([89, 90, 91].map(at)).toEqual([null, 'token_budget', 'token_budget'])
    expect(findCrossedLimit(totals({ outputTokens: 10 }), limits({ outputTokens: 10 }))).toBe('output_tokens')
    expect(findCrossedLimit(totals({ cost: 2 }), limits({ costLimit: 2 }))).toBe('cost_limit')
  })

  test('is checked in the order tokens, output tokens, cost', () => {
    const all = totals({ inputTokens: 100, outputTokens: 100, cost: 100 })
    expect(findCrossedLimit(all, limits({ tokenBudget: 1, outputTokens: 1, costLimit: 1 }))).toBe(
      'token_budget',
    )
    expect(findCrossedLimit(all, limits({ outputTokens: 1, costLimit: 1 }))).toBe('output_tokens')
    expect(findCrossedLimit(all, limits({ costLimit: 1 }))).toBe('cost_limit')
    expect(findCrossedLimit(all, limits())).toBeNull()
  })

  test('of cost is reached by prices that add up to it, despite rounding errors', () => {
    const cost = Array.from({ length: 10 }, () => 0.1).reduce((sum, price) => sum + price, 0)
    expect(cost).toBeLessThan(1)
    expect(findCrossedLimit(totals({ cost }), limits({ costLimit: 1 }))).toBe('cost_limit')
    expect(findCrossedLimit(totals({ cost: 0.999_999 }), limits({ costLimit: 1 }))).toBeNull()
  })

  test('of cost never trips on an unknown cost', () => {
    expect(findCrossedLimit(totals({ cost: null }), limits({ costLimit: 1 }))).toBeNull()
  })

  test('counts cached input unless configured otherwise', () => {
    const cached = totals({ inputTokens: 100, cachedInputTokens: 80 })
    expect(findCrossedLimit(cached, limits({ tokenBudget: 100 }))).toBe('token_budget')
    expect(findCrossedLimit(cached, limits({ tokenBudget: 100, countCached: false }))).toBeNull()
    expect(getRemaining(cached, limits({ tokenBudget: 100, countCached: false })).tokens).toBe(80)
  })

  test('trips exactly if nothing remains', () => {
    const amount = fc.nat(1000)
    fc.assert(
      fc.property(
        amount,
        amount,
        amount,
        amount,
        amount,
        (inputTokens, outputTokens, cost, budget, costLimit) => {
          const used = totals({ inputTokens, outputTokens, cost })
          const limit = limits({ tokenBudget: budget, costLimit })
          const isOver =
            (budget > 0 && inputTokens + outputTokens >= budget) || (costLimit > 0 && cost >= costLimit)
          expect(findCrossedLimit(used, limit) !== null).toBe(isOver)
        },
      ),
    )
  })
})

describe('the budget is nearly exhausted', () => {
  const reserve = { tokens: 512, costFraction: 0.1 }

  test('if no more tokens remain than the reserve', () => {
    const limit = limits({ tokenBudget: 1512 })
    expect(
      [999, 1000, 5000].map((inputTokens) => findNearLimit(totals({ inputTokens }), limit, reserve)),
    ).toEqual([null, 'token_budget', 'token_budget'])
  })

  test('if no more of the cost remains than its fraction', () => {
    const limit = limits({ costLimit: 1 })
    expect([0.89, 0.9, 2].map((cost) => findNearLimit(totals({ cost }), limit, reserve))).toEqual([
      null,
      'cost_limit',
      'cost_limit',
    ])
  })

  test('by tokens first, then by cost', () => {
    const both = limits({ tokenBudget: 1512, costLimit: 1 })
    expect(findNearLimit(totals({ inputTokens: 1000, cost: 1 }), both, reserve)).toBe('token_budget')
  })

  test('only by enabled limits', () => {
    expect(findNearLimit(totals({ inputTokens: 1e9, cost: 1e9 }), limits(), reserve)).toBeNull()
    expect(findNearLimit(totals({ cost: null }), limits({ costLimit: 1 }), reserve)).toBeNull()
  })
})

test('the remainder is null without a limit, and never negative', () => {
  expect(getRemaining(totals({ inputTokens: 5, cost: 1 }), limits())).toEqual({
    tokens: null,
    outputTokens: null,
    cost: null,
  })
  const over = totals({ inputTokens: 50, outputTokens: 50, cost: 5 })
  expect(getRemaining(over, limits({ tokenBudget: 10, outputTokens: 10, costLimit: 1 }))).toEqual({
    tokens: 0,
    outputTokens: 0,
    cost: 0,
  })
})

test('the message names the usage and the key to raise', () => {
  expect(
    formatBudgetMessage('token_budget', totals({ inputTokens: 120 }), limits({ tokenBudget: 100 })),
  ).toBe('The budget is used up: 120 of 100 tokens. Raise limits.tokenBudget to continue.')
  expect(
    formatBudgetMessage('output_tokens', totals({ outputTokens: 10 }), limits({ outputTokens: 10 })),
  ).toContain('limits.outputTokens')
  expect(formatBudgetMessage('cost_limit', totals({ cost: 0.1 + 0.2 }), limits({ costLimit: 0.3 }))).toBe(
    'The budget is used up: 0.3 of 0.3 USD. Raise limits.costLimit to continue.',
  )
})
