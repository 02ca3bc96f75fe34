import { checkInput } from './check-input.js'
import { map, optional, count, number, record } from './kind.js'

/** What a model costs, in USD per million tokens. */
export interface ModelPrice {
  /** Input tokens. */
  inputPerMillion: number
  /** Output tokens, reasoning included. */
  outputPerMillion: number
  /** Input that the provider had in its cache. Default: `inputPerMillion`. */
  cachedInputPerMillion?: number | undefined
  /** Input that the provider put into its cache. Default: `inputPerMillion`. */
  cacheWritePerMillion?: number | undefined
  /** The most output tokens that the model gives: what a shared budget reserves for a request without a cap. */
  maxOutputTokens?: number | undefined
}

/** Prices by the model's name, as it is asked for. */
export type PriceTable = Record<string, ModelPrice>

const usd = number(0, 1_000_000, 'a number of USD from 0 to 1000000')

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

/** The table when every price in it is a number from 0. Throws a ConfigError (`invalid_config`) otherwise. */
export function resolvePriceTable(input: unknown): PriceTable {
  return checkInput(record({ prices: priceTable }), { prices: input }, 'prices').prices
}
