import type { ProgressConfig, Steps } from './progress-config.js'
import type { ResultFact } from './types.js'

/**
 * Keys of `guardrails.progress`, and `recurring`, which counts toward the nudge of `stale`. Of several findings, the first in
 * this order is used, because its rule knows most about the cause.
 */
export const progressRules = [
  'policyDenied',
  'unknownTools',
  'transient',
  'refused',
  'sameError',
  'stale',
  'mixed',
  'failing',
  'recurring',
] as const

export type ProgressRule = (typeof progressRules)[number]

/** The change of one count by a batch. */
export interface Tally {
  rule: ProgressRule
  before: number
  after: number
  steps: Steps | null
  /** The calls that were counted. */
  calls: readonly ResultFact[]
}

/** A halt from its count on, a nudge when its count is reached. */
export function decideAction({ before, after, steps }: Tally): 'nudge' | 'halt' | null {
  if (steps === null || after <= before) return null
  if (hasReached(after, steps.haltAt)) return 'halt'
  return hasReached(after, steps.nudgeAt) && !hasReached(before, steps.nudgeAt) ? 'nudge' : null
}

export function hasReached(count: number, at: number | null | undefined): boolean {
  return at != null && count >= at - precision
}

/** A sum of parts, rounded, because it is stored. */
export function addPart(count: number, part: number): number {
  return Math.round((count + part) * 1e6) / 1e6
}

/** Three thirds are one. */
const precision = 0.001

/** A wait of this many times `waiting.ms` costs time, not tokens. */
const longWait = 10

/** How much a result counts: less when its call waited for something, or asked about work in progress. */
export function weighResult(result: ResultFact, { waiting }: ProgressConfig): number {
  if (waiting === null || !result.ok) return 1
  const { durationMs, size } = result
  if (durationMs >= waiting.ms * longWait) return waiting.weight / longWait
  if (size > waiting.chars) return 1
  if (result.says === 'under_way') return waiting.underWay
  return durationMs >= waiting.ms ? waiting.weight : 1
}

/**
 * How much a failure counts among other failures. An absent name is an answer, not a fault of the tool. An error that names a
 * word of the arguments may be about that word, and with the same error as before it is.
 */
export function weighFailure({ says }: ResultFact, isSameError: boolean): number {
  if (says === 'absent') return 1 / 16
  return says === 'absent_named' && !isSameError ? 1 / 3 : 1
}
