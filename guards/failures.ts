import { isPolling } from './lib/polling.js'
import { short } from './lib/refusals.js'
import type { OnHalt, OnRepeat } from './lib/settings.js'
import type { CallFact, ResultFact } from './types.js'

/**
 * Failures in a row, by kind, counted once a batch. Each number is the failure that halts; a nudge comes one before.
 * `identical` ones agree in tool, arguments and error class.
 */
export interface FailingConfig {
  /** Identical failures that pass by no waiting. */
  identical: number
  /** Failures of any calls in a row; transient ones, and those of tools that do not exist, do not count. */
  any: number
  /** Identical transient failures. */
  transientIdentical: number
  /** Transient failures of any calls in a row. */
  transientAny: number
  /** Identical refusals by a policy (`ToolError('policy_denied', …)`). */
  policyDenied: number
  /** What becomes of the call that fails again. */
  onRepeat: OnRepeat
  /** What a halt does. */
  onHalt: OnHalt
  /**
   * Whether a halt that pauses first asks the model for last words, in one request without tools. Default true. Absent in
   * logs of earlier versions, whose runs paused at once.
   */
  lastWords?: boolean
}

const failureKinds = ['failed', 'unknown_tool', 'transient', 'policy_denied'] as const

export type ToolFailureKind = NonNullable<ResultFact['errorKind']>

/** What a failure counts against: a key of `guardrails.failing`. */
export type FailureRule = 'identical' | 'any' | 'transientIdentical' | 'transientAny' | 'policyDenied'

/** One call that fails in one way. */
export interface Failure {
  /** The beginning of the call's. */
  fingerprint: string
  kind: ToolFailureKind
  count: number
}

/** Failures since the last success, counted once a batch, because the model learns of a batch at once. */
export interface Failures {
  identical: Failure[]
  /** Batches of which a call failed for good. */
  any: number
  /** Batches of which a call failed in passing. */
  transientAny: number
}

export const noFailures: Failures = { identical: [], any: 0, transientAny: 0 }

/** How far a batch has brought one of the counts. */
export interface Tally {
  rule: FailureRule
  count: number
  calls: CallFact[]
}

/** How many calls are remembered: the latest. */
export const mostFailures = 12

export const identicalRule: Record<ToolFailureKind, FailureRule> = {
  failed: 'identical',
  unknown_tool: 'identical',
  transient: 'transientIdentical',
  policy_denied: 'policyDenied',
}

/** The streaks that runs of failures of any call feed; an unknown tool feeds none, it says nothing about the world. */
const anyRule: Record<ToolFailureKind, 'any' | 'transientAny' | null> = {
  failed: 'any',
  policy_denied: 'any',
  transient: 'transientAny',
  unknown_tool: null,
}

/**
 * Counts the results of a batch. A success ends every streak, except that of a call which did not succeed in the same
 * batch: a success beside it is no excuse. Transient failures of a polling batch do not count.
 */
export function countFailures(before: Failures, results: readonly ResultFact[]): [Failures, Tally[]] {
  if (results.every((result) => result.ok)) return [noFailures, []]
  const success = results.some((result) => result.ok)
  const after = success ? forgive(before, results) : { ...before }
  const tallies: Tally[] = []
  for (const { kind, calls } of failuresOf(results)) {
    for (const call of calls) {
      const fingerprint = short(call.fingerprint)
      const isSame = (one: Failure) => one.fingerprint === fingerprint && one.kind === kind
      const count = (after.identical.find(isSame)?.count ?? 0) + 1
      const others = after.identical.filter((one) => !isSame(one))
      after.identical = [...others, { fingerprint, kind, count }].slice(-mostFailures)
      tallies.push({ rule: identicalRule[kind], count, calls: [call] })
    }
  }
  if (success) return [after, tallies]
  for (const rule of ['any', 'transientAny'] as const) {
    const calls = failuresOf(results).flatMap((group) => (anyRule[group.kind] === rule ? group.calls : []))
    if (calls.length === 0) continue
    after[rule] += 1
    tallies.push({ rule, count: after[rule], calls })
  }
  return [after, tallies]
}

function forgive(before: Failures, results: readonly ResultFact[]): Failures {
  const unsuccessful = new Set(
    results.filter((result) => !result.ok).map((result) => short(result.fingerprint)),
  )
  return { ...noFailures, identical: before.identical.filter((one) => unsuccessful.has(one.fingerprint)) }
}

/** The failures that count, by kind, each call once. */
function failuresOf(results: readonly ResultFact[]): { kind: ToolFailureKind; calls: ResultFact[] }[] {
  const excused = isPolling(results) ? 'transient' : null
  return failureKinds
    .filter((kind) => kind !== excused)
    .map((kind) => {
      const failed = results.filter((result) => !result.ok && !result.refused && result.errorKind === kind)
      return { kind, calls: [...new Map(failed.map((result) => [result.fingerprint, result])).values()] }
    })
}
