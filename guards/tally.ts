import type { ProgressConfig, Steps } from './progress-config.js'
import type { ResultFact } from './types.js'

/** What a batch counts against: a key of `guardrails.progress`. */
export type ProgressRule =
  | 'stale'
  | 'mixed'
  | 'mostly'
  | 'beside'
  | 'recurring'
  | 'similar'
  | 'tour'
  | 'sameOutput'
  | 'failing'
  | 'failingTool'
  | 'sameError'
  | 'unknownTools'
  | 'refused'
  | 'policyDenied'
  | 'transient'

/** The change of one count by a batch. */
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

/** The action of a tally: a halt from its count on, a nudge when its count is reached. */
export function decideAction({ before, after, steps }: Tally): 'nudge' | 'halt' | null {
  if (steps === null || after <= before) return null
  if (hasReached(after, steps.haltAt)) return 'halt'
  return hasReached(after, steps.nudgeAt) && !hasReached(before, steps.nudgeAt) ? 'nudge' : null
}

/** Null where the configuration of an older log knows no such detector. */
export function toSteps(steps: Steps | null | undefined): Steps | null {
  return steps ?? null
}

export function hasReached(count: number, at: number | null | undefined): boolean {
  return at != null && count >= at - precision
}

/** A sum of parts, kept short: it is stored. */
export function addPart(count: number, part: number): number {
  return Math.round((count + part) * 1e6) / 1e6
}

/** Three thirds are one. */
const precision = 0.001

/** Adds a part to a count, but not beyond `most`: such parts alone never lead further. */
export function addPartUpTo(count: number, part: number, most: number | null | undefined): number {
  return Math.max(count, Math.min(addPart(count, part), most ?? count))
}

/** A wait of so many times `waiting.ms` was meant as one. */
const longWait = 10

/** How much a result counts: less when its call waited for something, or asked about something that goes on. */
export function weighResult(
  result: Pick<ResultFact, 'ok' | 'durationMs' | 'size' | 'says'>,
  config: ProgressConfig,
): number {
  const { waiting } = config
  if (waiting === null || !result.ok || result.size > waiting.chars) return 1
  // The configuration of an older log does not say what this counts for.
  const underWay: number | undefined = waiting.underWay
  if (saysUnderWay(result, config)) return underWay ?? waiting.weight
  return result.durationMs >= waiting.ms ? waiting.weight : 1
}

/** Whether a result says that work goes on, for a call that was quick or waited long. */
export function saysUnderWay(
  { says, durationMs }: Pick<ResultFact, 'durationMs' | 'says'>,
  { waiting }: ProgressConfig,
): boolean {
  if (waiting === null || says !== 'under_way') return false
  return durationMs < waiting.ms || durationMs >= waiting.ms * longWait
}

/** How much a failure counts that is an answer: a name that does not exist is no fault of the tool. */
const absentPart = 1 / 16
/** The error names a word of the arguments: that word may be what is wrong with all of them. */
const absentNamedPart = 1 / 3

/** How much a failure counts among other failures. With the same error as the one before, a named word is the fault. */
export function weighFailure({ says }: Pick<ResultFact, 'says'>, isSameError: boolean): number {
  if (says === 'absent') return absentPart
  return says === 'absent_named' && !isSameError ? absentNamedPart : 1
}
