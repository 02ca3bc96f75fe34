import { addRefusals, isPolling, mostRefusals, shortenFingerprint, wasRefused } from './refusals.js'
import * as is from '../lib/stored.js'
import { type HaltConfig, haltDefaults, haltSettings, type OnRepeat, onRepeat } from '../lib/settings.js'
import { type CallFact, type Guard, type ResultFact, ok } from '../types.js'
import { formatTimes, nameCalls, toEvidence } from '../lib/words.js'

/**
 * Limits on consecutive failures, counted once per batch. Each number is the count at which the run halts; the nudge
 * comes one failure earlier. Failures are `identical` if tool, arguments and error class are equal.
 */
export interface FailingConfig extends HaltConfig {
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
}

/** For each kind of failure, the count of its call and the streak of any calls. Unknown tools count toward none. */
const rulesByKind = {
  failed: { call: 'identical', streak: 'any' },
  unknown_tool: { call: 'identical', streak: null },
  transient: { call: 'transientIdentical', streak: 'transientAny' },
  policy_denied: { call: 'policyDenied', streak: 'any' },
} as const

type ToolFailureKind = keyof typeof rulesByKind

const failureKinds = Object.keys(rulesByKind) as ToolFailureKind[]

const mostFailures = 12

/** Failures since the last success. Counted once per batch, because the model reads its results together. */
const shape = {
  identical: is.listOf(
    is.shape({ fingerprint: is.text, kind: is.oneOf(...failureKinds), count: is.count }),
    mostFailures,
  ),
  any: is.count,
  transientAny: is.count,
  refused: is.listOf(is.text, mostRefusals),
  due: is.nullOr(
    is.shape({
      action: is.oneOf('nudge', 'block', 'halt'),
      rule: is.oneOf('identical', 'any', 'transientIdentical', 'transientAny', 'policyDenied'),
      count: is.count,
      named: is.namedCalls,
      fingerprints: is.listOf(is.text, mostFailures),
    }),
  ),
}

export type FailingState = is.Stored<typeof shape>
type FailingDue = NonNullable<FailingState['due']>
/** The count that a failure increments. It is a key of `guardrails.failing`. */
type FailureRule = FailingDue['rule']
type Failures = Pick<FailingState, 'identical' | 'any' | 'transientAny'>

const noFailures: Failures = { identical: [], any: 0, transientAny: 0 }

interface FailureTally {
  rule: FailureRule
  count: number
  calls: CallFact[]
}

/** A success ends every streak except those of calls that failed in the same batch. Failed polls do not count. */
function countFailures(before: Failures, results: readonly ResultFact[]): [Failures, FailureTally[]] {
  if (results.every((result) => result.ok)) return [noFailures, []]
  const success = results.some((result) => result.ok)
  const after = success ? forgiveSuccesses(before, results) : { ...before }
  const groups = groupFailures(results)
  const tallies: FailureTally[] = []
  for (const { kind, calls } of groups) {
    for (const call of calls) {
      const fingerprint = shortenFingerprint(call.fingerprint)
      const isSame = (one: Failures['identical'][number]) =>
        one.fingerprint === fingerprint && one.kind === kind
      const count = (after.identical.find(isSame)?.count ?? 0) + 1
      const others = after.identical.filter((one) => !isSame(one))
      after.identical = [...others, { fingerprint, kind, count }].slice(-mostFailures)
      tallies.push({ rule: rulesByKind[kind].call, count, calls: [call] })
    }
  }
  if (success) return [after, tallies]
  for (const rule of ['any', 'transientAny'] as const) {
    const calls = groups.flatMap((group) => (rulesByKind[group.kind].streak === rule ? group.calls : []))
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

function groupFailures(results: readonly ResultFact[]): { kind: ToolFailureKind; calls: ResultFact[] }[] {
  const excused = isPolling(results) ? 'transient' : null
  return failureKinds
    .filter((kind) => kind !== excused)
    .map((kind) => {
      const failed = results.filter((result) => !result.ok && !result.refused && result.errorKind === kind)
      return { kind, calls: [...new Map(failed.map((result) => [result.fingerprint, result])).values()] }
    })
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

function formatMessage({ action, rule, count, named, fingerprints }: FailingDue, config: FailingConfig) {
  if (action === 'nudge') return advice[rule](named.tools, count)
  if (action === 'block') {
    const what = rule === 'policyDenied' ? 'was denied by policy' : 'has failed'
    return (
      `Not executed. ${named.tools} ${what} ${formatTimes(count)} with the same arguments. ` +
      'Change the arguments or try another way. If you request it again, the run stops.'
    )
  }
  const refused = fingerprints.length > 0 ? ', was refused and requested again' : ''
  return (
    `${cause[rule](named.tools, count, refused)} ` +
    `To allow more, raise guardrails.failing.${rule} (now ${config[rule]}).`
  )
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
    ...haltSettings,
  },
  defaults: {
    identical: 3,
    any: 6,
    transientIdentical: 8,
    transientAny: 12,
    policyDenied: 2,
    onRepeat: 'halt',
    ...haltDefaults,
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
    const { action, rule, count, named, fingerprints } = due
    return {
      action,
      guard: rule === 'policyDenied' ? 'policy_denied' : 'repeated_failure',
      evidence: toEvidence(
        isStreak(rule)
          ? `${count} failed rounds in a row, last ${named.calls}`
          : `${named.calls} failed ${formatTimes(count)}`,
      ),
      message: formatMessage(due, config),
      ...(action === 'block' && { fingerprints }),
    }
  },

  restore: is.createRestore(shape),
}

function isStreak(rule: FailureRule): boolean {
  return rule === 'any' || rule === 'transientAny'
}

function decideAction(rule: FailureRule, count: number, config: FailingConfig): 'nudge' | 'halt' | null {
  if (count === config[rule] - 1) return 'nudge'
  const waitsForRefusal = config.onRepeat === 'block' && !isStreak(rule)
  return count >= config[rule] && !waitsForRefusal ? 'halt' : null
}

function refuseCalls(state: FailingState, calls: readonly CallFact[], config: FailingConfig): FailingState {
  const callsByFingerprint = new Map(calls.map((call) => [shortenFingerprint(call.fingerprint), call]))
  const spent = state.identical.filter(
    ({ fingerprint, kind, count }) =>
      count >= config[rulesByKind[kind].call] && callsByFingerprint.has(fingerprint),
  )
  const again = spent.find(({ fingerprint }) => wasRefused(state.refused, fingerprint))
  const one = again ?? spent[0]
  if (!one) return { ...state, due: null }
  const refused = [...new Set(spent.map(({ fingerprint }) => fingerprint))].flatMap(
    (fingerprint) => callsByFingerprint.get(fingerprint) ?? [],
  )
  const fingerprints = refused.map(({ fingerprint }) => fingerprint)
  return {
    ...state,
    refused: addRefusals(state.refused, fingerprints),
    due: {
      action: again ? 'halt' : 'block',
      rule: rulesByKind[one.kind].call,
      count: one.count,
      named: nameCalls(refused.filter(({ fingerprint }) => fingerprint.startsWith(one.fingerprint))),
      fingerprints,
    },
  }
}
