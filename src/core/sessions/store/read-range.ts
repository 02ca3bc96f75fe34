import type { ReadRange } from './store.js'

/** A range with whole numbers, or from the last snapshot; null: there is nothing in it. */
export interface ResolvedRange {
  from: number | 'snapshot'
  to: number
}

export function resolveRange({
  from = 1,
  to = Number.MAX_SAFE_INTEGER,
}: ReadRange = {}): ResolvedRange | null {
  const last = Math.floor(Math.min(to, Number.MAX_SAFE_INTEGER))
  if (from === 'snapshot') return last >= 1 ? { from, to: last } : null
  const first = Math.ceil(Math.max(from, 1))
  return first <= last ? { from: first, to: last } : null
}
