import { type ProgressConfig, progressDefaults, progressSettings } from './progress-config.js'
import { noLikeness } from './likeness.js'
import { forgetPairs } from './news.js'
import {
  formatProgressHalt,
  formatLastWordsPrompt,
  formatProgressNudge,
  formatProgressEvidence,
  formatProgressRefusal,
  type ProgressDue,
} from './progress-words.js'
import {
  resetAfterWait,
  countStaleness,
  findStaleCalls,
  isStaleness,
  findLooksAtChanges,
  noStaleness,
  type Staleness,
} from './staleness.js'
import { isCount, isListOf, isNamedCalls, isRecord, isText, isTextOrNull } from './lib/stored.js'
import { countStreaks, isStreaks, noStreaks, type Streaks } from './streaks.js'
import { decideAction, type ProgressRule, type Tally } from './tally.js'
import { forgetLandmarks, noTour } from './tour.js'
import { type CallFact, type Fact, type Guard, ok } from './types.js'
import { nameCalls } from './lib/words.js'

export interface ProgressState extends Staleness, Streaks {
  /** The last nudge, so that none is said twice in a row. */
  said: string | null
  /** What the last fact led to. */
  due: ProgressDue | null
}

/** How many calls are refused at once by name: their keys are part of the state. */
const mostKeys = 24

/**
 * Progress is news: a call not made before in this turn, or a result not seen before from it. Results are compared
 * without what changes by itself. See `ProgressConfig` for the ways of making none that are told apart.
 */
export const progress: Guard<ProgressState, ProgressConfig, 'no_progress' | 'policy_denied'> = {
  reasons: ['no_progress', 'policy_denied'],
  settings: progressSettings,
  defaults: progressDefaults,
  isOn: true,
  initial: { ...noStaleness, ...noStreaks, said: null, due: null },

  observe(given, fact, config) {
    const state = withMissingFields(given)
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
    const { action, rule } = due
    const guard = rule === 'policyDenied' ? ('policy_denied' as const) : ('no_progress' as const)
    const evidence = formatProgressEvidence(due)
    if (action === 'block')
      return { action, guard, rule, evidence, message: formatProgressRefusal(due), fingerprints: due.keys }
    if (action === 'nudge') return { action, guard, rule, evidence, message: formatProgressNudge(due) }
    const message = formatProgressHalt(due)
    const onHalt = rule === 'policyDenied' ? 'error' : config.onHalt
    const lastWords = config.lastWords && onHalt === 'pause' ? { lastWords: formatLastWordsPrompt(due) } : {}
    return { action, guard, rule, evidence, message, onHalt, ...lastWords }
  },

  restore(stored) {
    if (!isRecord(stored)) return null
    const state = withMissingFields(stored)
    if (!isStaleness(state) || !isStreaks(state)) return null
    const { said, due } = state
    if (!isTextOrNull(said) || !isDue(due)) return null
    return state as unknown as ProgressState
  },

  // What was learned from them may be asked for again.
  forget(state, head, from) {
    const { pairs, landmarks } = withMissingFields(state)
    const [left, leftLandmarks] = [forgetPairs(pairs, head, from), forgetLandmarks(landmarks, head, from)]
    if (left.length === pairs.length && leftLandmarks.length === landmarks.length) return state
    return { ...state, pairs: left, landmarks: leftLandmarks }
  },
}

/** What an older version of this guard has stored lacks what this one counts besides. */
function withMissingFields<State extends object>(state: State): State & typeof unknownBefore {
  return 'likes' in state ? (state as State & typeof unknownBefore) : { ...unknownBefore, ...state }
}

const unknownBefore = { ...noLikeness, ...noTour, changedAt: -1 }

function observeCalls(state: ProgressState, all: readonly CallFact[], config: ProgressConfig): ProgressState {
  const calls = all.filter((call) => !call.polling)
  const again = findStaleCalls(state, calls, config)
  if (again === null) return state.due ? { ...state, due: null } : state
  const { rule, count, keys } = again
  const meant = calls.filter((call) => keys === null || keys.includes(call.key))
  const due: ProgressDue = {
    action: 'block',
    rule,
    setting: rule,
    count: Math.round(count),
    haltAt: config[rule]?.haltAt ?? null,
    named: nameCalls(meant),
    keys: keys?.slice(0, mostKeys) ?? null,
    refused: false,
    wording: 0,
  }
  return { ...state, due }
}

function observeResults(
  state: ProgressState,
  fact: Extract<Fact, { type: 'results' }>,
  config: ProgressConfig,
): ProgressState {
  const ended = fact.results.filter((result) => !result.refused || result.refusedBy !== null)
  const results = ended.filter((result) => !result.polling)
  if (results.length === 0) {
    return ended.length > 0 ? { ...state, ...resetAfterWait(state), due: null } : { ...state, due: null }
  }
  const [streaks, broken] = countStreaks(state, results, findLooksAtChanges(state, results, fact.at), config)
  const refusing = state.due?.action === 'block' ? state.due.rule : null
  const [staleness, stale] = countStaleness(state, { results, at: fact.at, refusing }, config)
  const due = findDue([...stale, ...broken], state.said)
  const said = due?.action === 'nudge' ? formatSaid(due) : state.said
  // One by one: to spread two objects into a third costs as much as all the rest.
  const { pairs, stale: row, batch, waits, recent, beside, newsAt, changedAt } = staleness
  const { similar, likes, landmarks, every, tour } = staleness
  const { failing, unknownTools, refused, transient, tools } = streaks
  return {
    pairs,
    stale: row,
    batch,
    waits,
    recent,
    beside,
    newsAt,
    changedAt,
    similar,
    likes,
    landmarks,
    every,
    tour,
    failing,
    unknownTools,
    refused,
    transient,
    tools,
    said,
    due,
  }
}

/** Halts before nudges, and among equals the rule that knows most about the cause. */
const order: readonly ProgressRule[] = [
  'policyDenied',
  'unknownTools',
  'transient',
  'refused',
  'sameError',
  'stale',
  'mixed',
  'beside',
  'failing',
  'failingTool',
  'sameOutput',
  'recurring',
  'mostly',
  'tour',
  'similar',
]

function findDue(tallies: readonly Tally[], said: string | null): ProgressDue | null {
  let best: { tally: Tally; action: 'nudge' | 'halt' } | null = null
  for (const tally of tallies) {
    const action = decideAction(tally)
    if (action === null) continue
    const isWeightier = action === 'halt' && best?.action === 'nudge'
    const isEqual = best === null || action === best.action
    if (
      isWeightier ||
      best === null ||
      (isEqual && order.indexOf(tally.rule) < order.indexOf(best.tally.rule))
    )
      best = { tally, action }
  }
  if (best === null) return null
  const { rule, setting = rule, after, steps, calls } = best.tally
  const due: ProgressDue = {
    action: best.action,
    rule,
    setting,
    count: Math.round(after),
    haltAt: steps?.haltAt ?? null,
    named: nameCalls(calls),
    keys: null,
    refused: calls.every((call) => call.refusedBy === 'other'),
    wording: 0,
  }
  return formatSaid(due) === said ? { ...due, wording: 1 } : due
}

function formatSaid({ rule, wording }: ProgressDue): string {
  return `${rule} ${wording}`
}

const actions: readonly unknown[] = ['nudge', 'block', 'halt']

function isDue(value: unknown): value is ProgressState['due'] {
  if (value === null) return true
  if (!isRecord(value) || !actions.includes(value['action'])) return false
  const { rule, setting, count, haltAt, named: calls, keys, refused, wording } = value
  if (
    !(order as readonly unknown[]).includes(rule) ||
    !isCount(count) ||
    !isNamedCalls(calls) ||
    !isCount(wording) ||
    typeof refused !== 'boolean'
  )
    return false
  if (!isText(setting) || !(haltAt === null || isCount(haltAt))) return false
  return keys === null || isListOf(keys, isText, mostKeys)
}
