import { UsageError } from './errors.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'

/** Numbers from providers, stores, servers and apps are read at the border: finite, non-negative and bounded. */

const maxTokens = 1e9
const maxUsd = 1e9
/** Maximum wait, about a year, in milliseconds. Dates and timers can represent the end of such a wait. */
export const maxWaitMs = 366 * 86_400_000

/** Tokens of one response, rounded up. Null for an implausible count. */
export function readTokens(value: unknown): number | null {
  return isWithin(value, maxTokens) ? Math.ceil(value) : null
}

/** The cost of one response in US dollars. Null for an implausible amount. */
export function readUsd(value: unknown): number | null {
  return isWithin(value, maxUsd) ? value : null
}

/** A server's delay in whole milliseconds, at most `maxWaitMs`. Null if invalid. */
export function readWaitMs(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? Math.ceil(Math.min(value, maxWaitMs)) : null
}

/** A stored total, in tokens or billionths of a US dollar. */
export function limitTotal(value: number): number {
  return Math.min(Math.max(Math.ceil(value), 0), Number.MAX_SAFE_INTEGER)
}

function isWithin(value: unknown, most: number): value is number {
  return typeof value === 'number' && value >= 0 && value <= most
}

/** Frozen data counts as deep-frozen. Freezing data once is cheaper than a copy per listener. */
export function freezeOnce<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  // Plain objects have only own keys, so no key list is needed.
  for (const key in value) freezeOnce(value[key])
  return value
}

export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function getOrCreate<Key, Value>(
  memory: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  create: () => Value,
): Value {
  const known = memory.get(key)
  if (known !== undefined) return known
  const value = create()
  memory.set(key, value)
  return value
}

/** Keeps the results, except undefined, as long as their keys exist. */
export function memoize<Key extends object, Value>(create: (key: Key) => Value): (key: Key) => Value {
  const values = new WeakMap<Key, Value>()
  return (key) => {
    let value = values.get(key)
    if (value === undefined) values.set(key, (value = create(key)))
    return value
  }
}

/** Returns the same list if no item changes. */
export function mapKept<Item>(
  all: readonly Item[],
  change: (item: Item, at: number) => Item,
): readonly Item[] {
  let changed: Item[] | undefined
  for (const [at, item] of all.entries()) {
    const next = change(item, at)
    if (next !== item) (changed ??= [...all])[at] = next
  }
  return changed ?? all
}

export interface ArgumentRule {
  is: (value: unknown) => boolean
  phrase: string
  hint?: string
}

/** An object or a class that has these keys. The values are checked where they are used. */
export function objectRule(keys: readonly PropertyKey[], phrase: string): ArgumentRule {
  return {
    is: (value) =>
      (isObject(value) || (typeof value === 'function' && keys.length > 0)) &&
      keys.every((key) => key in value),
    phrase,
  }
}

export const optionsRule: ArgumentRule = {
  is: (value) => value === undefined || (isObject(value) && !isPromise(value)),
  phrase: 'an options object',
}

export function listRule(phrase: string): ArgumentRule {
  return {
    is: (value) => Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null),
    phrase,
  }
}

export function functionRule(phrase: string): ArgumentRule {
  return { is: (value) => typeof value === 'function', phrase }
}

/** `argument` is the call as the user wrote it, such as `orThrow(result)`. @throws {UsageError} `invalid_argument` */
export function expectArgument(argument: string, value: unknown, { is, phrase, hint }: ArgumentRule): void {
  if (!isPromise(value) && is(value)) return
  const problem = `${argument} must be ${phrase} (got ${describeArgument(value)}).`
  throw new UsageError('invalid_argument', hint === undefined ? problem : `${problem} ${hint}`, argument)
}

function isPromise(value: unknown): boolean {
  return isObject(value) && typeof value['then'] === 'function'
}

export function describeArgument(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return 'a list'
  if (isPromise(value)) return 'a promise; await it first'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Readers for a provider's parsed JSON, in which any field may be missing or have any type. */
export function asObject(value: unknown): JsonObject | null {
  return isObject(value) ? (value as JsonObject) : null
}

export function asList(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value : []
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A text, or an object as JSON. Some servers send parsed JSON in place of its text. */
export function asJsonText(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : asText(value)
}
