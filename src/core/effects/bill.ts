import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelFailure, ModelResponse } from '../../../machines/agent/response.js'
import { addUsage, noUsage, type TokenUsage, type Usage } from '../../../machines/agent/usage.js'
import { extended } from '../../../guards/lib/extended.js'
import type { AgentParts } from '../live/parts.js'
import type { ModelProvider, ModelRequest } from '../models/provider.js'
import type { PriceBook } from '../prices/prices.js'
import { estimatePartialUsage, estimateUsage } from '../prices/estimate.js'

/** Which model is asked, for its price. */
export type AskedModel = Pick<ModelProvider, 'provider' | 'model'>

/** What one model has used. */
interface Item {
  model: AskedModel
  tokens: TokenUsage
  estimated: boolean
}

/** What one request costs, whichever models are asked in turn and however it ends: each has its own price. */
export class Bill {
  readonly #prices: PriceBook
  readonly #request: ModelRequest
  readonly #estimates: boolean
  #asked: AskedModel
  /** What has come of the answer, whoever may know of it: it is paid for. */
  #text = ''
  #reasoning = ''
  #answer: Item | null = null
  /** Of models that were given up for another. */
  readonly #givenUp: Item[] = []

  constructor(
    { model, prices }: Pick<AgentParts, 'model' | 'prices'>,
    request: ModelRequest,
    { config }: AgentContext,
  ) {
    this.#prices = prices
    this.#request = request
    this.#estimates = config.budget.onMissingUsage === 'estimate'
    this.#asked = model
  }

  hear(text: string, reasoning: string): void {
    this.#text += text
    this.#reasoning += reasoning
  }

  /** From here on, this model is asked; `failure`: why the one before was given up. What that has cost, as far as it is known. */
  turnTo(next: AskedModel, failure: ModelFailure | null): Usage | null {
    const spent = failure && this.#spentOn(failure)
    if (spent) this.#givenUp.push(spent)
    if (failure) this.#text = this.#reasoning = ''
    this.#asked = next
    return spent && this.#priceNow(spent)
  }

  /**
   * The whole answer is there; what is done with it may take longer. `total`: the tokens, where nothing else is told of
   * them; what of it was output is estimated.
   */
  receive({ usage, ...response }: ModelResponse, total: number | null): void {
    const guess = usage === null && (this.#estimates || total !== null)
    const estimate = guess ? estimateUsage(this.#request, response) : noUsage
    const tokens = usage ?? (total === null ? estimate : dividedBy(estimate, total))
    this.#answer = { model: this.#asked, tokens, estimated: usage === null }
  }

  /** At once where prices are known. @throws before there is an answer */
  ofAnswer(): Usage | Promise<Usage> {
    if (this.#answer === null) throw new Error('There is no answer yet.')
    return this.#sum([...this.#givenUp, this.#answer])
  }

  /** As reported, or, once something had come, by estimate. A refused request cost nothing: null. */
  async ofFailure(failure: ModelFailure): Promise<Usage | null> {
    const last = this.#spentOn(failure)
    const items = last ? [...this.#givenUp, last] : this.#givenUp
    return items.length === 0 ? null : this.#sum(items)
  }

  /** What it has cost until now; null for nothing. What is stopped midway is estimated: nobody will be told its usage. */
  soFar(): Usage | null {
    const last = this.#answer ?? this.#estimated()
    const items = last ? [...this.#givenUp, last] : this.#givenUp
    const usages = items.map((item) => this.#priceNow(item))
    return usages.length === 0 ? null : total(usages)
  }

  #spentOn({ usage, partialText, kind }: ModelFailure): Item | null {
    if (usage !== null) return { model: this.#asked, tokens: usage, estimated: false }
    // What was wrong with it was found when it was whole.
    if (this.#answer !== null) return this.#answer
    return this.#estimated(partialText, kind === 'incomplete')
  }

  #estimated(partialText = '', wasAnswered = false): Item | null {
    const text = partialText || this.#text
    if (!this.#estimates || !(wasAnswered || text !== '' || this.#reasoning !== '')) return null
    const tokens = estimatePartialUsage(this.#request, text, this.#reasoning)
    return { model: this.#asked, tokens, estimated: true }
  }

  #sum(items: readonly Item[]): Usage | Promise<Usage> {
    const usages = items.map((item) => this.#price(item))
    const known = usages.filter((usage): usage is Usage => !(usage instanceof Promise))
    if (known.length === usages.length) return total(known)
    return Promise.all(usages.map(async (usage) => usage)).then(total)
  }

  #priceNow(item: Item): Usage {
    const { provider, model } = item.model
    return priced(item, this.#prices.knownPrice(provider, model, countsOf(item.tokens)))
  }

  #price(item: Item): Usage | Promise<Usage> {
    const { provider, model } = item.model
    const cost = this.#prices.price(provider, model, countsOf(item.tokens))
    return cost instanceof Promise ? cost.then((known) => priced(item, known)) : priced(item, cost)
  }
}

/** So many tokens, with as much output as is estimated. */
function dividedBy({ outputTokens, reasoningTokens }: TokenUsage, totalTokens: number): TokenUsage {
  const output = Math.min(outputTokens, totalTokens)
  return {
    inputTokens: totalTokens - output,
    outputTokens: output,
    totalTokens,
    cachedInputTokens: 0,
    reasoningTokens: Math.min(reasoningTokens, output),
  }
}

function total(usages: readonly Usage[]): Usage {
  return usages.reduce((sum, usage) => addUsage(sum, usage))
}

function countsOf({ providerCost: _cost, ...counts }: TokenUsage): TokenUsage {
  return counts
}

/** What the provider says that it charges counts where no price is known. */
function priced({ tokens, estimated }: Item, cost: number | null): Usage {
  return extended(countsOf(tokens), { cost: cost ?? tokens.providerCost ?? null, estimated })
}
