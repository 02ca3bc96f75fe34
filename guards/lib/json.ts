/** Anything that survives `JSON.parse(JSON.stringify(value))` unchanged. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

export type JsonObject = { [key: string]: Json }

/**
 * A copy of a plain object with more keys in it, in their order. What begins as a spread and is then given keys that it
 * has not becomes, in Node 20, an object of a kind of its own each time: ten times slower to make, four times as large,
 * and whatever reads it later is slower, too. So what is made at every step is made by this, or begins with the new keys.
 */
export function extendObject<Value extends object, More extends object>(
  value: Value,
  more: More,
): Value & More {
  return Object.assign({}, value, more)
}
