import { calcPrice, findProvider, type Provider } from '@pydantic/genai-prices'
import type { TokenUsage } from '../../../machines/agent/usage.js'
import { valueOr } from '../base/maybe-promise.js'
import { getOrCreate } from '../base/values.js'
import { stripReleaseDate } from './estimate-tokens.js'

const aliases = new Map([
  ['bedrock', 'aws'],
  ['gemini', 'google'],
  ['moonshot', 'moonshotai'],
  ['vertex', 'google'],
  ['xai', 'x-ai'],
])

/** The cost in USD according to the catalog, or null for an unknown provider or model. Never throws. */
export function calculateCatalogPrice(
  provider: string,
  model: string,
  usage: TokenUsage,
  at: number,
): number | null {
  const entry = getOrCreate(entryByModel, `${provider}\n${model}`, () => findEntry(provider, model))
  if (entry === null) return null
  const { modelId, provider: narrow } = entry
  const options = { provider: narrow, timestamp: new Date(at) }
  return valueOr(() => calcPrice(toCatalogUsage(usage), modelId, options)?.total_price, null) ?? null
}

/** A provider reduced to one model, because searching hundreds of models is slow. */
interface Entry {
  modelId: string
  provider: Provider
}

const entryByModel = new Map<string, Entry | null>()

function findEntry(provider: string, model: string): Entry | null {
  const name = provider.trim().toLowerCase()
  const providerId = aliases.get(name) ?? name
  const known = findProvider({ providerId })
  // The catalog also matches similar provider names, but those may be proxies with other prices.
  if (known?.id !== providerId) return null
  for (const modelId of [model, stripReleaseDate(model)]) {
    // Throws if the catalog lists the model without a price.
    const found = valueOr(() => calcPrice({ input_tokens: 1 }, modelId, { providerId })?.model, undefined)
    if (found) return { modelId, provider: { ...known, models: [found] } }
  }
  return null
}

function toCatalogUsage({ inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens = 0 }: TokenUsage) {
  const cached = Math.min(cachedInputTokens, inputTokens)
  const written = Math.min(cacheWriteTokens, inputTokens - cached)
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cache_read_tokens: cached,
    ...(written > 0 && { cache_write_tokens: written }),
  }
}
