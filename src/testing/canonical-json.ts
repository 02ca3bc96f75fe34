import { isObject } from '../core/base/values.js'

export function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isObject(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

/**
 * The first part of a value that JSON cannot represent, or undefined. Undefined properties are omitted from JSON and
 * therefore allowed. `known` remembers the parts without a problem.
 */
export function findNonJson(
  value: unknown,
  known = new WeakSet(),
  open = new Set<object>(),
): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : String(value)
  if (typeof value !== 'object' || value === null)
    return ['string', 'boolean', 'object'].includes(typeof value)
      ? undefined
      : value === undefined
        ? 'undefined'
        : `a ${typeof value}`
  if (known.has(value)) return undefined
  if (open.has(value)) return 'a circular reference'
  const prototype: unknown = Object.getPrototypeOf(value)
  if (!Array.isArray(value) && prototype !== null && Object.getPrototypeOf(prototype) !== null)
    return `an instance of ${value.constructor.name}`
  open.add(value)
  for (const part of Array.isArray(value) ? value : Object.values(value).filter((one) => one !== undefined)) {
    const found = findNonJson(part, known, open)
    if (found !== undefined) return found
  }
  open.delete(value)
  known.add(value)
  return undefined
}
