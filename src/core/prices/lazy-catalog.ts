import type { TokenUsage } from '../../../machines/agent/usage.js'
import type * as Catalog from './genai-catalog.js'

let loading: Promise<typeof Catalog | null> | undefined
let catalog: typeof Catalog | null = null

/**
 * Undefined where there is nothing to load: it is there, or has nothing to say about this provider. Where the catalog was
 * left out of a bundle, no price is known. Never rejects.
 */
export function loadCatalog(provider: string): Promise<void> | undefined {
  if (catalog !== null || isOwnServer(provider)) return undefined
  return importCatalog()
}

async function importCatalog(): Promise<void> {
  loading ??= import('./genai-catalog.js').catch(() => null)
  catalog = await loading
}

/** The catalog names companies. What goes by its host, or runs on one's own machine, it cannot know. */
function isOwnServer(provider: string): boolean {
  return /[.:]|^(localhost|ollama|lmstudio|vllm|gpustack)$/i.test(provider.trim())
}

/** What a response costs by the catalog, in USD; null when it does not know, or is not loaded. Never throws. */
export function findCatalogPrice(
  provider: string,
  model: string,
  usage: TokenUsage,
  at: number,
): number | null {
  return catalog?.calculateCatalogPrice(provider, model, usage, at) ?? null
}
