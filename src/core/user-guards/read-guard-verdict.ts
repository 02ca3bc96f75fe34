import { truncate } from '../../../guards/lib/cut.js'
import type { GuardFact } from './guard.js'

/** A verdict of a user's guard, checked; null says that all is well. */
export type CheckedGuardVerdict =
  | { action: 'nudge'; message: string }
  | { action: 'block'; message: string; callIds: string[] | null }
  | { action: 'halt'; message: string; evidence: string | null }
  | null

const longestMessage = 2000

/** Reads what `verdict()` returned. Returns a sentence about what is wrong with it. */
export function readGuardVerdict(
  value: unknown,
  fact: GuardFact,
): { said: CheckedGuardVerdict } | { problem: string } {
  if (value === undefined || value === true) return { said: null }
  if (typeof value !== 'object' || value === null)
    return { problem: `verdict() returned ${describeValue(value)}; ${shapes}` }
  const { action, message, evidence, callIds: given } = value as Record<string, unknown>
  if (action === 'ok') return { said: null }
  if (action !== 'nudge' && action !== 'block' && action !== 'halt') {
    return { problem: `verdict() returned an object whose action is none; ${shapes}` }
  }
  if (typeof message !== 'string' || message.trim() === '') {
    return { problem: `verdict() returned a ${action} without a message; ${shapes}` }
  }
  const words = { message: truncate(message, longestMessage) }
  if (action === 'nudge') return { said: { action, ...words } }
  if (action === 'halt') {
    return { said: { action, ...words, evidence: typeof evidence === 'string' ? evidence : null } }
  }
  const callIds = given === undefined ? null : toList(given)
  // An empty list refuses nothing: a guard that filters the calls need not check whether any are left.
  if (callIds?.length === 0) return { said: null }
  const problem = findBlockProblem(callIds, fact)
  return problem === null ? { said: { action, ...words, callIds: callIds as string[] | null } } : { problem }
}

/** What is no list holds one thing, and that is no id of a call. */
function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? [...(value as unknown[])] : [undefined]
}

function describeValue(value: unknown): string {
  return value === null || value === false ? String(value) : `a ${typeof value}`
}

const shapes =
  "return nothing, true, { action: 'ok' }, or { action: 'nudge' | 'block' | 'halt', message } and no other"

function findBlockProblem(callIds: readonly unknown[] | null, fact: GuardFact): string | null {
  if (fact.type !== 'calls') {
    return 'verdict() returned a block about results: what has run cannot be refused any more; nudge or halt instead'
  }
  const known: readonly unknown[] = fact.calls.map(({ id }) => id)
  if (callIds === null || callIds.every((id) => known.includes(id))) return null
  return `verdict() returned a block whose callIds are not ids of these calls (${known.join(', ')})`
}
