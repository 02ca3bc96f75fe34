import { checkInput } from './check-input.js'
import { map, optional, count, number, record } from './kind.js'

/** Prices for a model in USD per million tokens. */
export interface ModelPrice {
  /** Input tokens. */
  inputPerMillion: number
  /** Output tokens, including reasoning. */
  outputPerMillion: number
  /** Input tokens read from the provider's cache. Defaults to `inputPerMillion`. */
  cachedInputPerMillion?: number | undefined
  /** Input tokens written to the provider's cache. Defaults to `inputPerMillion`. */
  cacheWritePerMillion?: number | undefined
  /** Maximum output tokens of the model. Shared budgets reserve this number for requests without a limit. */
  maxOutputTokens?: number | undefined
}

/** Prices by the requested model's name. */
export type PriceTable = Record<string, ModelPrice>

const usd = number(0, 1_000_000, 'an amount in USD from 0 to 1000000')

export const priceTable = map(
  record({
    inputPerMillion: usd,
    outputPerMillion: usd,
    cachedInputPerMillion: optional(usd),
    cacheWritePerMillion: optional(usd),
    maxOutputTokens: optional(count(1)),
  }),
  'an object with a price for each model',
)

/** Validates a price table. Throws a ConfigError (`invalid_config`). */
export function resolvePriceTable(input: unknown): PriceTable {
  return checkInput(record({ prices: priceTable }), { prices: input }, 'prices').prices
}
