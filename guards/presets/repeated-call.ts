import { toEvidence, formatTimes, nameCalls } from '../lib/words.js'
import { addRefusals, isPolling, mostRefusals, wasRefused } from './refusals.js'
import * as is from '../lib/stored.js'
import { type HaltConfig, haltDefaults, haltSettings, type OnRepeat, onRepeat } from '../lib/settings.js'
import { type Fact, type Guard, ok } from '../types.js'

/** Limits on identical consecutive batches. `guardrails.maxRepeatedToolSteps` sets how many of them run. */
export interface RepeatedCallConfig extends HaltConfig {
  /**
   * When to halt: `next` before the first batch above the limit runs, `reached` right after the last allowed batch.
   * With `onRepeat: 'block'`, the first batch above the limit is refused in both cases.
   */
  haltAt: 'next' | 'reached'
  /** `unchanged` counts successes with equal results; `all` any batch, or successes if `failing` is on. */
  counts: 'unchanged' | 'all'
  /** Number of characters of each argument to compare, or null to compare all. Defaults to null. */
  valueChars?: number | null
  /** The reaction to the repeated call. */
  onRepeat: OnRepeat
}

const shape = {
  batch: is.nullOr(is.text),
  /** The results of the repeated batch, as long as they are unchanged. Null before the first success. */
  outcome: is.nullOr(is.text),
  count: is.count,
  refused: is.listOf(is.text, mostRefusals),
  due: is.nullOr(
    is.shape({ action: is.oneOf('nudge', 'block', 'halt'), isAfterRefusal: is.flag, named: is.namedCalls }),
  ),
}

export type RepeatedCallState = is.Stored<typeof shape>

export type RepeatedCallLimits = RepeatedCallConfig & {
  maxRepeatedToolSteps: number
  /** Whether the failing guard handles failures. */
  leavesFailures: boolean
}

const initial: RepeatedCallState = { batch: null, outcome: null, count: 0, refused: [], due: null }

/**
 * Detects identical consecutive batches (the same calls and arguments, in any order) that succeed with unchanged
 * results. A nudge follows the last batch that may run. The next one is halted or refused before it runs. Another
 * batch, a changed result or a text turn resets the count. The failing guard handles failed calls.
 */
export const repeatedCall: Guard<RepeatedCallState, RepeatedCallConfig, 'repeated_call', RepeatedCallLimits> =
  {
    reasons: ['repeated_call'],
    settings: {
      haltAt: ['next', 'reached'],
      counts: ['unchanged', 'all'],
      valueChars: { from: 1, isNever: true },
      onRepeat,
      ...haltSettings,
    },
    defaults: { haltAt: 'next', counts: 'unchanged', valueChars: null, onRepeat: 'halt', ...haltDefaults },
    insteadOf: ['stale'],
    initial,

    observe(state, fact, config) {
      if (fact.type === 'text') return { ...initial, refused: state.refused }
      return fact.type === 'calls' ? observeCalls(state, fact, config) : observeResults(state, fact, config)
    },

    verdict({ due, count }, config) {
      if (!due) return ok
      return {
        action: due.action,
        guard: 'repeated_call',
        evidence: toEvidence(`${due.named.calls}, ${formatTimes(count)} in a row`),
        message: formatMessage(due, count, config),
      }
    },

    restore: is.createRestore(shape),
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

function formatMessage(
  { action, isAfterRefusal, named: { number, tools } }: NonNullable<RepeatedCallState['due']>,
  count: number,
  { counts, maxRepeatedToolSteps }: RepeatedCallLimits,
): string {
  const isOne = number === 1
  const what = isOne ? `called ${tools} with the same arguments` : `made the same ${number} calls (${tools})`
  if (action === 'halt') {
    const results = counts === 'all' ? '' : ' and unchanged results'
    const again = isAfterRefusal ? ', then requested it again, which was not executed' : ''
    return (
      `The model ${what}${results} ${formatTimes(count)} in a row${again}. ` +
      `To allow more, raise guardrails.maxRepeatedToolSteps (now ${maxRepeatedToolSteps}); ` +
      'mark a tool that waits for something as polling.'
    )
  }
  const [results, those] = isOne ? ['result', 'that result'] : ['results', 'those results']
  const advice =
    counts === 'all'
      ? '. Use what you have or try something else.'
      : ` and got the same ${results}. Use ${those} or try something else.`
  const nudge = `You have ${what} ${formatTimes(count)}${advice}`
  return action === 'nudge' ? nudge : `Not executed. ${nudge} If you request it again, the run stops.`
}
