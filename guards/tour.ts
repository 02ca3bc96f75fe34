import { isAmount, type Pair } from './news.js'
import { isCount, isListOf } from './lib/stored.js'
import type { ProgressConfig } from './progress-config.js'
import { addPart, toSteps, type Tally } from './tally.js'
import type { ResultFact } from './types.js'

/**
 * Rounds that are longer than what is remembered. Of the pairs that are forgotten some are kept as landmarks, chosen by
 * their own letters: coming by them again, one after the other and by no new one, is going round.
 */
export interface Tour {
  landmarks: Landmark[]
  /** Every so many-th pair may be a landmark: a power of two, which grows as they become too many. */
  every: number
  /** Rounds that were repeated, by the share of landmarks passed, since the last new place that would be one. */
  tour: number
}

/** What is left of a pair: a digest of it, and where in the transcript it came last. */
type Landmark = readonly [place: number, at: number]

export const noTour: Tour = { landmarks: [], every: 1, tour: 0 }

const mostLandmarks = 16

/** Pairs that are no longer remembered one by one. */
export function keepLandmarks(before: Tour, forgotten: readonly Pair[]): Tour {
  const { tour } = before
  if (forgotten.length === 0) return { landmarks: before.landmarks, every: before.every, tour }
  const places = new Map(before.landmarks)
  for (const [id, , at] of forgotten) places.set(hashPlace(id), at)
  let { every } = before
  let landmarks = [...places].filter(([place]) => place % every === 0)
  while (landmarks.length > mostLandmarks) {
    every *= 2
    landmarks = landmarks.filter(([place]) => place % every === 0)
  }
  return { landmarks, every, tour }
}

/** Landmarks that no request shows any more may be passed again. */
export function forgetLandmarks(landmarks: readonly Landmark[], head: number, from: number): Landmark[] {
  return landmarks.filter(([, at]) => at < head || at >= from)
}

/**
 * Counts a batch.
 * @param seen what its results are remembered by, and how they are remembered; null: not one by one any more
 */
export function countTour(
  before: Tour & { pairs: readonly Pair[] },
  seen: readonly { id: string; result: ResultFact; pair: Pair | null }[],
  config: ProgressConfig,
): [tour: number, tallies: Tally[]] {
  const { landmarks, every, pairs } = before
  const passed = seen.filter(({ pair, id }) => pair === null && hashPlace(id) % every === 0)
  if (passed.length === 0) return [before.tour, []]
  const known = new Set(landmarks.map(([place]) => place))
  if (!passed.every(({ id }) => known.has(hashPlace(id)))) return [0, []]
  for (const [id] of pairs) if (hashPlace(id) % every === 0) known.add(hashPlace(id))
  const tour = addPart(before.tour, passed.length / known.size)
  const calls = passed.map(({ result }) => result)
  return [tour, [{ rule: 'tour', before: before.tour, after: tour, steps: toSteps(config.tour), calls }]]
}

function hashPlace(id: string): number {
  let hash = 0
  for (let at = 0; at < id.length; at += 1) hash = Math.imul(hash ^ id.charCodeAt(at), 16_777_619)
  return ((hash ^ (hash >>> 15)) >>> 0) % 0x10_0000
}

export function isTour(value: Record<string, unknown>): boolean {
  const { landmarks, every, tour } = value
  return isListOf(landmarks, isLandmark, mostLandmarks) && isCount(every) && every > 0 && isAmount(tour)
}

function isLandmark(value: unknown): value is Landmark {
  return Array.isArray(value) && value.length === 2 && value.every((one) => isAmount(one))
}
