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
