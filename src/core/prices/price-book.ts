import type { TokenUsage } from '../../../machines/agent/usage.js'
import { type ModelPrice, type PriceTable, resolvePriceTable } from '../config/price-table.js'
import { readUsd } from '../base/values.js'
import { ConfigError } from '../base/errors.js'
import { systemClock } from '../base/clock.js'
import type * as Catalog from './genai-catalog.js'

/**
 * The cost of one response in USD; null when it is not known, undefined to leave it to the built-in catalog. What is
 * not a number from 0, or an exception, counts as not known.
 */
export type PriceFunction = (provider: string, model: string, usage: TokenUsage) => number | null | undefined

/** Prices of one's own, which come before the built-in catalog: a table, or a function. */
export type PriceOverrides = PriceTable | PriceFunction

export interface PriceBook {
  /**
   * What one response costs, in USD; null when the price is not known. A promise only while the catalog is not loaded
   * that has to be looked into; it never rejects.
   *
   * Cached input is a part of the input, and cheaper where the provider makes it so. `at` is when the request was made,
   * in milliseconds since the epoch (default: now): some providers are cheaper at night.
   *
   * Models on one's own machine (Ollama, vLLM) have no known price: give `{ inputPerMillion: 0, outputPerMillion: 0 }`
   * for what costs nothing.
   */
  price(
    provider: string,
    model: string,
    usage: TokenUsage,
    at?: number,
  ): number | null | Promise<number | null>
  /** The prices of its own, which come before the catalog; null where there are to be no prices at all. */
  own: PriceFunction | null
  /** The most output tokens that a model gives, where its own table says so; null: not known. */
  maxOutputTokens(model: string): number | null
  /** Loads what `knownPrice` has to look into: the catalog, or nothing. Never rejects. */
  load(provider: string, model: string): Promise<void> | undefined
  /** The same as `price` at once; null, too, as long as the catalog has not been loaded. Never throws. */
  knownPrice(provider: string, model: string, usage: TokenUsage, at?: number): number | null
}

/**
 * A price book. The catalog (`@pydantic/genai-prices`, 0.8 MB) is loaded when a price is first asked for that the
 * overrides do not have; with `null` in their place it never is, and no price is known. Throws a ConfigError (`invalid_config`) for a table with anything but prices from 0.
 *
 * @example
 * createAgent({ model, prices: { 'my-model': { inputPerMillion: 0.5, outputPerMillion: 2 } } }) // USD
 */
export function createPriceBook(overrides: PriceOverrides | null = {}): PriceBook {
  if (overrides === null) return noPrices
  if (typeof overrides === 'function') return buildBook(guardPriceFunction(overrides), () => undefined)
  const find = createFinder(overrides)
  const own: PriceFunction = (_provider, model, usage) => {
    const price = find(model)
    return price && readUsd(calculateCost(usage, price))
  }
  return buildBook(own, find)
}

/** The prices of a sub-agent: its own, then those of the agent above it, then the catalog. */
export function inheritPrices(book: PriceBook, above: PriceBook): PriceBook {
  const [own, inherited] = [book.own, above.own]
  if (own === null || inherited === null) return book
  const both: PriceFunction = (provider, model, usage) => {
    const cost = own(provider, model, usage)
    return cost === undefined ? inherited(provider, model, usage) : cost
  }
  return {
    ...buildBook(both, () => undefined),
    maxOutputTokens: (model) => book.maxOutputTokens(model) ?? above.maxOutputTokens(model),
  }
}

/** `find`: what a table has of a model. Such a price is known without the catalog. */
function buildBook(own: PriceFunction, find: (model: string) => ModelPrice | undefined): PriceBook {
  return {
    own,
    maxOutputTokens: (model) => find(model)?.maxOutputTokens ?? null,
    load: (provider, model) => (find(model) ? undefined : loadCatalog(provider)),
    price: (provider, model, usage, at = systemClock.now()) => {
      const cost = own(provider, model, usage)
      if (cost !== undefined) return cost
      const loading = loadCatalog(provider)
      if (loading === undefined) return findCatalogPrice(provider, model, usage, at)
      return loading.then(() => findCatalogPrice(provider, model, usage, at))
    },
    knownPrice: (provider, model, usage, at = systemClock.now()) => {
      const cost = own(provider, model, usage)
      return cost === undefined ? findCatalogPrice(provider, model, usage, at) : cost
    },
  }
}

const noPrices: PriceBook = {
  own: null,
  maxOutputTokens: () => null,
  load: () => undefined,
  price: () => null,
  knownPrice: () => null,
}

function createFinder(overrides: unknown): (model: string) => ModelPrice | undefined {
  if (typeof overrides !== 'object') {
    throw new ConfigError(
      'invalid_config',
      'prices must be an object with a price for each model, or a function.',
      'prices',
    )
  }
  const table = new Map(Object.entries(resolvePriceTable(overrides)))
  return (model) => table.get(model) ?? table.get(stripReleaseDate(model))
}

function calculateCost(usage: TokenUsage, price: ModelPrice): number {
  const { inputPerMillion, outputPerMillion } = price
  const cached = Math.min(usage.cachedInputTokens, usage.inputTokens)
  const written = Math.min(usage.cacheWriteTokens ?? 0, usage.inputTokens - cached)
  const input = (usage.inputTokens - cached - written) * inputPerMillion
  const read = cached * (price.cachedInputPerMillion ?? inputPerMillion)
  const write = written * (price.cacheWritePerMillion ?? inputPerMillion)
  return (input + read + write + usage.outputTokens * outputPerMillion) / 1_000_000
}

function guardPriceFunction(price: PriceFunction): PriceFunction {
  return (provider, model, usage) => {
    try {
      const cost = price(provider, model, usage)
      return cost === undefined ? cost : readUsd(cost)
    } catch {
      return null
    }
  }
}

let loading: Promise<typeof Catalog | null> | undefined
let catalog: typeof Catalog | null = null

/**
 * Undefined where there is nothing to load: it is there, or has nothing to say about this provider. Where the catalog was
 * left out of a bundle, no price is known. Never rejects.
 */
function loadCatalog(provider: string): Promise<void> | undefined {
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
function findCatalogPrice(provider: string, model: string, usage: TokenUsage, at: number): number | null {
  return readUsd(catalog?.calculateCatalogPrice(provider, model, usage, at))
}

/** `gpt-5-mini-2025-08-07` and `gpt-5-mini-20250807` are releases of `gpt-5-mini`. */
export function stripReleaseDate(model: string): string {
  return model.replace(/-20\d{2}-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])$/, '')
}
