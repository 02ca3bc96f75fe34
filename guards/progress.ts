import { type ProgressConfig, progressDefaults, progressSettings } from './progress-config.js'
import {
  formatProgressHalt,
  formatLastWordsPrompt,
  formatProgressNudge,
  formatProgressEvidence,
  formatProgressRefusal,
  type ProgressDue,
  toSetting,
} from './progress-words.js'
import {
  countStaleness,
  findStaleBatch,
  forgetPairs,
  isStaleness,
  noStaleness,
  resetAfterWait,
  type Staleness,
} from './staleness.js'
import { isCount, isNamedCalls, isRecord, isTextOrNull } from './lib/stored.js'
import { countStreaks, isStreaks, noStreaks, type Streaks } from './streaks.js'
import { decideAction, progressRules, type Tally } from './tally.js'
import { type CallFact, type Fact, type Guard, ok, type ResultFact } from './types.js'
import { nameCalls } from './lib/words.js'

export interface ProgressState extends Staleness, Streaks {
  /** The last nudge, so that the next one has other words. */
  said: string | null
  /** The result of the last fact. */
  due: ProgressDue | null
}

/**
 * Progress is news, which is a call not made before in this turn, or a result not seen before from it. Parts of results that change by
 * themselves are not compared. `ProgressConfig` has the rules.
 */
export const progress: Guard<ProgressState, ProgressConfig, 'no_progress' | 'policy_denied'> = {
  reasons: ['no_progress', 'policy_denied'],
  settings: progressSettings,
  defaults: progressDefaults,
  isOn: true,
  initial: { ...noStaleness, ...noStreaks, said: null, due: null },

  observe(state, fact, config) {
    switch (fact.type) {
      case 'calls':
        return observeCalls(state, fact.calls, config)
      case 'results':
        return observeResults(state, fact, config)
      default:
        return state.due ? { ...state, due: null } : state
    }
  },

  verdict({ due }, config) {
    if (!due) return ok
    const { action } = due
    const rule = toSetting(due)
    const guard = rule === 'policyDenied' ? ('policy_denied' as const) : ('no_progress' as const)
    const evidence = formatProgressEvidence(due)
    if (action === 'block')
      return { action, guard, rule, evidence, message: formatProgressRefusal(due), fingerprints: null }
    if (action === 'nudge') return { action, guard, rule, evidence, message: formatProgressNudge(due) }
    const message = formatProgressHalt(due)
    const onHalt = rule === 'policyDenied' ? 'error' : config.onHalt
    const lastWords = config.lastWords && onHalt === 'pause' ? { lastWords: formatLastWordsPrompt(due) } : {}
    return { action, guard, rule, evidence, message, onHalt, ...lastWords }
  },

  restore(stored) {
    if (!isRecord(stored)) return null
    // Earlier versions have counts of rules that are gone, and lack the last change.
    const { pairs, stale, batch, waits, changedAt = -1, said, due } = stored
    const { failing, unknownTools, refused, transient, tools } = stored
    const staleness = { pairs, stale, batch, waits, changedAt }
    const streaks = { failing, unknownTools, refused, transient, tools }
    if (!isStaleness(staleness) || !isStreaks(streaks) || !isTextOrNull(said)) return null
    return { ...staleness, ...streaks, said, due: isDue(due) ? due : null }
  },

  forget(state, head, from) {
    const pairs = forgetPairs(state.pairs, head, from)
    return pairs === state.pairs ? state : { ...state, pairs }
  },
}

function observeCalls(state: ProgressState, all: readonly CallFact[], config: ProgressConfig): ProgressState {
  const calls = all.filter((call) => !call.polling)
  const rule = findStaleBatch(state, calls, config)
  if (rule === null) return state.due ? { ...state, due: null } : state
  const due: ProgressDue = {
    action: 'block',
    rule,
    count: Math.round(state.stale),
    haltAt: config[rule]?.haltAt ?? null,
    named: nameCalls(calls),
    refused: false,
    wording: 0,
  }
  return { ...state, due }
}

function observeResults(
  state: ProgressState,
  { results: all, at }: Extract<Fact, { type: 'results' }>,
  config: ProgressConfig,
): ProgressState {
  const ended = all.filter((result) => !result.refused || result.refusedBy !== null)
  const results = ended.filter((result) => !result.polling).map(readTransient)
  if (results.length === 0) {
    return ended.length > 0 ? { ...state, ...resetAfterWait(state), due: null } : { ...state, due: null }
  }
  const [staleness, stale] = countStaleness(state, results, at, config)
  const { pairs, stale: row, batch, waits, changedAt } = staleness
  const [streaks, broken] = countStreaks(state, results, { at, changedAt }, config)
  const { failing, unknownTools, refused, transient, tools } = streaks
  const due = findDue([...stale, ...broken], state.said)
  const said = due?.action === 'nudge' ? formatSaid(due) : state.said
  // Key by key: to spread two objects into a third costs as much as all the rest.
  return {
    pairs,
    stale: row,
    batch,
    waits,
    changedAt,
    failing,
    unknownTools,
    refused,
    transient,
    tools,
    said,
    due,
  }
}

/** A result whose words report a temporary failure is one, however the tool returned it. */
function readTransient(result: ResultFact): ResultFact {
  return result.says === 'transient' ? { ...result, ok: false, errorKind: 'transient' } : result
}

/** Halts come before nudges. */
function findDue(tallies: readonly Tally[], said: string | null): ProgressDue | null {
  let best: { tally: Tally; action: 'nudge' | 'halt' } | null = null
  for (const tally of tallies) {
    const action = decideAction(tally)
    if (action === null) continue
    const isFirst =
      best === null ||
      (action === best.action
        ? progressRules.indexOf(tally.rule) < progressRules.indexOf(best.tally.rule)
        : action === 'halt')
    if (isFirst) best = { tally, action }
  }
  if (best === null) return null
  const { rule, after, steps, calls } = best.tally
  const due: ProgressDue = {
    action: best.action,
    rule,
    count: Math.round(after),
    haltAt: steps?.haltAt ?? null,
    named: nameCalls(calls),
    refused: calls.every((call) => call.refusedBy === 'other'),
    wording: 0,
  }
  return formatSaid(due) === said ? { ...due, wording: 1 } : due
}

function formatSaid({ rule, wording }: ProgressDue): string {
  return `${rule} ${wording}`
}

const actions: readonly unknown[] = ['nudge', 'block', 'halt']

function isDue(value: unknown): value is ProgressDue | null {
  if (value === null) return true
  if (!isRecord(value) || !actions.includes(value['action'])) return false
  const { rule, count, haltAt, named: calls, refused, wording } = value
  return (
    (progressRules as readonly unknown[]).includes(rule) &&
    isCount(count) &&
    (haltAt === null || isCount(haltAt)) &&
    isNamedCalls(calls) &&
    isCount(wording) &&
    typeof refused === 'boolean'
  )
}
