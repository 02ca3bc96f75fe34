import { sha256 } from '../../guards/lib/sha256.js'

import { toWellFormed } from '../core/models/plain-json.js'
import { BudgetError, type SharedAmount, type SharedBudget } from '../core/budgets/shared-budget.js'
import { MemoryError } from '../core/memory/retriever.js'
import { readTokens } from '../core/base/values.js'
import { readProperty } from '../core/base/json.js'
import { addInputMargin, isUnpaid, learnInputCount, reserveInAll } from '../core/budgets/reserve-in-all.js'
import { getBaseURL, type OpenAIClient } from '../core/models/openai/openai-options.js'
import { getProviderName } from '../core/models/openai/openai-provider.js'
import { createUsage, estimateTextTokens, sumTokens } from '../core/prices/estimate-tokens.js'
import { createPriceBook, type PriceBook } from '../core/prices/price-book.js'

/**
 * Searches by embeddings as well as words.
 *
 * @example memory({ documents, embeddings: { client: new OpenAI(), model: 'text-embedding-3-small' } })
 */
export interface EmbeddingOptions {
  /** An OpenAI client, or any other client with the same `embeddings.create`. Its retry settings apply. */
  client: {
    embeddings: {
      create(
        body: { model: string; input: string[]; encoding_format: 'float'; dimensions?: number },
        options: { signal: AbortSignal },
      ): PromiseLike<{ data: unknown; usage?: unknown }>
    }
  }
  /** The provider's name for the embedding model. */
  model: string
  /** The size of a vector, for models that can shorten vectors. Defaults to the model's size. */
  dimensions?: number
  /** The number of texts per request. Defaults to 64. */
  batch?: number
  /**
   * `hybrid` weights words and vectors equally, and also finds names, codes and numbers. `vector` uses only vectors.
   * Defaults to `hybrid`.
   */
  mode?: 'hybrid' | 'vector'
  /**
   * Shared budgets that pay for the embeddings of documents and queries (`createBudget` from `statewright/fleet`). Each
   * request reserves its maximum cost before it is sent.
   */
  budgets?: readonly SharedBudget[]
  /** USD per million tokens, for budgets in USD. Defaults to the price of the model in the built-in table. */
  inputPerMillion?: number
}

export type Vector = readonly number[]

/** Converts texts into vectors, each text once. */
export function createEmbedder(options: EmbeddingOptions) {
  const { client, model, dimensions, batch = 64, budgets = [] } = options
  const known = new Map<string, Vector>()
  let size: number | undefined

  async function request(input: string[], signal: AbortSignal): Promise<Vector[]> {
    const sent = { model, input: toWellFormed(input), ...(dimensions !== undefined && { dimensions }) }
    // The client's default, base64, is not supported by every compatible server.
    const ask = () => client.embeddings.create({ ...sent, encoding_format: 'float' }, { signal })
    const { data } = await (budgets.length === 0 ? ask() : payForEmbeddings(options, input, signal, ask))
    return readVectors(data, input.length)
  }

  function checkSize(vector: Vector): void {
    const wanted = size ?? dimensions ?? vector.length
    if (vector.length === wanted) return
    throw invalidEmbeddingsError(`a vector has ${vector.length} numbers instead of ${wanted}`)
  }

  function learn(key: string, vector: Vector): void {
    checkSize(vector)
    size = vector.length
    known.set(key, vector)
  }

  return {
    get size() {
      return size
    },

    learn,

    findVector: (text: string): Vector | undefined => known.get(sha256(text)),

    /**
     * Creates the missing vectors. Completed batches are kept if a later one fails.
     * @throws {MemoryError} `invalid_embeddings`; the client's errors
     */
    async prepare(texts: readonly string[], signal: AbortSignal): Promise<void> {
      const all = new Map(texts.map((text) => [sha256(text), text]))
      const missing = [...all].filter(([key]) => !known.has(key))
      for (let from = 0; from < missing.length; from += batch) {
        const part = missing.slice(from, from + batch)
        const vectors = await request(
          part.map(([, text]) => text),
          signal,
        )
        part.forEach(([key], index) => learn(key, vectors[index] ?? []))
      }
    },

    /** Queries are not cached, because their number is unbounded. */
    async embedQuery(text: string, signal: AbortSignal): Promise<Vector> {
      const [vector = []] = await request([text], signal)
      checkSize(vector)
      return vector
    },

    /** Returns the vectors of these texts by hash, and drops all others. */
    retain(texts: readonly string[]): ReadonlyMap<string, Vector> {
      const keys = new Set(texts.map((text) => sha256(text)))
      for (const key of known.keys()) if (!keys.has(key)) known.delete(key)
      return known
    },
  }
}

/** Reads the vectors by their `index`, because their order in the answer is not guaranteed. */
function readVectors(data: unknown, count: number): Vector[] {
  if (!Array.isArray(data) || data.length !== count) {
    throw invalidEmbeddingsError(
      `it has ${Array.isArray(data) ? data.length : 'no'} vectors for ${count} texts`,
    )
  }
  const vectors: Vector[] = []
  data.forEach((item: unknown, position) => {
    const { index = position, embedding } = (item ?? {}) as { index?: unknown; embedding?: unknown }
    if (!isVector(embedding)) throw invalidEmbeddingsError('an embedding is not a list of numbers')
    vectors[Number(index)] = embedding
  })
  if (vectors.length !== count || vectors.includes(undefined as never)) {
    throw invalidEmbeddingsError('the indices of its vectors do not match the texts')
  }
  return vectors
}

function isVector(value: unknown): value is Vector {
  return Array.isArray(value) && value.length > 0 && value.every((number) => Number.isFinite(number))
}

function invalidEmbeddingsError(why: string): MemoryError {
  return new MemoryError(
    'invalid_embeddings',
    `The embeddings endpoint's answer cannot be used: ${why}. Check the model and the client's base URL.`,
    'embeddings',
  )
}

/** @throws {BudgetError} `budget_exceeded`, `budget_conflict`, `unknown_price`; the errors of the request */
async function payForEmbeddings<Answer extends { usage?: unknown }>(
  options: EmbeddingOptions,
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
    // An abandoned request may have been charged, so its reservation counts.
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

function describeModel({ client, model, inputPerMillion }: EmbeddingOptions): PricedModel {
  return {
    provider: getProviderName(getBaseURL({ model, client: client as object as OpenAIClient })),
    model,
    prices: createPriceBook(
      inputPerMillion === undefined ? {} : { [model]: { inputPerMillion, outputPerMillion: 0 } },
    ),
  }
}

async function priceTokens({ prices, provider, model }: PricedModel, tokens: number): Promise<number | null> {
  return await prices.price(provider, model, createUsage(tokens, 0))
}

function readCount({ usage }: { usage?: unknown }): number | null {
  for (const key of ['prompt_tokens', 'total_tokens']) {
    const count = readTokens(readProperty(usage, key))
    if (count !== null) return count
  }
  return null
}

function unknownPriceError({ id }: SharedBudget, { provider, model }: PricedModel): BudgetError {
  return new BudgetError(
    'unknown_price',
    `The budget '${id}' is in USD, but the price of embedding model '${model}' (${provider}) is unknown. Set ` +
      'embeddings.inputPerMillion in USD, or 0 for a free model.',
    id,
  )
}
