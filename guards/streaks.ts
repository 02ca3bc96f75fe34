import type { ProgressConfig, Steps } from './progress-config.js'
import { isAmount } from './news.js'
import type { LooksAtChanges } from './staleness.js'
import { sha256 } from './lib/sha256.js'
import { isCount, isListOf, isRecord, isText } from './lib/stored.js'
import { weighFailure, addPart, addPartUpTo, type Tally, weighResult } from './tally.js'
import type { ResultFact } from './types.js'

/** Failed batches in a row, and the streaks of each tool. */
export interface Streaks {
  failing: number
  unknownTools: number
  refused: number
  transient: number
  /** Those used last are last. */
  tools: ToolStreaks[]
}

interface ToolStreaks {
  /** The name, or its digest when it is long. */
  tool: string
  /** The last output, how often in a row it came, and for which call last. */
  output: string
  outputs: number
  key: string
  /** The digest of that call's arguments without numbers; empty when it was not asked for. */
  shape: string
  /** Failures in a row; the last error, how often in a row it came for other arguments. */
  failed: number
  error: string
  errors: number
  /** Where in the transcript it failed last. */
  at?: number
}

export const noStreaks: Streaks = { failing: 0, unknownTools: 0, refused: 0, transient: 0, tools: [] }

/** How many tools are remembered. */
const mostTools = 10

/**
 * Counts a batch; calls that only poll are not among `results`. The model learns of a batch at once: so each tool
 * counts once.
 */
export function countStreaks(
  before: Streaks,
  results: readonly ResultFact[],
  changes: LooksAtChanges,
  config: ProgressConfig,
): [Streaks, Tally[]] {
  const ran = results.filter((result) => !result.refused)
  const some = (kind: ResultFact['errorKind']) => ran.filter((result) => result.errorKind === kind)
  const isOk = ran.some((result) => result.ok)
  const lasting = ran.filter((result) => !result.ok && result.errorKind !== 'transient')
  const othersRefused = results.filter(
    (result) => result.refusedBy === 'other' || result.errorKind === 'policy_denied',
  )
  const own = results.every((result) => result.refusedBy === 'progress')
  const counts = {
    failing: isOk ? 0 : addPart(before.failing, weighFailures(lasting)),
    unknownTools: advanceStreak(before.unknownTools, some('unknown_tool').length > 0, isOk),
    transient: advanceStreak(before.transient, some('transient').length > 0 && !isOk, isOk),
    refused: own ? before.refused : othersRefused.length === results.length ? before.refused + 1 : 0,
  }
  const tallies: Tally[] = []
  const tally = (
    rule: 'failing' | 'unknownTools' | 'refused' | 'transient',
    calls: readonly ResultFact[],
  ) => {
    const steps: Steps | null = config[rule]
    if (counts[rule] > before[rule])
      tallies.push({ rule, before: before[rule], after: counts[rule], steps, calls })
  }
  tally('unknownTools', some('unknown_tool'))
  tally('transient', some('transient'))
  tally('refused', othersRefused)
  const tools = countTools(before.tools, ran, { config, changes }, tallies)
  tally('failing', lasting)
  const { failing, unknownTools, transient, refused } = counts
  return [{ failing, unknownTools, transient, refused, tools }, tallies]
}

/** The failure of a batch that counts most. */
function weighFailures(failures: readonly ResultFact[]): number {
  return failures.reduce((most, failure) => Math.max(most, weighFailure(failure, false)), 0)
}

function advanceStreak(count: number, happens: boolean, isOver: boolean): number {
  if (happens) return count + 1
  return isOver ? 0 : count
}

interface StreakScope {
  config: ProgressConfig
  changes: LooksAtChanges
}

function countTools(
  before: readonly ToolStreaks[],
  ran: readonly ResultFact[],
  told: StreakScope,
  tallies: Tally[],
): ToolStreaks[] {
  let tools = [...before]
  for (const [name, results] of groupByTool(ran)) {
    const tool = name.length <= 24 ? name : sha256(name).slice(0, 24)
    const known = before.find((one) => one.tool === tool) ?? { ...noToolStreaks, tool }
    const [next, said] = countTool(known, results, told)
    tallies.push(...said)
    tools = [...tools.filter((one) => one.tool !== tool), next]
  }
  return tools.slice(-mostTools)
}

const noToolStreaks = {
  tool: '',
  output: '',
  outputs: 0,
  key: '',
  shape: '',
  failed: 0,
  error: '',
  errors: 0,
}

function countTool(
  before: ToolStreaks,
  results: readonly ResultFact[],
  told: StreakScope,
): [ToolStreaks, Tally[]] {
  const { config } = told
  const oks = results.filter((result) => result.ok)
  const failures = results.filter((result) => !result.ok && result.errorKind !== 'transient')
  const last = oks.at(-1) ?? failures.at(-1)
  if (last === undefined) return [before, []]
  if (!last.ok) return countFailure(before, last, told, failures)
  const isSame = oks.every((result) => result.outcome === oks[0]?.outcome) && last.outcome === before.output
  const { tool } = before
  const { outcome: output, key } = last
  if (!isSame) return [{ ...noToolStreaks, tool, output, outputs: 1, key }, []]
  const shape = digestShape(last)
  const isOther = oks.some((result) => result.key !== before.key)
  const isCounting = shape !== '' && shape === before.shape
  const part = isOther ? weighResult(last, config) * (isCounting ? 1 : weighVaried(last, config)) : 0
  const outputs =
    isLong(last, config) && !(isCounting && last.readOnly)
      ? addPartUpTo(before.outputs, part, config.sameOutput?.long.nudgeAt)
      : addPart(before.outputs, part)
  const count = { before: before.outputs, after: outputs, calls: oks }
  const next = { ...noToolStreaks, tool, output, outputs, key, shape }
  return [next, [{ rule: 'sameOutput', ...findSteps(last, config), ...count }]]
}

/**
 * Arguments that differ in numbers alone have one shape. Those without a number, or too long to be shown, have none.
 */
function digestShape({ shown }: ResultFact): string {
  return shown.endsWith('…') || !/\d/.test(shown) ? '' : sha256(shown.replaceAll(/\d+/g, '0')).slice(0, 6)
}

/** Many a tool that changes something says no more than `ok`: other words in its arguments are other work. */
function weighVaried(result: ResultFact, config: ProgressConfig): number {
  const { sameOutput } = config
  return sameOutput !== null && !result.readOnly && !isLong(result, config) ? sameOutput.varied : 1
}

function isLong({ size }: ResultFact, { sameOutput }: ProgressConfig): boolean {
  return sameOutput !== null && size >= sameOutput.longChars
}

function countFailure(
  before: ToolStreaks,
  failure: ResultFact,
  { config, changes: { at, changedAt, looks } }: StreakScope,
  calls: readonly ResultFact[],
): [ToolStreaks, Tally[]] {
  const { outcome: error, key } = failure
  const isSame = error === before.error
  const isOther = key !== before.key
  // A test that fails after each change is how the changes are made: that alone leads to no more than a nudge.
  const isTest = looks.has(failure) || changedAt > (before.at ?? at)
  const add = (count: number, part: number, steps: Steps | null) =>
    isTest ? addPartUpTo(count, part, steps?.nudgeAt) : addPart(count, part)
  const errors = isSame ? add(before.errors, isOther ? weighFailure(failure, true) : 0, config.sameError) : 1
  const failed = add(before.failed, isOther ? weighFailure(failure, false) : 1, config.failingTool)
  return [
    { ...before, output: '', outputs: 0, key, failed, error, errors, at },
    [
      {
        rule: 'sameError',
        before: isSame ? before.errors : 0,
        after: errors,
        steps: config.sameError,
        calls,
      },
      { rule: 'failingTool', before: before.failed, after: failed, steps: config.failingTool, calls },
    ],
  ]
}

function findSteps(result: ResultFact, config: ProgressConfig): Pick<Tally, 'steps' | 'setting'> {
  const { sameOutput } = config
  if (sameOutput === null) return { steps: null }
  const kind = isLong(result, config) ? 'long' : result.readOnly ? 'short' : 'shortWrites'
  return { steps: sameOutput[kind], setting: `sameOutput.${kind}` }
}

function groupByTool(results: readonly ResultFact[]): Map<string, ResultFact[]> {
  const groups = new Map<string, ResultFact[]>()
  for (const result of results) {
    const group = groups.get(result.name)
    if (group) group.push(result)
    else groups.set(result.name, [result])
  }
  return groups
}

export function isStreaks(value: Record<string, unknown>): boolean {
  return (
    isAmount(value['failing']) &&
    ['unknownTools', 'refused', 'transient'].every((name) => isCount(value[name])) &&
    isListOf(value['tools'], isToolStreaks, mostTools)
  )
}

function isToolStreaks(value: unknown): value is ToolStreaks {
  return (
    isRecord(value) &&
    ['tool', 'output', 'key', 'shape', 'error'].every((name) => isText(value[name])) &&
    ['outputs', 'failed', 'errors'].every((name) => isAmount(value[name])) &&
    (value['at'] === undefined || isAmount(value['at']))
  )
}
