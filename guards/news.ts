import { keyLength } from './lib/fingerprint.js'
import { isCount, isText } from './lib/stored.js'
import type { ResultFact } from './types.js'

/**
 * A call and what came of it, as it is remembered; a tuple, because many are stored.
 * - `pair`: the call's key and its outcome; two such texts are equal when both are
 * - `times`: how often it came; less than one each for those that count for less
 * - `at`: where in the transcript it came last, the index of the message that called
 */
export type Pair = readonly [pair: string, times: number, at: number]

/** How many are remembered at most, whatever the configuration says: guard state is small. */
export const mostPairs = 64

/** What a result is remembered by: who refuses a call may word it anew each time. */
export function formatPair(result: ResultFact): string {
  return `${result.key}${formatEnding(result)}`
}

/** The key of the call in a pair. */
export function getPairKey(pair: string): string {
  return pair.slice(0, keyLength)
}

function formatEnding({ ok, refused, errorKind, outcome }: ResultFact): string {
  if (ok) return `+${outcome}`
  if (refused) return '!'
  return errorKind === 'policy_denied' ? '~' : `-${outcome}`
}

/**
 * The pairs of a batch, remembered: the latest last. And those that are forgotten for it: the ones longest not seen.
 * @param again those of `pairs` that `fresh` replaces
 */
export function rememberPairs(
  pairs: readonly Pair[],
  again: readonly Pair[],
  fresh: readonly Pair[],
  most: number,
): [remembered: Pair[], forgotten: Pair[]] {
  const others = again.length === 0 ? pairs : pairs.filter((pair) => !again.includes(pair))
  const all = [...others, ...fresh]
  const many = all.length - Math.min(most, mostPairs)
  return many > 0 ? [all.slice(many), all.slice(0, many)] : [all, []]
}

/**
 * Results that no request shows any more may be asked for again: what went with the messages of the gap is forgotten.
 */
export function forgetPairs(pairs: readonly Pair[], head: number, from: number): Pair[] {
  return pairs.filter(([, , at]) => at < head || at >= from)
}

export function isPair(value: unknown): value is Pair {
  return (
    Array.isArray(value) && value.length === 3 && isText(value[0]) && isAmount(value[1]) && isCount(value[2])
  )
}

/** A count of which parts may count for less than one. */
export function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
