import { cut } from '../../guards/cut.js'
import type { GuardFact } from './guard.js'

/** A verdict of a user's guard, checked; null says that all is well. */
export type Said =
  | { action: 'nudge'; message: string }
  | { action: 'block'; message: string; callIds: string[] | null }
  | { action: 'halt'; message: string; evidence: string | null }
  | null

const longestMessage = 2000

/** Reads what `verdict()` returned. Returns a sentence about what is wrong with it. */
export function readVerdict(value: unknown, fact: GuardFact): { said: Said } | { problem: string } {
  if (value === undefined || value === true) return { said: null }
  if (typeof value !== 'object' || value === null)
    return { problem: `verdict() returned ${nameOf(value)}; ${shapes}` }
  const { action, message, callIds, evidence } = value as Record<string, unknown>
  if (action === 'ok') return { said: null }
  if (action !== 'nudge' && action !== 'block' && action !== 'halt') {
    return { problem: `verdict() returned an object whose action is none; ${shapes}` }
  }
  if (typeof message !== 'string' || message.trim() === '') {
    return { problem: `verdict() returned a ${action} without a message; ${shapes}` }
  }
  const words = { message: cut(message, longestMessage) }
  if (action === 'nudge') return { said: { action, ...words } }
  if (action === 'halt') {
    return { said: { action, ...words, evidence: typeof evidence === 'string' ? evidence : null } }
  }
  const problem = problemWithBlock(callIds, fact)
  if (problem !== null) return { problem }
  if (callIds === undefined) return { said: { action, ...words, callIds: null } }
  const refused = [...(callIds as string[])]
  return { said: refused.length > 0 ? { action, ...words, callIds: refused } : null }
}

function nameOf(value: unknown): string {
  return value === null || value === false ? String(value) : `a ${typeof value}`
}

const shapes =
  "return nothing, true, { action: 'ok' }, or { action: 'nudge' | 'block' | 'halt', message } and no other"

function problemWithBlock(callIds: unknown, fact: GuardFact): string | null {
  if (fact.type !== 'calls') {
    return 'verdict() returned a block about results: what has run cannot be refused any more; nudge or halt instead'
  }
  if (callIds === undefined) return null
  const known = fact.calls.map(({ id }) => id)
  if (Array.isArray(callIds) && callIds.every((id: unknown) => known.includes(id as string))) return null
  return `verdict() returned a block whose callIds are not ids of these calls (${known.join(', ')})`
}
