import type { ProgressConfig, Steps } from './progress-config.js'
import type { ResultFact } from './types.js'

/** What a batch counts against: a key of `guardrails.progress`. */
export type ProgressRule =
  | 'stale'
  | 'mixed'
  | 'mostly'
  | 'beside'
  | 'recurring'
  | 'sameOutput'
  | 'failing'
  | 'failingTool'
  | 'sameError'
  | 'unknownTools'
  | 'refused'
  | 'policyDenied'
  | 'transient'

/** How far a batch has brought one of the counts. */
export interface Tally {
  rule: ProgressRule
  before: number
  after: number
  steps: Steps | null
  /** Where the steps stand under `guardrails.progress`, when that is not under the rule's own name. */
  setting?: string
  /** The calls that it is about. */
  calls: readonly ResultFact[]
}

/** What a tally leads to: the halt stands from its count on, the nudge is said as its count is reached. */
export function actionOf({ before, after, steps }: Tally): 'nudge' | 'halt' | null {
  if (steps === null || after <= before) return null
  if (reaches(after, steps.haltAt)) return 'halt'
  return reaches(after, steps.nudgeAt) && !reaches(before, steps.nudgeAt) ? 'nudge' : null
}

export function reaches(count: number, at: number | null | undefined): boolean {
  return at != null && count >= at - precision
}

/** A sum of parts, kept short: it is stored. */
export function plus(count: number, part: number): number {
  return Math.round((count + part) * 1e6) / 1e6
}

/** Three thirds are one. */
const precision = 0.001

/** How much a result counts: less when its call waited for something. */
export function weightOf(
  result: { ok: boolean; durationMs: number; size: number },
  config: ProgressConfig,
): number {
  const { waiting } = config
  if (waiting === null || !result.ok) return 1
  return result.durationMs >= waiting.ms && result.size <= waiting.chars ? waiting.weight : 1
}
