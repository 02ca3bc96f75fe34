/**
 * The value with half surrogate pairs replaced by U+FFFD, in every text and key at any depth: several providers refuse
 * a whole request for one. The value itself where there is none.
 */
export function wellFormed<Value>(value: Value): Value {
  return isWellFormed(value) ? value : (mended(value) as Value)
}

/** Whether no text or key in the value has half a surrogate pair. */
export function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return !half.test(value)
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(isWellFormed)
  return Object.entries(value).every(([key, item]) => !half.test(key) && isWellFormed(item))
}

function mended(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(halves, '\uFFFD')
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(mended)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [mended(key), mended(item)]))
}

/** With the flag u, a pair is one character, so that this matches halves alone. */
const half = /\p{Surrogate}/u
const halves = /\p{Surrogate}/gu
