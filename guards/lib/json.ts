/** Anything that survives `JSON.parse(JSON.stringify(value))` unchanged. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

export type JsonObject = { [key: string]: Json }

/** Omits undefined values, because readers of stored objects test for the key. The keys must come from code. */
export function omitUndefined<Value extends object>(
  value: Value,
): { [Key in keyof Value]?: Exclude<Value[Key], undefined> } {
  const kept: Partial<Value> = {}
  for (const key of Object.keys(value) as (keyof Value)[])
    if (value[key] !== undefined) kept[key] = value[key]
  return kept as Value
}

export function parseJsonOr(text: string, fallback: unknown): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return fallback
  }
}

export function groupBy<Key, Item>(items: readonly Item[], getKey: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const key = getKey(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}

/**
 * Copies a plain object and appends keys in order. In Node 20, a spread before new keys gives each object its own hidden
 * class: ten times slower to create, four times larger. Objects of every step use this, or list the new keys first.
 */
export function extendObject<Value extends object, More extends object>(
  value: Value,
  more: More,
): Value & More {
  return Object.assign({}, value, more)
}
