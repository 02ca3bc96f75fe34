import type { ProgressConfig, Steps } from './progress-config.js'
import type { ResultFact } from './types.js'

/** `recurring` counts toward the nudge of `stale`. The first matching rule is the most specific. */
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

export interface Tally {
  rule: ProgressRule
  before: number
  after: number
  steps: Steps | null
  calls: readonly ResultFact[]
}

export function decideProgressAction({ before, after, steps }: Tally): 'nudge' | 'halt' | null {
  if (steps === null || after <= before) return null
  if (hasReached(after, steps.haltAt)) return 'halt'
  return hasReached(after, steps.nudgeAt) && !hasReached(before, steps.nudgeAt) ? 'nudge' : null
}

export function hasReached(count: number, at: number | null | undefined): boolean {
  return at != null && count >= at - precision
}

export function addPart(count: number, part: number): number {
  return Math.round((count + part) * 1e6) / 1e6
}

/** Tolerance for rounding, so that three thirds reach one. */
const precision = 0.001

/** A call that waits this many times `waiting.ms` costs time but no tokens. */
const longWait = 10

export function weighResult(result: ResultFact, { waiting }: ProgressConfig): number {
  if (waiting === null || !result.ok) return 1
  const { durationMs, size } = result
  if (durationMs >= waiting.ms * longWait) return waiting.weight / longWait
  if (size > waiting.chars) return 1
  if (result.says === 'under_way') return waiting.underWay
  return durationMs >= waiting.ms ? waiting.weight : 1
}

/** A missing name is an answer, not a fault. A quoted argument may be at fault, unless the same error repeats. */
export function weighFailure({ says }: ResultFact, isSameError: boolean): number {
  if (says === 'absent') return 1 / 16
  return says === 'absent_named' && !isSameError ? 1 / 3 : 1
}
