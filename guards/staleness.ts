import type { ProgressConfig } from './progress-config.js'
import { fingerprintBatch } from './lib/fingerprint.js'
import { countLikeness, isLikeness, type Likeness, noLikeness } from './likeness.js'
import { isAmount, isPair, getPairKey, mostPairs, type Pair, formatPair, rememberPairs } from './news.js'
import { isListOf, isRecord, isText, isTextOrNull } from './lib/stored.js'
import {
  addPart,
  addPartUpTo,
  saysUnderWay,
  type ProgressRule,
  hasReached,
  type Tally,
  weighResult,
} from './tally.js'
import { countTour, isTour, keepLandmarks, noTour, type Tour } from './tour.js'
import type { CallFact, ResultFact } from './types.js'

/** For how long the turn has had no news, and the pairs that it has seen. */
export interface Staleness extends Likeness, Tour {
  pairs: Pair[]
  /** Batches in a row without news. */
  stale: number
  /** The batch that they all are; null when they differ, or when there are none. */
  batch: string | null
  /** Whether the last of them waited for something. */
  waits: boolean
  /** The last batches, a character each: `0` brought news, `3` none, and those in between counted for less. */
  recent: string
  /** The calls that are repeated beside calls with news. */
  beside: Beside[]
  /** Where in the transcript the last news was. */
  newsAt: number
  /** Where the last news was that may have changed something: after it, the same call is another question. */
  changedAt: number
}

/** A call of the last batch that was no longer new, or will be next time. */
interface Beside {
  pair: string
  /** Batches in a row. */
  times: number
}

export const noStaleness: Staleness = {
  ...noLikeness,
  ...noTour,
  pairs: [],
  stale: 0,
  batch: null,
  waits: false,
  recent: '',
  beside: [],
  newsAt: -1,
  changedAt: -1,
}

/** How many calls of a batch are watched for being repeated beside others. */
const mostBeside = 6

/**
 * Counts a batch whose calls were carried out or refused; those that only poll are not among `results`.
 * @param refusing the rule by which the progress guard itself has refused calls of the batch; null: it has not
 */
export function countStaleness(
  before: Staleness,
  { results, at, refusing }: { results: readonly ResultFact[]; at: number; refusing: ProgressRule | null },
  config: ProgressConfig,
): [Staleness, Tally[]] {
  // A transient failure says nothing about the call.
  const lasting = results.filter((result) => result.errorKind !== 'transient')
  const [telling, copies] = groupIdentical(lasting)
  if (telling.size === 0) return [before, []]
  const known = new Map<string, Pair>()
  for (const pair of before.pairs) if (telling.has(pair[0])) known.set(pair[0], pair)
  const seen: ObservedResult[] = []
  for (const [id, result] of telling) {
    const isOwn = result.refusedBy === 'progress'
    const pair = isOwn ? findPairOfCall(before.pairs, result) : (known.get(id) ?? null)
    seen.push({ id, result, pair, isOwn, part: weighAskedResult(result, config) })
  }
  const again = seen.map(({ pair }) => pair).filter((pair) => pair !== null)
  const isStale = again.length === seen.length
  const changedAt = findLastChange(before, results, at)
  const fresh = seen.map((one) => updatePair(one, { before, isStale, changedAt, refusing, at }, config))
  const [pairs, forgotten] = rememberPairs(before.pairs, again, fresh, config.memory)
  const tallies = countRecurring(seen, fresh, config)
  const calls = seen.map(({ result }) => result)
  const weight = Math.max(copies, ...seen.map((one) => one.part))
  const [likeness, similar] = countLikeness(before, calls, weight, config)
  const [tour, tours] = countTour(before, seen, config)
  tallies.push(...similar, ...tours)
  const { similar: alike, likes } = likeness
  const { landmarks, every } = keepLandmarks(before, forgotten)
  const wider = { similar: alike, likes, landmarks, every, tour, changedAt }
  if (!isStale) {
    const beside = countBeside(before.beside, seen, config, tallies)
    const recent = cutRecent(`${before.recent}0`, config)
    return [{ pairs, stale: 0, batch: null, waits: false, recent, beside, newsAt: at, ...wider }, tallies]
  }
  const part = Math.max(
    copies,
    ...seen.map((one) => one.part * (isLookAtChange(one, changedAt) ? afterNews : 1)),
  )
  // A result that says that work goes on counts at once; a call that waits is never refused, and delays the halt.
  const isUnheard = weight < 1 && before.stale < (config.stale?.nudgeAt ?? 0)
  const says = isUnheard && calls.some((call) => saysUnderWay(call, config))
  const stale = addPart(before.stale, says ? 1 : part)
  const id = formatBatchId(calls)
  const batch = before.stale === 0 || before.batch === id ? id : null
  // A refused call did not run; only the counts in a row include it.
  const counted = seen.some(({ isOwn }) => !isOwn)
  const recent = counted
    ? cutRecent(`${before.recent}${part < 1 ? Math.round(part * 3) : 3}`, config)
    : before.recent
  const row = { before: before.stale, after: stale, calls }
  tallies.push(
    batch === null
      ? { rule: 'mixed', steps: config.mixed, ...row }
      : { rule: 'stale', steps: config.stale, ...row },
    {
      rule: 'mostly',
      before: sumRecent(before.recent),
      after: sumRecent(recent),
      steps: config.mostly,
      calls,
    },
  )
  const { beside, newsAt } = before
  return [{ pairs, stale, batch, waits: weight < 1, recent, beside, newsAt, ...wider }, tallies]
}

/** A batch of polls alone is time passing: what follows may well be asked again. */
export function resetAfterWait(state: Staleness): Staleness {
  return { ...state, stale: 0, batch: null, waits: false, beside: [] }
}

/** The calls of a batch that will bring no news, as far as it is known before they run; null: all of them. */
export function findStaleCalls(
  state: Staleness,
  calls: readonly CallFact[],
  config: ProgressConfig,
): { rule: 'stale' | 'mixed' | 'recurring' | 'beside'; count: number; keys: string[] | null } | null {
  if (state.waits || calls.length === 0) return null
  const { stale, mixed, recurring, beside } = config
  if (
    state.batch !== null &&
    hasReached(state.stale, stale?.blockAt) &&
    state.batch === formatBatchId(calls)
  ) {
    return { rule: 'stale', count: state.stale, keys: null }
  }
  if (hasReached(state.stale, mixed?.blockAt)) {
    const known = new Set(state.pairs.map(([pair]) => getPairKey(pair)))
    if (calls.every(({ key }) => known.has(key))) return { rule: 'mixed', count: state.stale, keys: null }
  }
  const often = state.pairs.filter(([, times]) => hasReached(times, recurring?.blockAt))
  const oftenBeside = state.beside.filter(({ times }) => hasReached(times, beside?.blockAt))
  return (
    findDueCalls(often, 'recurring', calls) ??
    findDueCalls(
      oftenBeside.map(({ pair, times }) => [pair, times]),
      'beside',
      calls,
    )
  )
}

function findDueCalls<Rule extends ProgressRule>(
  often: readonly (readonly [pair: string, times: number, at?: number])[],
  rule: Rule,
  calls: readonly CallFact[],
): { rule: Rule; count: number; keys: string[] } | null {
  const due = often.filter(([pair]) => calls.some(({ key }) => key === getPairKey(pair)))
  return due[0] === undefined ? null : { rule, count: due[0][1], keys: due.map(([pair]) => getPairKey(pair)) }
}

export function isStaleness(value: Record<string, unknown>): boolean {
  return (
    isListOf(value['pairs'], isPair, mostPairs) &&
    isAmount(value['stale']) &&
    isTextOrNull(value['batch']) &&
    typeof value['waits'] === 'boolean' &&
    isText(value['recent']) &&
    value['recent'].length <= longestWindow &&
    isListOf(value['beside'], isBeside, mostBeside) &&
    typeof value['newsAt'] === 'number' &&
    typeof value['changedAt'] === 'number' &&
    isLikeness(value) &&
    isTour(value)
  )
}

const longestWindow = 64

interface ObservedResult {
  /** What it is remembered by. */
  id: string
  result: ResultFact
  /** What is remembered of it; null when it is new. */
  pair: Pair | null
  /** Whether the progress guard itself has refused the call. A refused call never counts as new. */
  isOwn: boolean
  /** How much it counts. */
  part: number
}

function findPairOfCall(pairs: readonly Pair[], { key }: CallFact): Pair {
  return pairs.findLast(([pair]) => getPairKey(pair) === key) ?? [`${key}!`, 0, 0]
}

/**
 * The results of one batch, keyed as they are remembered. Identical calls with the same result count once. Calls that were
 * refused as duplicates are left out; then `copies` is the number of identical calls that ran.
 */
function groupIdentical(
  results: readonly ResultFact[],
): [results: ReadonlyMap<string, ResultFact>, copies: number] {
  const ran = new Map<string, number>()
  if (results.some(({ refusedBy }) => refusedBy === 'progress')) {
    for (const { key, refusedBy } of results) {
      if (refusedBy !== 'progress') ran.set(key, (ran.get(key) ?? 0) + 1)
    }
  }
  let copies = 0
  const different = new Map<string, ResultFact>()
  for (const result of results) {
    const alike = result.refusedBy === 'progress' ? ran.get(result.key) : undefined
    if (alike === undefined) different.set(formatPair(result), result)
    else copies = Math.max(copies, alike)
  }
  return [different, copies]
}

function formatBatchId(calls: readonly CallFact[]): string {
  return fingerprintBatch([...new Set(calls.map((call) => call.key))]).slice(0, 12)
}

/** Repeating a refused call counts double. */
function weighAskedResult(result: ResultFact, config: ProgressConfig): number {
  return result.refusedBy === 'other' ? 2 : weighResult(result, config)
}

/** Something new has come since, or beside it: what is asked again may matter again. */
const afterNews = 1 / 3

/** Where the last news was that may have changed something, this batch counted. */
export function findLastChange(before: Staleness, results: readonly ResultFact[], at: number): number {
  const known = new Set(before.pairs.map(([id]) => id))
  const changes = results.some((result) => result.ok && !result.readOnly && !known.has(formatPair(result)))
  return changes ? at : before.changedAt
}

/** Whether something may have changed since the last run of the call: then the call may check the change. */
function isLookAtChange(
  { pair, result }: Pick<ObservedResult, 'pair' | 'result'>,
  changedAt: number,
): boolean {
  return pair !== null && !result.refused && result.errorKind !== 'policy_denied' && pair[2] < changedAt
}

/**
 * Which results of a batch are looks at changes: where the last change was, and those that came of the same before it.
 */
export function findLooksAtChanges(
  before: Staleness,
  results: readonly ResultFact[],
  at: number,
): LooksAtChanges {
  const changedAt = findLastChange(before, results, at)
  const pairs = new Map(before.pairs.map((pair) => [pair[0], pair]))
  const looks = results.filter((result) => {
    const pair = pairs.get(formatPair(result)) ?? null
    return isLookAtChange({ pair, result }, changedAt)
  })
  return { at, changedAt, looks: new Set(looks) }
}

export interface LooksAtChanges {
  at: number
  changedAt: number
  looks: ReadonlySet<ResultFact>
}

function updatePair(
  one: ObservedResult,
  {
    before,
    isStale,
    changedAt,
    refusing,
    at,
  }: { before: Staleness; isStale: boolean; changedAt: number; refusing: ProgressRule | null; at: number },
  config: ProgressConfig,
): Pair {
  const { id: fresh, pair, result, isOwn, part } = one
  if (pair === null) return [fresh, 1, at]
  const [id, times, lastAt] = pair
  // Refused for another reason, it has not come back.
  if (isOwn && refusing !== 'recurring') return [id, times, at]
  const isAgain = isOwn || result.errorKind === 'policy_denied' || (isStale && before.newsAt <= lastAt)
  if (isAgain) return [id, addPart(times, Math.min(part, 1)), at]
  // However often a change is looked at: that alone leads to no more than a nudge.
  const isLook = isLookAtChange(one, changedAt)
  return [
    id,
    isLook
      ? addPartUpTo(times, part * afterNews, config.recurring?.nudgeAt)
      : addPart(times, part * afterNews),
    at,
  ]
}

function countRecurring(
  seen: readonly ObservedResult[],
  fresh: readonly Pair[],
  config: ProgressConfig,
): Tally[] {
  return seen.flatMap(({ result, pair }, index): Tally[] => {
    const isDenied = result.errorKind === 'policy_denied'
    if (pair === null && !isDenied) return []
    const rule = isDenied ? 'policyDenied' : 'recurring'
    const [before, after] = [pair?.[1] ?? 0, fresh[index]?.[1] ?? 0]
    return [{ rule, steps: config[rule], before, after, calls: [result] }]
  })
}

/** Beside a call that may have changed something, the repetition may check the change. */
const besideWrites = 1 / 6

function countBeside(
  before: readonly Beside[],
  seen: readonly ObservedResult[],
  config: ProgressConfig,
  tallies: Tally[],
): Beside[] {
  if (seen.length < 2) return []
  const writes = seen.some(({ result, pair }) => pair === null && result.ok && !result.readOnly)
  const beside = seen.map(({ id: fresh, result, pair, isOwn, part }): Beside => {
    const id = pair?.[0] ?? fresh
    const count = before.find((one) => one.pair === id)?.times ?? 0
    if (count === 0 || pair === null) return { pair: id, times: 1 }
    const looks = writes && !isOwn && !(result.ok && result.readOnly)
    const isTest = looks && (!result.ok || result.says === 'failing')
    // A test that still fails after each change leads to no more than a nudge.
    const times = isTest
      ? addPartUpTo(count, part * afterNews, config.beside?.nudgeAt)
      : addPart(count, Math.min(part, 1) * (looks ? besideWrites : 1))
    tallies.push({ rule: 'beside', before: count, after: times, steps: config.beside, calls: [result] })
    return { pair: id, times }
  })
  return beside.sort((a, b) => b.times - a.times).slice(0, mostBeside)
}

function cutRecent(recent: string, { mostly }: ProgressConfig): string {
  return mostly === null ? '' : recent.slice(-Math.min(mostly.of, longestWindow))
}

function sumRecent(recent: string): number {
  let thirds = 0
  for (const one of recent) thirds += Number(one)
  return thirds / 3
}

function isBeside(value: unknown): value is Beside {
  return isRecord(value) && isText(value['pair']) && isAmount(value['times'])
}
