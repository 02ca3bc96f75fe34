import { addRefusals, isPolling, mostRefusals, shortenFingerprint, wasRefused } from './refusals.js'
import { isCount, isListOf, isNamedCalls, isRecord, isText } from '../lib/stored.js'
import { type OnHalt, type OnRepeat, onHalt, onRepeat } from '../lib/settings.js'
import { type CallFact, type Guard, type ResultFact, ok } from '../types.js'
import { type NamedCalls, formatTimes, nameCalls } from '../lib/words.js'
import { toEvidence } from '../lib/evidence.js'

/**
 * Limits on consecutive failures, counted once per batch. Each number is the count at which the run halts; the nudge
 * comes one failure earlier. Failures are `identical` if tool, arguments and error class are equal.
 */
export interface FailingConfig {
  /** Identical permanent failures. */
  identical: number
  /** Consecutive failures of any calls, excluding transient failures and unknown tools. */
  any: number
  /** Identical transient failures. */
  transientIdentical: number
  /** Consecutive transient failures of any calls. */
  transientAny: number
  /** Identical policy denials (`ToolError('policy_denied', …)`). */
  policyDenied: number
  /** The reaction to a call that fails again. */
  onRepeat: OnRepeat
  /** How to halt: `pause` pauses the run, `error` ends it in `ERROR`. Defaults to `error`. */
  onHalt: OnHalt
  /** Whether to make one request without tools for a concluding answer before a pause. Defaults to true. */
  lastWords?: boolean
}

const failureKinds = ['failed', 'unknown_tool', 'transient', 'policy_denied'] as const

export type ToolFailureKind = NonNullable<ResultFact['errorKind']>

/** The count that a failure increments. It is a key of `guardrails.failing`. */
export type FailureRule = 'identical' | 'any' | 'transientIdentical' | 'transientAny' | 'policyDenied'

export interface Failure {
  /** A prefix of the call's fingerprint. */
  fingerprint: string
  kind: ToolFailureKind
  count: number
}

/**
 * Failures since the last success. They are counted once per batch because the model reads the results of a batch
 * together.
 */
export interface Failures {
  identical: Failure[]
  /** Number of batches with a permanent failure. */
  any: number
  /** Number of batches with a transient failure. */
  transientAny: number
}

export const noFailures: Failures = { identical: [], any: 0, transientAny: 0 }

/** How a batch changes one count. */
export interface FailureTally {
  rule: FailureRule
  count: number
  calls: CallFact[]
}

/** Maximum number of remembered calls. */
export const mostFailures = 12

export const identicalRule: Record<ToolFailureKind, FailureRule> = {
  failed: 'identical',
  unknown_tool: 'identical',
  transient: 'transientIdentical',
  policy_denied: 'policyDenied',
}

/** The streak that each kind of failure counts toward. Unknown tools count toward none. */
const anyRule: Record<ToolFailureKind, 'any' | 'transientAny' | null> = {
  failed: 'any',
  policy_denied: 'any',
  transient: 'transientAny',
  unknown_tool: null,
}

/**
 * Counts the results of a batch. A success ends every streak, except those of calls that failed in the same batch.
 * Transient failures of a polling batch do not count.
 */
export function countFailures(before: Failures, results: readonly ResultFact[]): [Failures, FailureTally[]] {
  if (results.every((result) => result.ok)) return [noFailures, []]
  const success = results.some((result) => result.ok)
  const after = success ? forgiveSuccesses(before, results) : { ...before }
  const tallies: FailureTally[] = []
  for (const { kind, calls } of groupFailures(results)) {
    for (const call of calls) {
      const fingerprint = shortenFingerprint(call.fingerprint)
      const isSame = (one: Failure) => one.fingerprint === fingerprint && one.kind === kind
      const count = (after.identical.find(isSame)?.count ?? 0) + 1
      const others = after.identical.filter((one) => !isSame(one))
      after.identical = [...others, { fingerprint, kind, count }].slice(-mostFailures)
      tallies.push({ rule: identicalRule[kind], count, calls: [call] })
    }
  }
  if (success) return [after, tallies]
  for (const rule of ['any', 'transientAny'] as const) {
    const calls = groupFailures(results).flatMap((group) => (anyRule[group.kind] === rule ? group.calls : []))
    if (calls.length === 0) continue
    after[rule] += 1
    tallies.push({ rule, count: after[rule], calls })
  }
  return [after, tallies]
}

function forgiveSuccesses(before: Failures, results: readonly ResultFact[]): Failures {
  const unsuccessful = new Set(
    results.filter((result) => !result.ok).map((result) => shortenFingerprint(result.fingerprint)),
  )
  return { ...noFailures, identical: before.identical.filter((one) => unsuccessful.has(one.fingerprint)) }
}

/** Groups failures by kind. Each call occurs once per group. */
function groupFailures(results: readonly ResultFact[]): { kind: ToolFailureKind; calls: ResultFact[] }[] {
  const excused = isPolling(results) ? 'transient' : null
  return failureKinds
    .filter((kind) => kind !== excused)
    .map((kind) => {
      const failed = results.filter((result) => !result.ok && !result.refused && result.errorKind === kind)
      return { kind, calls: [...new Map(failed.map((result) => [result.fingerprint, result])).values()] }
    })
}

interface FailingDue {
  action: 'nudge' | 'block' | 'halt'
  rule: FailureRule
  count: number
  named: NamedCalls
  fingerprints: string[]
}

const advice: Record<FailureRule, (tools: string, count: number) => string> = {
  identical: (tools, count) =>
    `${tools} has failed ${formatTimes(count)} with the same arguments. ` +
    'Read the error, then change the arguments or try another way.',
  any: (_, count) =>
    `Your last ${count} rounds of calls have failed. Find out what is wrong before you call another tool, ` +
    'or tell the user what you cannot do.',
  transientIdentical: (tools, count) =>
    `${tools} has failed ${formatTimes(count)} with a temporary error. ` +
    'Continue without it, or tell the user that it is unavailable.',
  transientAny: (_, count) =>
    `Your last ${count} rounds of calls have failed with temporary errors. ` +
    'Continue without these tools, or tell the user that they are unavailable.',
  policyDenied: (tools) =>
    `${tools} was denied by policy, and the same call will be denied again. ` +
    'Do not repeat it. Find another way, or tell the user that it is not allowed.',
}

const cause: Record<FailureRule, (tools: string, count: number, refused: string) => string> = {
  identical: (tools, count, refused) =>
    `${tools} failed ${formatTimes(count)} with the same arguments${refused}. ` +
    'Check its error, and fix the tool or its arguments.',
  any: (tools, count) =>
    `The last ${count} rounds of calls failed, the last of them ${tools}. Check the tools' errors.`,
  transientIdentical: (tools, count, refused) =>
    `${tools} failed ${formatTimes(count)} with a temporary error${refused}. ` +
    'Check that the service behind it is up, then run again.',
  transientAny: (tools, count) =>
    `The last ${count} rounds of calls failed with temporary errors, the last of them ${tools}. ` +
    'Check that the services behind them are up, then run again.',
  policyDenied: (tools, count, refused) =>
    `${tools} was denied by policy ${formatTimes(count)} with the same arguments${refused}. ` +
    'Permit the call in the tool, or forbid it in the instructions.',
}

/** The nudge for the model, one failure before the halt. */
function formatNudge({ rule, count, named }: FailingDue): string {
  return advice[rule](named.tools, count)
}

/** The result of a refused call. */
function formatRefusal({ rule, count, named }: FailingDue): string {
  const what = rule === 'policyDenied' ? 'was denied by policy' : 'has failed'
  return (
    `Not executed. ${named.tools} ${what} ${formatTimes(count)} with the same arguments. ` +
    'Change the arguments or try another way. If you request it again, the run stops.'
  )
}

function formatHalt({ rule, count, named, fingerprints }: FailingDue, config: FailingConfig): string {
  const refused = fingerprints.length > 0 ? ', was refused and requested again' : ''
  return (
    `${cause[rule](named.tools, count, refused)} ` +
    `To allow more, raise guardrails.failing.${rule} (now ${config[rule]}).`
  )
}

function formatEvidence({ rule, count, named }: FailingDue): string {
  const isStreak = rule === 'any' || rule === 'transientAny'
  return toEvidence(
    isStreak
      ? `${count} failed rounds in a row, last ${named.calls}`
      : `${named.calls} failed ${formatTimes(count)}`,
  )
}

export interface FailingState extends Failures {
  /** Calls refused in this run. */
  refused: string[]
  /** The verdict on the latest fact. */
  due: FailingDue | null
}

/**
 * Counts consecutive failures, both of one call that fails in the same way and of any calls. The nudge comes one
 * failure before the halt. With `onRepeat: 'block'`, a call at its limit is refused instead, but streaks of different
 * calls still halt the run.
 */
export const failing: Guard<FailingState, FailingConfig, 'repeated_failure' | 'policy_denied'> = {
  reasons: ['repeated_failure', 'policy_denied'],
  settings: {
    identical: { from: 1 },
    any: { from: 1 },
    transientIdentical: { from: 1 },
    transientAny: { from: 1 },
    policyDenied: { from: 1 },
    onRepeat,
    onHalt,
    lastWords: 'flag',
  },
  defaults: {
    identical: 3,
    any: 6,
    transientIdentical: 8,
    transientAny: 12,
    policyDenied: 2,
    onRepeat: 'halt',
    onHalt: 'error',
    lastWords: true,
  },
  insteadOf: ['failing', 'sameError', 'unknownTools', 'refused', 'policyDenied', 'transient'],
  initial: { ...noFailures, refused: [], due: null },

  observe(state, fact, config) {
    if (fact.type === 'results') {
      const [failures, tallies] = countFailures(state, fact.results)
      const dues = tallies.flatMap(({ rule, count, calls }) => {
        const action = decideAction(rule, count, config)
        return action ? [{ action, rule, count, named: nameCalls(calls), fingerprints: [] }] : []
      })
      const due = dues.find(({ action }) => action === 'halt') ?? dues[0] ?? null
      return { ...failures, refused: state.refused, due }
    }
    if (fact.type === 'calls' && config.onRepeat === 'block') return refuseCalls(state, fact.calls, config)
    return state.due ? { ...state, due: null } : state
  },

  verdict({ due }, config) {
    if (!due) return ok
    const { action, rule, fingerprints } = due
    const guard = rule === 'policyDenied' ? 'policy_denied' : 'repeated_failure'
    const evidence = formatEvidence(due)
    if (action === 'block') return { action, guard, evidence, message: formatRefusal(due), fingerprints }
    return {
      action,
      guard,
      evidence,
      message: action === 'nudge' ? formatNudge(due) : formatHalt(due, config),
    }
  },

  restore(stored) {
    if (!isRecord(stored)) return null
    const { identical, any, transientAny, refused: refusals, due } = stored
    if (!isListOf(identical, isFailure, mostFailures) || !isCount(any) || !isCount(transientAny)) return null
    if (!isListOf(refusals, isText, mostRefusals) || !isDue(due)) return null
    return { identical, any, transientAny, refused: refusals, due }
  },
}

function decideAction(rule: FailureRule, count: number, config: FailingConfig): 'nudge' | 'halt' | null {
  if (count === config[rule] - 1) return 'nudge'
  const waitsForRefusal = config.onRepeat === 'block' && rule !== 'any' && rule !== 'transientAny'
  return count >= config[rule] && !waitsForRefusal ? 'halt' : null
}

function refuseCalls(state: FailingState, calls: readonly CallFact[], config: FailingConfig): FailingState {
  const callsByFingerprint = new Map(calls.map((call) => [shortenFingerprint(call.fingerprint), call]))
  const spent = state.identical.filter(
    ({ fingerprint, kind, count }) =>
      count >= config[identicalRule[kind]] && callsByFingerprint.has(fingerprint),
  )
  const again = spent.find(({ fingerprint }) => wasRefused(state.refused, fingerprint))
  const one = again ?? spent[0]
  if (!one) return { ...state, due: null }
  const spentFingerprints = [...new Set(spent.map(({ fingerprint }) => fingerprint))]
  const fingerprints = spentFingerprints.flatMap(
    (fingerprint) => callsByFingerprint.get(fingerprint)?.fingerprint ?? [],
  )
  return {
    ...state,
    refused: addRefusals(state.refused, fingerprints),
    due: {
      action: again ? 'halt' : 'block',
      rule: identicalRule[one.kind],
      count: one.count,
      named: nameCalls([callsByFingerprint.get(one.fingerprint)].filter((call) => call !== undefined)),
      fingerprints,
    },
  }
}

const kinds: readonly unknown[] = Object.keys(identicalRule)
const rules: readonly unknown[] = [...Object.values(identicalRule), 'any', 'transientAny']
const actions: readonly unknown[] = ['nudge', 'block', 'halt']

function isFailure(value: unknown): value is Failure {
  return (
    isRecord(value) &&
    isText(value['fingerprint']) &&
    isCount(value['count']) &&
    kinds.includes(value['kind'])
  )
}

function isDue(value: unknown): value is FailingState['due'] {
  if (value === null) return true
  if (!isRecord(value) || !actions.includes(value['action']) || !rules.includes(value['rule'])) return false
  const { count, named: called, fingerprints } = value
  return isCount(count) && isNamedCalls(called) && isListOf(fingerprints, isText, mostFailures)
}
