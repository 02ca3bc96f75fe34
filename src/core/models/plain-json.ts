import { valueOr } from '../base/maybe-promise.js'
import type { Json } from '../../../machines/agent/json.js'
import type { HostedCallOrigin, ProviderItems } from '../../../machines/agent/messages.js'

/** Maximum nesting depth. Some servers reject requests that are nested more deeply. */
export const maxDepth = 100

/** A plain JSON copy, or undefined if the value is not valid JSON (a BigInt, a cycle) or nested too deeply. */
export function toPlainJson(value: unknown): Json | undefined {
  const text = valueOr((): string | undefined => JSON.stringify(value), undefined)
  if (text === undefined) return undefined
  const plain = JSON.parse(text) as Json
  return isNestedDeeper(plain, maxDepth) ? undefined : plain
}

export function isNestedDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((item) => isNestedDeeper(item, levels - 1))
}

/** Returns null if the items are invalid as a whole. */
export function readProviderItems(input: unknown): ProviderItems | null {
  const { from, items } = (input ?? {}) as { from?: unknown; items?: unknown }
  if (typeof from !== 'string' || from === '' || !Array.isArray(items) || items.length === 0) return null
  const plain = items.map(toPlainJson).filter((item) => item !== undefined)
  return plain.length === items.length ? { from, items: plain } : null
}

export function readHostedBy(input: unknown): HostedCallOrigin | null {
  const { from, server } = (input ?? {}) as { from?: unknown; server?: unknown }
  return typeof from === 'string' && typeof server === 'string' ? { from, server } : null
}

/** Replaces lone surrogates, which several providers reject, with U+FFFD. Keeps a value that has none. */
export function toWellFormed<Value>(value: Value): Value {
  return isWellFormed(value) ? value : (replaceHalfPairs(value) as Value)
}

export function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return !halfPair.test(value)
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(isWellFormed)
  return Object.entries(value).every(([key, item]) => !halfPair.test(key) && isWellFormed(item))
}

function replaceHalfPairs(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(halfPairs, '\uFFFD')
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(replaceHalfPairs)
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [replaceHalfPairs(key), replaceHalfPairs(item)]),
  )
}

/** With the `u` flag, this matches only lone surrogates. */
const halfPair = /\p{Surrogate}/u
const halfPairs = /\p{Surrogate}/gu
