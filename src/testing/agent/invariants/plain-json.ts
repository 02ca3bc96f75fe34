/** Contexts share most of their parts: each is looked at once. */
const known = new WeakSet<object>()

/** Whether a value survives JSON unchanged: no functions, dates, NaN, undefined array items or classes. */
export function isPlainJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object') return false
  if (known.has(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  if (!Array.isArray(value) && prototype !== null && prototype !== Object.prototype) return false
  const parts: unknown[] = Array.isArray(value)
    ? value
    : Object.values(value).filter((part) => part !== undefined)
  if (!parts.every(isPlainJson)) return false
  known.add(value)
  return true
}
