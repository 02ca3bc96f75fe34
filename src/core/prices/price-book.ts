import type { TokenUsage } from '../../../machines/agent/usage.js'
import { type ModelPrice, type PriceTable, resolvePriceTable } from '../config/price-table.js'
import { valueOr } from '../base/maybe-promise.js'
import { readUsd } from '../base/values.js'
import { configError } from '../base/errors.js'
import { systemClock } from '../base/clock.js'
import { loadOnce } from '../base/platform.js'
import { stripReleaseDate } from './estimate-tokens.js'
import type * as Catalog from './genai-catalog.js'

/** The cost in US dollars. Null, invalid values and exceptions: unknown. Undefined: see the catalog. */
export type PriceFunction = (provider: string, model: string, usage: TokenUsage) => number | null | undefined

/** Custom prices, as a table or a function. They take precedence over the catalog. */
export type PriceOverrides = PriceTable | PriceFunction

export interface PriceBook {
  /**
   * The cost of a response in USD, or null if the price is unknown. Returns a promise only while the catalog has to be
   * loaded. The promise never rejects. Cached input is part of the input and may be cheaper. `at` is the time of the
   * request in milliseconds since the epoch, because some providers are cheaper at night. `at` defaults to now. Local
   * models (Ollama, vLLM) have no known price. For such models, use `{ inputPerMillion: 0, outputPerMillion: 0 }`.
   */
  price(
    provider: string,
    model: string,
    usage: TokenUsage,
    at?: number,
  ): number | null | Promise<number | null>
  /** Custom prices. Null if prices are disabled. */
  own: PriceFunction | null
  maxOutputTokens(model: string): number | null
  /** Loads the catalog if `knownPrice` needs it. Never rejects. */
  load(provider: string, model: string): Promise<void> | undefined
  /** Like `price`, but synchronous. Returns null until the catalog is loaded. Never throws. */
  knownPrice(provider: string, model: string, usage: TokenUsage, at?: number): number | null
}

/**
 * Creates a price book. The catalog (`@pydantic/genai-prices`, 0.8 MB) is loaded on the first price that the overrides
 * do not have. With `null`, it is never loaded and no prices are known. Throws a ConfigError (`invalid_config`) for
 * invalid prices.
 *
 * @example
 * createAgent({ model, prices: { 'my-model': { inputPerMillion: 0.5, outputPerMillion: 2 } } }) // USD
 */
export function createPriceBook(overrides: PriceOverrides | null = {}): PriceBook {
  if (overrides === null) return noPrices
  if (typeof overrides === 'function') return buildBook(guardPriceFunction(overrides), () => undefined)
  if (typeof overrides !== 'object')
    throw configError('prices must be an object with a price for each model, or a function.', 'prices')
  const table = new Map(Object.entries(resolvePriceTable(overrides)))
  const find = (model: string) => table.get(model) ?? table.get(stripReleaseDate(model))
  const own: PriceFunction = (_provider, model, usage) => {
    const price = find(model)
    return price && readUsd(calculateCost(usage, price))
  }
  return buildBook(own, find)
}

/** The prices for a sub-agent: its own prices, then those of its parent agent, then those of the catalog. */
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

/** Builds a price book. `find` looks up a model in a table, without the catalog. */
function buildBook(own: PriceFunction, find: (model: string) => ModelPrice | undefined): PriceBook {
  return {
    own,
    maxOutputTokens: (model) => find(model)?.maxOutputTokens ?? null,
    load: (provider, model) => (find(model) ? undefined : loadCatalog(provider)),
    price: (provider, model, usage, at = systemClock.now()) => {
      const cost = own(provider, model, usage)
      if (cost !== undefined) return cost
      const findListed = () => findCatalogPrice(provider, model, usage, at)
      return loadCatalog(provider)?.then(findListed) ?? findListed()
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
    const cost = valueOr(() => price(provider, model, usage), null)
    return cost === undefined ? cost : readUsd(cost)
  }
}

let catalog: typeof Catalog | null = null

const importCatalog = loadOnce(async (): Promise<void> => {
  catalog = await import('./genai-catalog.js').catch(() => null)
})

/** Undefined if it is loaded or not needed. Without it in a bundle, no price is known. Never rejects. */
function loadCatalog(provider: string): Promise<void> | undefined {
  return catalog !== null || isOwnServer(provider) ? undefined : importCatalog()
}

/** Whether the provider is a host or a local server. The catalog lists only companies. */
function isOwnServer(provider: string): boolean {
  return /[.:]|^(localhost|ollama|lmstudio|vllm|gpustack)$/i.test(provider.trim())
}

/** The cost in USD according to the catalog. Null if the cost is unknown or the catalog is not loaded. Never throws. */
function findCatalogPrice(provider: string, model: string, usage: TokenUsage, at: number): number | null {
  return readUsd(catalog?.calculateCatalogPrice(provider, model, usage, at))
}
