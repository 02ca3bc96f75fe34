import type { ProgressConfig } from './progress-config.js'
import { fingerprintBatch, keyLength } from './lib/fingerprint.js'
import * as is from './lib/stored.js'
import { addPart, hasReached, type Tally, weighResult } from './progress-steps.js'
import type { CallFact, ResultFact } from './types.js'

/**
 * A remembered call and its outcome, as a tuple because many are stored.
 * - `pair` – the call's key, the shape of its outcome, and the outcome
 * - `times` – how often the call had an outcome of this shape; waiting calls and checks of a change count fractionally
 * - `at` – transcript index of the last message that made the call
 */
export type Pair = readonly [pair: string, times: number, at: number]

function isPair(value: unknown): value is Pair {
  return (
    Array.isArray(value) &&
    value.length === 3 &&
    is.text(value[0]) &&
    is.amount(value[1]) &&
    is.count(value[2])
  )
}

/** Guard state must be small. */
const mostPairs = 64

/** Consecutive batches without news, and the call-result pairs seen in the turn. */
export const stalenessShape = {
  pairs: is.listOf(isPair, mostPairs),
  stale: is.amount,
  /** The repeated batch. Null if the batches differ or if there is no batch. */
  batch: is.nullOr(is.text),
  waits: is.flag,
  /** Transcript index of the last news that may have changed something. Calls after it may have a different result. */
  changedAt: (value: unknown): value is number => typeof value === 'number',
}

export type Staleness = is.Stored<typeof stalenessShape>

export const noStaleness: Staleness = { pairs: [], stale: 0, batch: null, waits: false, changedAt: -1 }

/** Weight of a call that is repeated after a change, probably to check the change. */
const afterChange = 1 / 3

interface SeenResult {
  pair: string
  result: ResultFact
  same: Pair | null
  similar: Pair | null
  /** Whether the progress guard itself refused the call. A refused call is never news. */
  isOwn: boolean
}

/** `results` excludes polls. `at` is the transcript index of the message with the calls. */
export function countStaleness(
  before: Staleness,
  results: readonly ResultFact[],
  at: number,
  config: ProgressConfig,
): [Staleness, Tally[]] {
  // A temporary failure is neither news nor a repetition.
  const lasting = results.filter((result) => result.errorKind !== 'transient')
  const [compared, copies] = groupIdentical(lasting)
  if (compared.size === 0) return [before, []]
  const known = new Map(before.pairs.map((pair) => [pair[0], pair]))
  const seen = [...compared].map(([pair, result]): SeenResult => {
    const isOwn = result.refusedBy === 'progress'
    const same = isOwn ? findPairOfCall(before.pairs, result) : (known.get(pair) ?? null)
    return { pair, result, same, similar: same ?? findSimilarPair(before.pairs, pair), isOwn }
  })
  const isChange = seen.some(({ result, similar }) => similar === null && result.ok && !result.readOnly)
  const changedAt = isChange ? at : before.changedAt
  const calls = seen.map(({ result }) => result)
  const fresh = seen.map((one): Pair => [one.same?.[0] ?? one.pair, countTimes(one, changedAt, config), at])
  const tallies = seen.flatMap((one, index) => tallyCall(one, fresh[index]?.[1] ?? 0, config))
  const others = before.pairs.filter((pair) => !seen.some(({ same }) => same === pair))
  const pairs = [...others, ...fresh].slice(-Math.min(config.memory, mostPairs))
  if (seen.some(({ same }) => same === null)) {
    return [{ pairs, stale: 0, batch: null, waits: false, changedAt }, tallies]
  }
  const weights = seen.map(({ result }) => weighAskedResult(result, config))
  const waits = Math.max(copies, ...weights) < 1
  const parts = seen.map((one, index) => (weights[index] ?? 1) * (isCheck(one, changedAt) ? afterChange : 1))
  // The nudge about work in progress comes immediately. From then on the calls count as waiting, which delays the
  // halt, and they are never refused.
  const isFirst = waits && before.stale < (config.stale?.nudgeAt ?? 0)
  const isNudged = isFirst && calls.some(({ says }) => says === 'under_way')
  const stale = addPart(before.stale, isNudged ? 1 : Math.max(copies, ...parts))
  const id = formatBatchId(calls)
  const batch = before.stale === 0 || before.batch === id ? id : null
  const rule = batch === null ? 'mixed' : 'stale'
  tallies.push({ rule, steps: config[rule], before: before.stale, after: stale, calls })
  return [{ pairs, stale, batch, waits, changedAt }, tallies]
}

/** Resets the state after a poll. Time passes during polls, so earlier calls may be repeated. */
export function resetAfterWait(state: Staleness): Pick<Staleness, 'stale' | 'batch' | 'waits'> {
  return state.stale === 0 ? state : { stale: 0, batch: null, waits: false }
}

export function findStaleBatch(
  { pairs, stale, batch, waits }: Staleness,
  calls: readonly CallFact[],
  config: ProgressConfig,
): 'stale' | 'mixed' | null {
  if (waits || calls.length === 0) return null
  if (hasReached(stale, config.stale?.blockAt) && batch !== null && batch === formatBatchId(calls))
    return 'stale'
  if (!hasReached(stale, config.mixed?.blockAt)) return null
  return calls.every(({ key }) => pairs.some(([pair]) => pair.startsWith(key))) ? 'mixed' : null
}

/** The model may repeat calls that requests now omit (messages `head` up to `from`). */
export function forgetPairs(pairs: Pair[], head: number, from: number): Pair[] {
  const left = pairs.filter(([, , at]) => at < head || at >= from)
  return left.length === pairs.length ? pairs : left
}

const shapeLength = 5

/** Reasons for refusals vary in wording, so they are not compared. */
function formatPair({ key, ok, refused, errorKind, shape, outcome }: ResultFact): string {
  if (refused) return `${key}!`
  if (errorKind === 'policy_denied') return `${key}~`
  return `${key}${ok ? '+' : '-'}${shape.padEnd(shapeLength)}${outcome}`
}

function findSimilarPair(pairs: readonly Pair[], pair: string): Pair | null {
  const start = pair.slice(0, keyLength + 1 + shapeLength)
  return pairs.findLast(([one]) => one.startsWith(start)) ?? null
}

function findPairOfCall(pairs: readonly Pair[], { key }: CallFact): Pair {
  return pairs.findLast(([pair]) => pair.startsWith(key)) ?? [`${key}!`, 0, 0]
}

/** Identical calls with one result count once. `copies` is how many identical calls ran, without refused ones. */
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
    const count = result.refusedBy === 'progress' ? ran.get(result.key) : undefined
    if (count === undefined) different.set(formatPair(result), result)
    else copies = Math.max(copies, count)
  }
  return [different, copies]
}

function formatBatchId(calls: readonly CallFact[]): string {
  return fingerprintBatch([...new Set(calls.map((call) => call.key))]).slice(0, 12)
}

function weighAskedResult(result: ResultFact, config: ProgressConfig): number {
  return result.refusedBy === 'other' ? 2 : weighResult(result, config)
}

function isCheck({ result, similar }: SeenResult, changedAt: number): boolean {
  return similar !== null && !result.refused && result.errorKind !== 'policy_denied' && similar[2] < changedAt
}

function countTimes(one: SeenResult, changedAt: number, config: ProgressConfig): number {
  const { result, similar, isOwn } = one
  if (similar === null) return 1
  // The guard's own refusals contain no information about the result.
  if (isOwn) return similar[1]
  const part = Math.min(1, weighAskedResult(result, config))
  return addPart(similar[1], isCheck(one, changedAt) ? part * afterChange : part)
}

function tallyCall(
  { result, similar, isOwn }: SeenResult,
  after: number,
  { stale, policyDenied }: ProgressConfig,
): Tally[] {
  const count = { before: similar?.[1] ?? 0, after, calls: [result] }
  if (result.errorKind === 'policy_denied') return [{ rule: 'policyDenied', steps: policyDenied, ...count }]
  if (similar === null || isOwn || stale?.nudgeAt == null) return []
  return [{ rule: 'recurring', steps: { nudgeAt: stale.nudgeAt * 3, haltAt: null }, ...count }]
}
