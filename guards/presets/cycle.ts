import { truncateLine, toEvidence, formatTools } from '../lib/words.js'
import { digest } from '../lib/fingerprint.js'
import { isPolling, shortenFingerprint } from './refusals.js'
import * as is from '../lib/stored.js'
import { type HaltConfig, haltDefaults, haltSettings } from '../lib/settings.js'
import { type Fact, type Guard, ok } from '../types.js'

/** Limits on batches that repeat with a period of 2 to `maxPeriod` and stable results. */
export interface CycleConfig extends HaltConfig {
  /** Maximum period in batches, 2 to 8. */
  maxPeriod: number
  /** Number of whole periods before the nudge. */
  nudgeAt: number
  /** Number of whole periods before the halt. */
  haltAt: number
}

/** Limits the size of the state. */
const longestPeriod = 8

const shape = {
  /** The latest rounds, oldest first, up to the longest period. */
  rounds: is.listOf(is.shape({ batch: is.text, outcome: is.text, tools: is.text }), longestPeriod),
  /** For each period from 2, the number of latest rounds that equal the round one period before. */
  matches: is.listOf(is.count, longestPeriod),
  /** Rounds that were not part of the cycle but did not break it. */
  strangers: is.count,
  due: is.nullOr(is.shape({ action: is.oneOf('nudge', 'halt'), period: is.count, periods: is.count })),
}

export type CycleState = is.Stored<typeof shape>

const initial: CycleState = { rounds: [], matches: [], strangers: 0, due: null }

/**
 * Detects batches that repeat in a cycle (A, B, A, B, …) with stable results. A changed result clears it, as does a
 * successful call outside it that may have changed something. Other calls do not, up to the longest period.
 */
export const cycle: Guard<CycleState, CycleConfig, 'cycle'> = {
  reasons: ['cycle'],
  settings: { maxPeriod: { from: 2, to: 8 }, nudgeAt: { from: 2 }, haltAt: { from: 2 }, ...haltSettings },
  defaults: { maxPeriod: 4, nudgeAt: 2, haltAt: 3, ...haltDefaults },
  insteadOf: ['mixed'],
  initial,

  observe(state, fact, config) {
    if (fact.type !== 'results') return state.due ? { ...state, due: null } : state
    if (fact.results.every((result) => result.refused)) return { ...state, due: null }
    if (isPolling(fact.results)) return initial
    const isStranger =
      hasCycle(state) && state.rounds.every((round) => round.batch !== shortenFingerprint(fact.batch))
    if (!isStranger) return appendRound(state, fact, config)
    const changesNothing = fact.results.every((result) => result.refused || !result.ok || result.readOnly)
    if (changesNothing && state.strangers < state.rounds.length) {
      return { ...state, strangers: state.strangers + 1, due: null }
    }
    return appendRound(initial, fact, config)
  },

  verdict({ due, rounds }, config) {
    if (!due) return ok
    const { action, period, periods } = due
    const round = rounds.slice(-period).map((one) => one.tools)
    const path = [...round, round[0]].join(' → ')
    return {
      action,
      guard: 'cycle',
      evidence: toEvidence(
        `${path}: a cycle of ${period} rounds, repeated ${periods} times with the same results`,
      ),
      message:
        action === 'nudge'
          ? `You are going around in circles (${path}): the same calls returned the same results ${periods} times. ` +
            'Use what you have learned, or try something else.'
          : `The model went around in circles (${path}) ${periods} times with the same results. ` +
            `To allow more, raise guardrails.cycle.haltAt (now ${config.haltAt}).`,
    }
  },

  restore: is.createRestore(shape),
}

function appendRound(state: CycleState, fact: Extract<Fact, { type: 'results' }>, config: CycleConfig) {
  const batch = shortenFingerprint(fact.batch)
  // Digested first, because outcomes can differ at either end.
  const outcome = shortenFingerprint(digest(fact.outcome))
  const maxPeriod = Math.min(config.maxPeriod, longestPeriod)
  const matches: number[] = []
  for (let period = 2; period <= maxPeriod; period += 1) {
    const before = state.rounds.at(-period)
    const equal = before?.batch === batch && before.outcome === outcome
    matches.push(equal ? (state.matches[period - 2] ?? 0) + 1 : 0)
  }
  const tools = truncateLine(formatTools(fact.results), 48)
  const rounds = [...state.rounds, { batch, outcome, tools }].slice(-maxPeriod)
  return { rounds, matches, strangers: 0, due: findDue(rounds, matches, config) }
}

function findDue(
  rounds: CycleState['rounds'],
  matches: readonly number[],
  config: CycleConfig,
): CycleState['due'] {
  let due: CycleState['due'] = null
  for (const [index, matched] of matches.entries()) {
    const period = index + 2
    const periods = matched / period + 1
    if (!isCycle(rounds, period)) continue
    if (periods >= config.haltAt) return { action: 'halt', period, periods: Math.floor(periods) }
    if (periods === config.nudgeAt) due ??= { action: 'nudge', period, periods }
  }
  return due
}

/** Whether there is a cycle of at least two whole periods, which continues after an interruption. */
function hasCycle({ rounds, matches }: CycleState): boolean {
  return matches.some((matched, index) => matched >= index + 2 && isCycle(rounds, index + 2))
}

/** Whether a period contains different batches. Period 1 is excluded because the repeated-call guard handles it. */
function isCycle(rounds: CycleState['rounds'], period: number): boolean {
  return new Set(rounds.slice(-period).map((round) => round.batch)).size > 1
}
