import type { BudgetError } from '../budgets/shared-budget.js'
import { createActorError, rememberThrown } from '../base/errors.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelActorError, ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import { addUsage, noUsage, type TokenUsage, type Usage } from '../../../machines/agent/usage.js'
import { extendObject } from '../../../guards/lib/json.js'
import type { AgentParts } from '../live/agent-parts.js'
import { ModelError, type ModelProvider, type ModelRequest } from '../models/provider.js'
import { createUsage, estimatePartialUsage, estimateUsage } from '../prices/estimate-tokens.js'

export type AskedModel = Pick<ModelProvider, 'provider' | 'model'>

interface BillItem {
  model: AskedModel
  tokens: TokenUsage
  estimated: boolean
}

/** What one request costs, with all models that it asked. */
export function createBill(
  { model: first, prices }: Pick<AgentParts, 'model' | 'prices'>,
  request: ModelRequest,
  { config }: AgentContext,
) {
  const estimates = config.budget.onMissingUsage === 'estimate'
  const givenUp: BillItem[] = []
  let model: AskedModel = first
  /** The text so far, cleared or not, because all of it must be paid for. */
  let text = ''
  let reasoning = ''
  let answer: BillItem | null = null

  const listItems = (last: BillItem | null): BillItem[] => (last ? [...givenUp, last] : givenUp)

  function findFailureItem({ usage, partialText, kind }: ModelFailure): BillItem | null {
    if (usage !== null) return { model, tokens: usage, estimated: false }
    // The answer was complete before the failure.
    return answer ?? estimateItem(partialText, kind === 'incomplete')
  }

  function estimateItem(partialText = '', wasAnswered = false): BillItem | null {
    const words = partialText || text
    if (!estimates || !(wasAnswered || words !== '' || reasoning !== '')) return null
    return { model, tokens: estimatePartialUsage(request, words, reasoning), estimated: true }
  }

  function sumItems(items: readonly BillItem[]): Usage | Promise<Usage> {
    const usages = items.map(priceItem)
    const known = usages.filter((usage): usage is Usage => !(usage instanceof Promise))
    if (known.length === usages.length) return sumUsages(known)
    return Promise.all(usages.map(async (usage) => usage)).then(sumUsages)
  }

  function priceNow(item: BillItem): Usage {
    const { provider, model } = item.model
    return toUsage(item, prices.knownPrice(provider, model, pickCounts(item.tokens)))
  }

  function priceItem(item: BillItem): Usage | Promise<Usage> {
    const { provider, model } = item.model
    const cost = prices.price(provider, model, pickCounts(item.tokens))
    return cost instanceof Promise ? cost.then((known) => toUsage(item, known)) : toUsage(item, cost)
  }

  return {
    addDelta(words: string, thoughts: string): void {
      text += words
      reasoning += thoughts
    },

    /** Continues with another model. `failure` contains the reason and, if known, the cost. */
    switchModel(next: AskedModel, failure: ModelFailure | null): Usage | null {
      const spent = failure && findFailureItem(failure)
      if (spent) givenUp.push(spent)
      if (failure) text = reasoning = ''
      model = next
      return spent && priceNow(spent)
    },

    /** The processing may take longer. `total` counts only if the response has no usage. */
    receive({ usage, ...response }: ModelResponse, total: number | null): void {
      const guess = usage === null && (estimates || total !== null)
      const estimate = guess ? estimateUsage(request, response) : noUsage
      const tokens = usage ?? (total === null ? estimate : splitTotal(estimate, total))
      answer = { model, tokens, estimated: usage === null }
    },

    /** Returns the usage of the answer. Synchronous if prices are known. @throws if the answer has not arrived */
    getAnswerUsage(): Usage | Promise<Usage> {
      if (answer === null) throw new Error('There is no answer yet.')
      return sumItems(listItems(answer))
    },

    /** Null for a refused request, because it costs nothing. */
    async getFailureUsage(failure: ModelFailure): Promise<Usage | null> {
      const items = listItems(findFailureItem(failure))
      return items.length === 0 ? null : sumItems(items)
    },

    /** The usage so far, or null. For a stopped answer, the usage is estimated, because the provider reports no usage. */
    getUsageSoFar(): Usage | null {
      const usages = listItems(answer ?? estimateItem()).map(priceNow)
      return usages.length === 0 ? null : sumUsages(usages)
    },
  }
}

function splitTotal({ outputTokens, reasoningTokens }: TokenUsage, totalTokens: number): TokenUsage {
  const output = Math.min(outputTokens, totalTokens)
  return createUsage(totalTokens - output, output, Math.min(reasoningTokens, output))
}

function sumUsages(usages: readonly Usage[]): Usage {
  return usages.reduce((sum, usage) => addUsage(sum, usage))
}

function pickCounts({ providerCost: _cost, ...counts }: TokenUsage): TokenUsage {
  return counts
}

/** Adds the cost to usage. Without a known price, the charge reported by the provider applies. */
function toUsage({ tokens, estimated }: BillItem, cost: number | null): Usage {
  return extendObject(pickCounts(tokens), { cost: cost ?? tokens.providerCost ?? null, estimated })
}

export class OverBudgetError extends ModelError {
  /** The shared budget, or undefined for the run's own limits. */
  readonly budget: string | undefined
  /** The time when a waiting run continues, in milliseconds since the epoch. Undefined if the run does not wait. */
  readonly wakeAt: number | undefined

  constructor(
    failure: Pick<ModelFailure, 'kind' | 'code' | 'message'>,
    { budget, wakeAt }: { budget?: string; wakeAt?: number } = {},
  ) {
    super(failure)
    this.budget = budget
    this.wakeAt = wakeAt
  }
}

export const toBudgetCode = ({ code }: BudgetError): string =>
  code === 'budget_exceeded'
    ? 'shared_budget'
    : `shared_${code}`.replace(/^shared_unknown/, 'shared_budget_unknown')

export function toRefusedSearch(error: BudgetError): ModelActorError {
  const { message, subject } = error
  const failure = createActorError(toBudgetCode(error), message)
  return rememberThrown({ ...failure, ...(subject !== undefined && { budget: subject }) }, error)
}

const ourCodes = /^(token_budget|shared_budget(_\w+)?)$/

/** Adds a prefix to a budget code that comes from a provider, because such a code does not refer to our budget. */
export function withoutOurCode(
  failure: ModelFailure,
  error: unknown,
): ModelFailure & Pick<ModelActorError, 'budget' | 'wakeAt'> {
  if (error instanceof OverBudgetError) {
    const { budget, wakeAt } = error
    return { ...failure, ...(budget !== undefined && { budget }), ...(wakeAt !== undefined && { wakeAt }) }
  }
  return ourCodes.test(failure.code) ? { ...failure, code: `provider_${failure.code}` } : failure
}
