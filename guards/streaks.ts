import type { ProgressConfig } from './progress-config.js'
import type { Staleness } from './staleness.js'
import { groupBy } from './lib/json.js'
import { sha256 } from './lib/sha256.js'
import * as is from './lib/stored.js'
import { addPart, hasReached, type Tally, weighFailure } from './progress-steps.js'
import type { ResultFact } from './types.js'

const mostTools = 10

export const streaksShape = {
  failing: is.amount,
  unknownTools: is.count,
  refused: is.count,
  transient: is.count,
  tools: is.listOf(
    is.shape({
      /** The tool's name, or a digest if the name is long. */
      tool: is.text,
      /** The last error, and how often it occurred in a row with different arguments. */
      error: is.text,
      errors: is.amount,
      key: is.text,
      /** Transcript index of the last failure. */
      at: (value: unknown): value is number | undefined => value === undefined || is.amount(value),
    }),
    mostTools,
  ),
}

export type Streaks = is.Stored<typeof streaksShape>
type ToolStreak = Streaks['tools'][number]

export const noStreaks: Streaks = { failing: 0, unknownTools: 0, refused: 0, transient: 0, tools: [] }

/** The weight of a different call with another error after the nudge: the first rows of an import may all be bad. */
const otherFailure = 1 / 6

/** Each tool counts once, because the model reads the results of a batch together. */
export function countStreaks(
  earlier: Streaks & Pick<Staleness, 'pairs'>,
  results: readonly ResultFact[],
  { at, changedAt }: { at: number; changedAt: number },
  config: ProgressConfig,
): [Streaks, Tally[]] {
  const ran = results.filter((result) => !result.refused)
  const isOk = ran.some((result) => result.ok)
  const unknown = ran.filter((result) => result.errorKind === 'unknown_tool')
  const transient = ran.filter((result) => result.errorKind === 'transient')
  const lasting = ran.filter((result) => !result.ok && result.errorKind !== 'transient')
  const byOthers = results.filter(
    (result) => result.refusedBy === 'other' || result.errorKind === 'policy_denied',
  )
  const isOwn = results.every((result) => result.refusedBy === 'progress')
  const isNudged = hasReached(earlier.failing, config.failing?.nudgeAt)
  const weigh = (failure: ResultFact): number =>
    Math.min(weighFailure(failure, false), isNudged && isOther(failure, earlier.pairs) ? otherFailure : 1)
  const counts = {
    failing: isOk ? 0 : addPart(earlier.failing, Math.max(0, ...lasting.map(weigh))),
    unknownTools: unknown.length > 0 ? earlier.unknownTools + 1 : isOk ? 0 : earlier.unknownTools,
    transient: isOk ? 0 : earlier.transient + Math.min(1, transient.length),
    refused: isOwn ? earlier.refused : byOthers.length === results.length ? earlier.refused + 1 : 0,
  }
  const tally = (rule: keyof typeof counts, calls: readonly ResultFact[]): Tally => {
    return { rule, before: earlier[rule], after: counts[rule], steps: config[rule], calls }
  }
  const tallies = [
    tally('unknownTools', unknown),
    tally('transient', transient),
    tally('refused', byOthers),
    tally('failing', lasting),
  ]
  let { tools } = earlier
  for (const [name, uses] of groupBy(ran, (result) => result.name)) {
    const tool = name.length <= 24 ? name : sha256(name).slice(0, 24)
    const calls = uses.filter((use) => use.errorKind !== 'transient')
    const last = calls.at(-1)
    if (last === undefined) continue
    const known = tools.find((one) => one.tool === tool)
    tools = tools.filter((one) => one !== known)
    if (calls.some(({ ok }) => ok)) continue
    const next = countError(known, last, config, { tool, at, changedAt })
    const before = known?.error === next.error ? known.errors : 0
    tallies.push({ rule: 'sameError', before, after: next.errors, steps: config.sameError, calls })
    tools = [...tools, next].slice(-mostTools)
  }
  return [{ ...counts, tools }, tallies]
}

function isOther({ key, outcome }: ResultFact, pairs: Staleness['pairs']): boolean {
  return !pairs.some(([pair]) => pair.startsWith(key) || pair.endsWith(outcome))
}

function countError(
  before: ToolStreak | undefined,
  failure: ResultFact,
  { sameError }: ProgressConfig,
  { tool, at, changedAt }: { tool: string; at: number; changedAt: number },
): ToolStreak {
  const { outcome: error, key } = failure
  if (before?.error !== error) return { tool, error, errors: 1, key, at }
  const count = addPart(before.errors, key === before.key ? 0 : weighFailure(failure, true))
  // A check that fails after each change is normal work, so it causes at most a nudge.
  const isCheck = changedAt > (before.at ?? at)
  const errors = isCheck ? Math.max(before.errors, Math.min(count, sameError?.nudgeAt ?? 0)) : count
  return { tool, error, errors, key, at }
}
