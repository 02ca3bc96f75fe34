import {
  failingEvidence,
  haltMessage,
  nudgeMessage,
  refusalMessage,
  type FailingDue,
} from './failing-words.js'
import {
  countFailures,
  type FailingConfig,
  type Failure,
  type FailureRule,
  type Failures,
  identicalRule,
  mostFailures,
  noFailures,
} from './failures.js'
import { mostRefusals, refused, short, wasRefused } from './lib/refusals.js'
import { isCount, isListOf, isNamed, isRecord, isText } from './lib/stored.js'
import { onHalt, onRepeat } from './lib/settings.js'
import { type CallFact, type Guard, ok } from './types.js'
import { named } from './lib/words.js'

export interface FailingState extends Failures {
  /** Calls that were refused in this run. */
  refused: string[]
  /** What the last fact led to. */
  due: FailingDue | null
}

/**
 * Failures in a row: of one call in one way, and of any calls. A nudge comes one before the number that halts. With
 * `onRepeat: 'block'` a call that failed that often is refused when it is asked for again; streaks of any calls halt.
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
  insteadOf: ['failing', 'failingTool', 'sameError', 'unknownTools', 'refused', 'policyDenied', 'transient'],
  initial: { ...noFailures, refused: [], due: null },

  observe(state, fact, config) {
    if (fact.type === 'results') {
      const [failures, tallies] = countFailures(state, fact.results)
      const dues = tallies.flatMap(({ rule, count, calls }) => {
        const action = actionAt(rule, count, config)
        return action ? [{ action, rule, count, named: named(calls), fingerprints: [] }] : []
      })
      const due = dues.find(({ action }) => action === 'halt') ?? dues[0] ?? null
      return { ...failures, refused: state.refused, due }
    }
    if (fact.type === 'calls' && config.onRepeat === 'block') return refuse(state, fact.calls, config)
    return state.due ? { ...state, due: null } : state
  },

  verdict({ due }, config) {
    if (!due) return ok
    const { action, rule, fingerprints } = due
    const guard = rule === 'policyDenied' ? 'policy_denied' : 'repeated_failure'
    const evidence = failingEvidence(due)
    if (action === 'block') return { action, guard, evidence, message: refusalMessage(due), fingerprints }
    return {
      action,
      guard,
      evidence,
      message: action === 'nudge' ? nudgeMessage(due) : haltMessage(due, config),
    }
  },

  restore(stored) {
    if (!isRecord(stored)) return null
    const { identical, any, transientAny, refused: refusals, due } = stored
    if (!isListOf(identical, isFailure, mostFailures) || !isCount(any) || !isCount(transientAny)) return null
    if (!isListOf(refusals, isText, mostRefusals) || !isDue(due)) return null
    // Version 1 kept fingerprints whole.
    const remembered = identical.map((one) => ({ ...one, fingerprint: short(one.fingerprint) }))
    return { identical: remembered, any, transientAny, refused: refusals, due }
  },
}

function actionAt(rule: FailureRule, count: number, config: FailingConfig): 'nudge' | 'halt' | null {
  if (count === config[rule] - 1) return 'nudge'
  const waitsForRefusal = config.onRepeat === 'block' && rule !== 'any' && rule !== 'transientAny'
  return count >= config[rule] && !waitsForRefusal ? 'halt' : null
}

function refuse(state: FailingState, calls: readonly CallFact[], config: FailingConfig): FailingState {
  const asked = new Map(calls.map((call) => [short(call.fingerprint), call]))
  const spent = state.identical.filter(
    ({ fingerprint, kind, count }) => count >= config[identicalRule[kind]] && asked.has(fingerprint),
  )
  const again = spent.find(({ fingerprint }) => wasRefused(state.refused, fingerprint))
  const one = again ?? spent[0]
  if (!one) return { ...state, due: null }
  const meant = [...new Set(spent.map(({ fingerprint }) => fingerprint))]
  const fingerprints = meant.flatMap((fingerprint) => asked.get(fingerprint)?.fingerprint ?? [])
  return {
    ...state,
    refused: refused(state.refused, fingerprints),
    due: {
      action: again ? 'halt' : 'block',
      rule: identicalRule[one.kind],
      count: one.count,
      named: named([asked.get(one.fingerprint)].filter((call) => call !== undefined)),
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
  return isCount(count) && isNamed(called) && isListOf(fingerprints, isText, mostFailures)
}
