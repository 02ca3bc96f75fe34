/**
 * Freezes plain data and everything in it; what is frozen already was so to the ground. What a run tells is what its
 * machine goes on with: it is frozen once, when it is first told, which costs less than a copy for every listener, and
 * holds in production, too. To change it, make a copy: `structuredClone(message)`.
 */
export function freezeOnce<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  // Of a plain object these are its own keys, and no list of them has to be made.
  for (const key in value) freezeOnce(value[key])
  return value
}

/** Freezes a plain value and everything in it. The value must be a tree: no cycles. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}
