import type { ProgressConfig } from './progress-config.js'
import { isAmount } from './news.js'
import { isListOf, isText } from './lib/stored.js'
import { addPart, toSteps, type Tally } from './tally.js'
import type { ResultFact } from './types.js'

/** How long a turn has asked the same and got answers that differ in numbers, references and order alone. */
export interface Likeness {
  /** Batches in a row. */
  similar: number
  /** The latest calls, each with what its answer is like. */
  likes: string[]
}

export const noLikeness: Likeness = { similar: 0, likes: [] }

/** How many are remembered: the loops of this kind are short. */
const mostLikes = 8

/** What an answer counts for with other numbers, or of a tool that may change things: then it may be progress. */
const perhapsProgress = 1 / 3

/** What an answer with new words takes back: references of letters alone look like words now and then. */
const newWords = 4

/**
 * Counts a batch. A call that was not made among the latest ones begins anew.
 * @param part how much the batch counts
 */
export function countLikeness(
  before: Likeness,
  results: readonly ResultFact[],
  part: number,
  config: ProgressConfig,
): [Likeness, Tally[]] {
  // What this guard has refused brought no answer.
  if (results.some(({ refusedBy }) => refusedBy === 'progress')) {
    return [{ similar: before.similar, likes: before.likes }, []]
  }
  const likes = [...new Set(results.map(formatLike))]
  const known = new Set(before.likes)
  const calls = new Set(before.likes.map((like) => like.slice(0, callLength)))
  const isKnown = results.every(({ alike }) => calls.has(alike.slice(0, callLength)))
  const isSame = likes.every((like) => known.has(like))
  const isLike = isSame || results.every((result) => result.readOnly && isAmong(before.likes, result))
  const isSure = isSame && results.every(({ readOnly }) => readOnly)
  const similar =
    isKnown && isLike
      ? addPart(before.similar, isSure ? part : part * perhapsProgress)
      : isKnown
        ? Math.max(0, before.similar - newWords)
        : 0
  const others = before.likes.filter((like) => !likes.includes(like))
  return [
    { similar, likes: [...others, ...likes].slice(-mostLikes) },
    [
      {
        rule: 'similar',
        before: before.similar,
        after: similar,
        steps: toSteps(config.similar),
        calls: results,
      },
    ],
  ]
}

/** Characters that tell calls apart here, and those that tell words and numbers apart: a few of each are remembered. */
const [callLength, partLength] = [6, 4]

function formatLike(result: ResultFact): string {
  const { numbers = '' } = result
  return `${formatLikeWords(result)}${numbers.slice(-partLength)}`
}

function formatLikeWords({ alike, ok, words = '' }: ResultFact): string {
  return `${alike.slice(0, callLength)}${ok ? '+' : '-'}${words.slice(-partLength).padStart(partLength)}`
}

/** A call that may change something may have counted what it did; what only reads has not. */
function isAmong(likes: readonly string[], result: ResultFact): boolean {
  const words = formatLikeWords(result)
  return likes.some((like) => like.startsWith(words))
}

export function isLikeness(value: Record<string, unknown>): boolean {
  return isAmount(value['similar']) && isListOf(value['likes'], isText, mostLikes)
}
