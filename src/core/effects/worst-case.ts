import type { JsonObject } from '../../../machines/agent/json.js'
import type { TokenUsage } from '../../../machines/agent/usage.js'
import type { ModelRequest } from '../models/provider.js'
import { estimateRequestTokens } from '../prices/estimate-tokens.js'
import type { PriceBook } from '../prices/price-book.js'
import type { AskedModel } from './bill.js'

/** The most that a request may use and cost. */
export interface WorstCase {
  inputTokens: number
  /** Null where the request has no cap of its own. */
  outputCap: number | null
}

/** How far the input of requests to a model has been above the estimate, at most: by so many times, and so many tokens more. */
interface Excess {
  times: number
  tokens: number
}

/** Estimates are this much too low at first; what models report corrects it. */
const firstExcess: Excess = { times: 1.1, tokens: 0 }

/** Below so many tokens, what a provider adds to every request weighs more than how it counts text. */
const shortTokens = 500

const excesses = new Map<string, Excess>()

const nameOf = ({ provider, model }: AskedModel): string => `${provider}/${model}`

/** The worst case of a request: its input as estimated with a margin, and the cap of its output. */
export function findWorstCase(model: AskedModel, request: ModelRequest): WorstCase {
  const { times, tokens } = excesses.get(nameOf(model)) ?? firstExcess
  return {
    inputTokens: Math.ceil(estimateRequestTokens(request) * times + tokens),
    outputCap: findOutputCap(request.sampling.maxTokens, request.extraBody),
  }
}

/** A model counted the input of a request: the next worst case is not below that. */
export function learnInputTokens(model: AskedModel, request: ModelRequest, inputTokens: number): void {
  const estimated = estimateRequestTokens(request)
  const { times, tokens } = excesses.get(nameOf(model)) ?? firstExcess
  if (inputTokens <= estimated * times + tokens) return
  const next =
    estimated < shortTokens
      ? { times, tokens: Math.ceil(inputTokens - estimated * times) }
      : { times: (inputTokens - tokens) / estimated, tokens }
  excesses.set(nameOf(model), next)
}

/** What a request costs that uses all of it, in USD; null when the price is not known. All of the input may be written to a cache. */
export async function priceWorstCase(
  prices: PriceBook,
  { provider, model }: AskedModel,
  inputTokens: number,
  outputTokens: number,
): Promise<number | null> {
  const usage: TokenUsage = {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: 0,
    reasoningTokens: 0,
  }
  const plain = await prices.price(provider, model, usage)
  const written = await prices.price(provider, model, { ...usage, cacheWriteTokens: inputTokens })
  return plain === null || written === null ? (plain ?? written) : Math.max(plain, written)
}

/** `sampling.maxTokens`, unless the body says otherwise. */
function findOutputCap(maxTokens: number | undefined, extraBody: JsonObject): number | null {
  for (const key of ['max_completion_tokens', 'max_tokens', 'max_output_tokens']) {
    const cap = extraBody[key]
    if (typeof cap === 'number' && cap > 0) return Math.max(cap, maxTokens ?? 0)
  }
  return maxTokens ?? null
}
