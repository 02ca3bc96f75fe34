import { toEvidence } from '../lib/evidence.js'
import { addRefusals, isPolling, mostRefusals, wasRefused } from './refusals.js'
import { isCount, isListOf, isNamedCalls, isRecord, isText, isTextOrNull } from '../lib/stored.js'
import { type OnHalt, type OnRepeat, onHalt, onRepeat } from '../lib/settings.js'
import { type Fact, type Guard, type Verdict, ok } from '../types.js'
import { type NamedCalls, formatTimes, nameCalls } from '../lib/words.js'

/** Limits on identical consecutive batches. `guardrails.maxRepeatedToolSteps` sets how many of them run. */
export interface RepeatedCallConfig {
  /**
   * When to halt: `next` before the first batch above the limit runs, `reached` right after the last allowed batch.
   * With `onRepeat: 'block'`, the first batch above the limit is refused in both cases.
   */
  haltAt: 'next' | 'reached'
  /**
   * `unchanged` counts successful batches with unchanged results; `all` ignores results. If `failing` is on, `all`
   * counts batches whose calls all succeed.
   */
  counts: 'unchanged' | 'all'
  /** Number of characters of each argument to compare, or null to compare all. Defaults to null. */
  valueChars?: number | null
  /** The reaction to the repeated call. */
  onRepeat: OnRepeat
  /** How to halt: `pause` pauses the run, `error` ends it in `ERROR`. Defaults to `error`. */
  onHalt: OnHalt
  /** Whether to make one request without tools for a concluding answer before a pause. Defaults to true. */
  lastWords?: boolean
}

export interface RepeatedCallState {
  /** The repeated batch, or null. */
  batch: string | null
  /** The results of the repeated batch, as long as they are unchanged. Null before the first success. */
  outcome: string | null
  /** How often the batch has been repeated consecutively. */
  count: number
  /** Batches refused in this run. */
  refused: string[]
  /** The verdict on the latest fact. */
  due: { action: 'nudge' | 'block' | 'halt'; isAfterRefusal: boolean; named: NamedCalls } | null
}

export type RepeatedCallLimits = RepeatedCallConfig & {
  /** How many identical consecutive batches may run. */
  maxRepeatedToolSteps: number
  /** Whether the failing guard handles failures. */
  leavesFailures: boolean
}

const initial: RepeatedCallState = { batch: null, outcome: null, count: 0, refused: [], due: null }

/**
 * Detects identical consecutive batches: the same calls with the same arguments, in any order, that succeed with
 * unchanged results. A nudge follows the last batch that may run. The next identical batch is halted or refused before
 * it runs. A different batch, a changed result or a text turn resets the count. The failing guard handles batches with
 * a failed call.
 */
export const repeatedCall: Guard<RepeatedCallState, RepeatedCallConfig, 'repeated_call', RepeatedCallLimits> =
  {
    reasons: ['repeated_call'],
    settings: {
      haltAt: ['next', 'reached'],
      counts: ['unchanged', 'all'],
      valueChars: { from: 1, isNever: true },
      onRepeat,
      onHalt,
      lastWords: 'flag',
    },
    defaults: {
      haltAt: 'next',
      counts: 'unchanged',
      valueChars: null,
      onRepeat: 'halt',
      onHalt: 'error',
      lastWords: true,
    },
    insteadOf: ['stale'],
    initial,

    observe(state, fact, config) {
      if (fact.type === 'text') return { ...initial, refused: state.refused }
      return fact.type === 'calls' ? observeCalls(state, fact, config) : observeResults(state, fact, config)
    },

    verdict(state, config) {
      if (!state.due) return ok
      return state.due.action === 'nudge'
        ? createNudge(state.due.named, state.count, config)
        : createRefusal(state, config)
    },

    restore(stored) {
      if (!isRecord(stored)) return null
      const { batch, outcome, count, refused: refusals, due } = stored
      if (!isTextOrNull(batch) || !isTextOrNull(outcome) || !isCount(count)) return null
      if (!isListOf(refusals, isText, mostRefusals) || !isDue(due)) return null
      return { batch, outcome, count, refused: refusals, due }
    },
  }

function observeCalls(
  state: RepeatedCallState,
  fact: Extract<Fact, { type: 'calls' }>,
  config: RepeatedCallLimits,
): RepeatedCallState {
  if (isPolling(fact.calls) || fact.batch !== state.batch) return { ...initial, refused: state.refused }
  if (state.count < config.maxRepeatedToolSteps) return { ...state, due: null }
  const blocks = config.onRepeat === 'block' && !wasRefused(state.refused, fact.batch)
  return {
    ...state,
    refused: blocks ? addRefusals(state.refused, [fact.batch]) : state.refused,
    due: { action: blocks ? 'block' : 'halt', isAfterRefusal: true, named: nameCalls(fact.calls) },
  }
}

function observeResults(
  state: RepeatedCallState,
  { batch, outcome, results }: Extract<Fact, { type: 'results' }>,
  config: RepeatedCallLimits,
): RepeatedCallState {
  if (results.every((result) => result.refused)) return { ...state, due: null }
  if (isPolling(results)) return { ...initial, refused: state.refused }
  const streak = batch === state.batch ? state : { ...initial, batch, refused: state.refused }
  const needsSuccess = config.counts === 'unchanged' || config.leavesFailures
  if (needsSuccess && !results.every((result) => result.ok)) return { ...streak, due: null }
  const unchanged = config.counts === 'all' || outcome === streak.outcome
  const count = unchanged ? streak.count + 1 : 1
  const reached = count === config.maxRepeatedToolSteps
  const halts = config.onRepeat === 'halt' && config.haltAt === 'reached'
  return {
    ...streak,
    outcome,
    count,
    due: reached
      ? { action: halts ? 'halt' : 'nudge', isAfterRefusal: false, named: nameCalls(results) }
      : null,
  }
}

function createNudge(
  called: NamedCalls,
  count: number,
  config: RepeatedCallLimits,
): Verdict<'repeated_call'> {
  return {
    action: 'nudge',
    guard: 'repeated_call',
    evidence: formatSeen(called, count),
    message: `${formatWhatModelDid(called, count, config)} ${formatAdvice(called, config)}`,
  }
}

function createRefusal(state: RepeatedCallState, config: RepeatedCallLimits): Verdict<'repeated_call'> {
  if (!state.due) return ok
  const { action, isAfterRefusal, named: called } = state.due
  const { count } = state
  if (action === 'block') {
    return {
      action,
      guard: 'repeated_call',
      evidence: formatSeen(called, count),
      message:
        `Not executed. ${formatWhatModelDid(called, count, config)} ${formatAdvice(called, config)} ` +
        'If you request it again, the run stops.',
      fingerprints: null,
    }
  }
  const what =
    called.number === 1 ? `called ${called.tools}` : `made the same ${called.number} calls (${called.tools})`
  const same = called.number === 1 ? ' with the same arguments' : ''
  const results = config.counts === 'all' ? '' : ' and unchanged results'
  const again = isAfterRefusal ? ', then requested it again, which was not executed' : ''
  return {
    action: 'halt',
    guard: 'repeated_call',
    evidence: formatSeen(called, count),
    message:
      `The model ${what}${same}${results} ${formatTimes(count)} in a row${again}. ` +
      `To allow more, raise guardrails.maxRepeatedToolSteps (now ${config.maxRepeatedToolSteps}); ` +
      'mark a tool that waits for something as polling.',
  }
}

function formatWhatModelDid(called: NamedCalls, count: number, config: RepeatedCallLimits): string {
  const results = config.counts === 'all' ? '' : ` and got the same result${called.number === 1 ? '' : 's'}`
  return called.number === 1
    ? `You have called ${called.tools} with the same arguments ${formatTimes(count)}${results}.`
    : `You have made the same ${called.number} calls (${called.tools}) ${formatTimes(count)}${results}.`
}

function formatAdvice(called: NamedCalls, config: RepeatedCallLimits): string {
  if (config.counts === 'all') return 'Use what you have or try something else.'
  return `Use ${called.number === 1 ? 'that result' : 'those results'} or try something else.`
}

function formatSeen(called: NamedCalls, count: number): string {
  return toEvidence(`${called.calls}, ${formatTimes(count)} in a row`)
}

function isDue(value: unknown): value is RepeatedCallState['due'] {
  if (value === null) return true
  if (!isRecord(value) || typeof value['isAfterRefusal'] !== 'boolean' || !isNamedCalls(value['named']))
    return false
  return value['action'] === 'nudge' || value['action'] === 'block' || value['action'] === 'halt'
}
