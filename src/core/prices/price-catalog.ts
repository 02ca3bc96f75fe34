import type * as Catalog from '@pydantic/genai-prices'
import type { TokenUsage } from '../../../machines/agent/usage.js'
import { withoutDate } from './model-name.js'

/** Other names of the catalog's providers. */
const aliases = new Map([
  ['bedrock', 'aws'],
  ['gemini', 'google'],
  ['moonshot', 'moonshotai'],
  ['vertex', 'google'],
  ['xai', 'x-ai'],
])

let loading: Promise<typeof Catalog | null> | undefined
let catalog: typeof Catalog | null = null

/**
 * Undefined where there is nothing to load: it is there, or has nothing to say about this provider. Where the catalog was
 * left out of a bundle, no price is known. Never rejects.
 */
export function loadCatalog(provider: string): Promise<void> | undefined {
  if (catalog !== null || isOwnServer(provider)) return undefined
  return load()
}

async function load(): Promise<void> {
  loading ??= import('@pydantic/genai-prices').catch(() => null)
  catalog = await loading
}

/** The catalog names companies. What goes by its host, or runs on one's own machine, it cannot know. */
function isOwnServer(provider: string): boolean {
  return /[.:]|^(localhost|ollama|lmstudio|vllm|gpustack)$/i.test(provider.trim())
}

/**
 * What a response costs by the catalog, in USD; null when it does not know the provider or the model, or is not
 * loaded. Never throws.
 */
export function catalogPrice(provider: string, model: string, usage: TokenUsage, at: number): number | null {
  if (catalog === null) return null
  const key = `${provider}\n${model}`
  let entry = entries.get(key)
  if (entry === undefined) {
    entry = lookUp(catalog, provider, model)
    entries.set(key, entry)
  }
  if (entry === null) return null
  try {
    const { modelId, provider: narrow } = entry
    const priced = catalog.calcPrice(tokens(usage), modelId, { provider: narrow, timestamp: new Date(at) })
    return priced?.total_price ?? null
  } catch {
    return null
  }
}

/** A model of the catalog, in a provider that has no other: to match hundreds of models costs more than the price. */
interface Entry {
  modelId: string
  provider: Catalog.Provider
}

const entries = new Map<string, Entry | null>()

function lookUp(catalog: typeof Catalog, provider: string, model: string): Entry | null {
  const name = provider.trim().toLowerCase()
  const providerId = aliases.get(name) ?? name
  const known = catalog.findProvider({ providerId })
  // The catalog also takes names that only resemble a provider's; a proxy's name is no proof of its prices.
  if (known?.id !== providerId) return null
  for (const modelId of [model, withoutDate(model)]) {
    try {
      const found = catalog.calcPrice({ input_tokens: 1 }, modelId, { providerId })?.model
      if (found) return { modelId, provider: { ...known, models: [found] } }
    } catch {
      // The catalog has the model, but no price for it.
    }
  }
  return null
}

function tokens({ inputTokens, outputTokens, cachedInputTokens }: TokenUsage) {
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cache_read_tokens: Math.min(cachedInputTokens, inputTokens),
  }
}
