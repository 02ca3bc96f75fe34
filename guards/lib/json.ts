/**
 * Anything that survives `JSON.parse(JSON.stringify(value))` unchanged.
 *
 * @example
 * const progress: Json = { done: 3, of: 10, files: ['a.txt'] }
 */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

/**
 * A JSON object.
 *
 * @example
 * const extraBody: JsonObject = { service_tier: 'flex' }
 * createAgent({ model, extraBody })
 */
export type JsonObject = { [key: string]: Json }
