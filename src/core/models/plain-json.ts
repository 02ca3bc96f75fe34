import type { Json } from '../../../machines/agent/json.js'
import type { HostedCallOrigin, ProviderItems } from '../../../machines/agent/messages.js'

/** How deep what is sent may be nested: some servers stop reading a request soon after this. */
export const maxDepth = 100

/**
 * What a provider wants back, as a copy in plain JSON. Undefined for what JSON cannot hold (a
 * BigInt, a cycle) and for what is nested too deeply to be sent: it is left out.
 */
export function toPlainJson(value: unknown): Json | undefined {
  try {
    const text: string | undefined = JSON.stringify(value)
    const plain = text === undefined ? undefined : (JSON.parse(text) as Json)
    return plain === undefined || isNestedDeeper(plain, maxDepth) ? undefined : plain
  } catch {
    return undefined
  }
}

/** Whether a value that was read from JSON is nested deeper than so many levels. */
export function isNestedDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((item) => isNestedDeeper(item, levels - 1))
}

/** Items as they may be kept; null for what are none, and for those that cannot be kept as a whole. */
export function readProviderItems(given: unknown): ProviderItems | null {
  const { from, items } = (given ?? {}) as { from?: unknown; items?: unknown }
  if (typeof from !== 'string' || from === '' || !Array.isArray(items) || items.length === 0) return null
  const plain = items.map(toPlainJson).filter((item) => item !== undefined)
  return plain.length === items.length ? { from, items: plain } : null
}

/** Where a call is carried out; null for what says nothing of that. */
export function readHostedBy(given: unknown): HostedCallOrigin | null {
  const { from, server } = (given ?? {}) as { from?: unknown; server?: unknown }
  return typeof from === 'string' && typeof server === 'string' ? { from, server } : null
}

/**
 * The value with half surrogate pairs replaced by U+FFFD, in every text and key at any depth: several providers refuse
 * a whole request for one. The value itself where there is none.
 */
export function toWellFormed<Value>(value: Value): Value {
  return isWellFormed(value) ? value : (replaceHalfPairs(value) as Value)
}

/** Whether no text or key in the value has half a surrogate pair. */
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

/** With the flag u, a pair is one character, so that this matches halves alone. */
const halfPair = /\p{Surrogate}/u
const halfPairs = /\p{Surrogate}/gu
