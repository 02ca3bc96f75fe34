import { toEvidence, formatTimes, nameCalls } from '../lib/words.js'
import { fingerprintBatch } from '../lib/fingerprint.js'
import { isPolling } from './refusals.js'
import * as is from '../lib/stored.js'
import { type HaltConfig, haltDefaults, haltSettings } from '../lib/settings.js'
import { type Guard, ok } from '../types.js'

/** Limits on consecutive rounds of successful calls with equal results, regardless of arguments. */
export interface RepeatedOutputConfig extends HaltConfig {
  /** The run halts after this many rounds. */
  rounds: number
  /** Whether to halt even if a tool of the round is not `readOnly`. If false, such a round gets a nudge. */
  strict: boolean
}

const shape = {
  /** The results of the last round. Null if the streak is broken. */
  output: is.nullOr(is.text),
  rounds: is.count,
  due: is.nullOr(is.shape({ action: is.oneOf('nudge', 'halt'), named: is.namedCalls })),
}

export type RepeatedOutputState = is.Stored<typeof shape>

const initial: RepeatedOutputState = { output: null, rounds: 0, due: null }

/**
 * Detects rounds of successful calls with equal results regardless of arguments. If all their tools are `readOnly`, the
 * run halts; others may have changed something, so they cause a nudge. A failed call, a polling batch, a text turn or a
 * different result ends the streak.
 */
export const repeatedOutput: Guard<RepeatedOutputState, RepeatedOutputConfig, 'repeated_output'> = {
  reasons: ['repeated_output'],
  settings: { rounds: { from: 2 }, strict: 'flag', ...haltSettings },
  defaults: { rounds: 4, strict: false, ...haltDefaults },
  initial,

  observe(state, fact, config) {
    if (fact.type === 'text') return initial
    if (fact.type === 'calls') return state.due ? { ...state, due: null } : state
    const results = fact.results.filter((result) => !result.refused)
    if (results.length === 0) return { ...state, due: null }
    if (isPolling(fact.results) || !results.every((result) => result.ok)) return initial
    // Each output counts once, so three empty searches equal one empty search.
    const output = fingerprintBatch([...new Set(results.map((result) => result.digest))])
    const rounds = output === state.output ? state.rounds + 1 : 1
    const halts = config.strict || results.every((result) => result.readOnly)
    const reached = halts ? rounds >= config.rounds : rounds % config.rounds === 0
    return {
      output,
      rounds,
      due: reached ? { action: halts ? 'halt' : 'nudge', named: nameCalls(results) } : null,
    }
  },

  verdict({ due, rounds }, config) {
    if (!due) return ok
    const { action, named: called } = due
    const what = `The last ${rounds} rounds of calls (${called.tools}) returned the same results`
    return {
      action,
      guard: 'repeated_output',
      evidence: toEvidence(`the same results ${formatTimes(rounds)} in a row, last from ${called.calls}`),
      message:
        action === 'nudge'
          ? `${what}. If you expected a change, check whether it happened. Otherwise continue with what you know.`
          : `${what} regardless of the arguments. ` +
            `To allow more, raise guardrails.repeatedOutput.rounds (now ${config.rounds}); ` +
            'mark a tool that waits for something as polling.',
    }
  },

  restore: is.createRestore(shape),
}
