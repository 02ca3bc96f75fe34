import type { OpenAI } from 'openai'
import { readTokens } from '../core/base/values.js'
import { readProperty } from '../core/base/json.js'
import { BudgetError } from '../core/budgets/budget-error.js'
import { addInputMargin, isUnpaid, learnInputCount } from '../core/budgets/request-cost.js'
import { reserveInAll } from '../core/budgets/reserve-in-all.js'
import type { SharedAmount, SharedBudget } from '../core/budgets/shared-budget.js'
import { getBaseURL } from '../core/models/openai/openai-options.js'
import { getProviderName } from '../core/models/openai/openai-provider.js'
import { estimateTextTokens, sumTokens } from '../core/prices/estimate-tokens.js'
import { createPriceBook, type PriceBook } from '../core/prices/price-book.js'

/** Who is asked, and who pays: of `EmbeddingOptions`, whose file imports this one. */
interface PaidModel {
  client: object
  model: string
  budgets?: readonly SharedBudget[]
  inputPerMillion?: number
}

/** What is read of an answer: how many tokens it counted. */
interface CountedAnswer {
  usage?: unknown
}

/**
 * Asks for the embeddings of texts, and pays for them from the budgets: the worst case is reserved in all of them before
 * the request, and settled afterwards.
 *
 * @throws {BudgetError} `budget_exceeded`, `budget_conflict`, `unknown_price`; what the request rejects with
 */
export async function payForEmbeddings<Answer extends CountedAnswer>(
  options: PaidModel,
  texts: readonly string[],
  signal: AbortSignal,
  ask: () => PromiseLike<Answer>,
): Promise<Answer> {
  const { budgets = [] } = options
  const model = describeModel(options)
  const name = `${model.provider}/${model.model}`
  const estimated = sumTokens(texts, estimateTextTokens)
  const most = addInputMargin(name, estimated)
  const usd = budgets.some(({ needsPrice }) => needsPrice) ? await priceTokens(model, most) : 0
  const getAmount = async (budget: SharedBudget) => {
    if (budget.needsPrice && usd === null) throw unknownPriceError(budget, model)
    return { usd, tokens: most }
  }
  const held = await reserveInAll(budgets, getAmount, signal)
  const settle = async (paid: SharedAmount): Promise<void> => {
    await Promise.all(held.map((one) => one.settle(paid)))
  }
  let answer: Answer
  try {
    answer = await ask()
  } catch (error) {
    const status = readProperty(error, 'status')
    // A client that was given up may have paid: it counts as it was reserved.
    await settle(isUnpaid(typeof status === 'number' ? status : null, error) ? { usd: 0, tokens: 0 } : {})
    throw error
  }
  const tokens = readCount(answer)
  if (tokens !== null) learnInputCount(name, estimated, tokens)
  await settle(tokens === null ? {} : { usd: await priceTokens(model, tokens), tokens })
  return answer
}

interface PricedModel {
  provider: string
  model: string
  prices: PriceBook
}

function describeModel({ client, model, inputPerMillion }: PaidModel): PricedModel {
  return {
    provider: getProviderName(getBaseURL({ model, client: client as OpenAI })),
    model,
    prices: createPriceBook(
      inputPerMillion === undefined ? {} : { [model]: { inputPerMillion, outputPerMillion: 0 } },
    ),
  }
}

async function priceTokens({ prices, provider, model }: PricedModel, tokens: number): Promise<number | null> {
  const nothingElse = { outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 }
  return await prices.price(provider, model, { inputTokens: tokens, totalTokens: tokens, ...nothingElse })
}

/** The tokens that the provider counted; null where it says none. */
function readCount({ usage }: CountedAnswer): number | null {
  for (const key of ['prompt_tokens', 'total_tokens']) {
    const count = readTokens(readProperty(usage, key))
    if (count !== null) return count
  }
  return null
}

function unknownPriceError({ id }: SharedBudget, { provider, model }: PricedModel): BudgetError {
  return new BudgetError(
    'unknown_price',
    `The budget '${id}' is in USD, and the price of the embedding model '${model}' (${provider}) is not known. Give ` +
      'embeddings.inputPerMillion, in USD; 0 for a model that costs nothing.',
    id,
  )
}
