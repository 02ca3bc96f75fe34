import { readPath } from '../base/json.js'
import { warnProcess } from '../base/platform.js'
import type { Steps, StepsWithBlock } from '../../../guards/progress-config.js'
import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import type { Problem } from './check-input.js'
import { defaultConfig } from './defaults.js'
import { presets } from './presets.js'

type Row = readonly [path: string, isBeyond: boolean, because: string]

/** Defaults and presets are ignored, because their order is intended. */
export function findUnreachableSettings(input: AgentConfigInput, config: AgentConfig): Problem[] {
  const own = { ...input, guardrails: omitKnownParts(input.guardrails) }
  const rows: Row[] = [...listSteps(config), ...listProgressSteps(config), ...listAmounts(config)]
  return rows.flatMap(([path, isBeyond, because]): Problem[] => {
    if (!isBeyond || read(own, path) === undefined) return []
    const value = read(config, path)
    const shown = typeof value === 'string' ? `'${value}'` : String(value)
    return [{ path, sentence: `${path} (${shown}) has no effect: ${because}.` }]
  })
}

const read = (value: unknown, path: string): unknown => readPath(value, path.split('.'))

/** Counts of at least this size mean "never", because some counts cannot be switched off. */
const never = 1_000

const isOver = (value: unknown, most: number): boolean =>
  typeof value === 'number' && value > most && value < never

function listSteps(config: AgentConfig): Row[] {
  const steps = config.limits.maxSteps ?? Infinity
  // The shortest cycle has two batches.
  const mostPeriods = Math.floor(steps / 2)
  const failing = ['identical', 'any', 'transientIdentical', 'transientAny', 'policyDenied']
  const most: [path: string, most: number][] = [
    ...failing.map((rule): [string, number] => [`guardrails.failing.${rule}`, steps]),
    ['guardrails.maxRepeatedToolSteps', config.guardrails.repeatedCall ? steps : Infinity],
    ['guardrails.repeatedOutput.rounds', steps],
    ['guardrails.cycle.nudgeAt', mostPeriods],
    ['guardrails.cycle.haltAt', mostPeriods],
    // A retry takes another step.
    ['guardrails.maxTokensRecoveries', steps - 1],
    ['guardrails.emptyAnswer.reprompts', steps - 1],
    ['guardrails.emptyAnswer.retries', steps - 1],
    ['completion.maxOutputRepairs', steps - 1],
  ]
  return most.map(([path, count]): Row => [path, isOver(read(config, path), count), endsBefore(config)])
}

function endsBefore({ limits }: AgentConfig): string {
  return `limits.maxSteps (${limits.maxSteps}) ends the run first`
}

function listProgressSteps(config: AgentConfig): Row[] {
  const { progress } = config.guardrails
  if (progress === null) return []
  const steps = config.limits.maxSteps ?? Infinity
  // The largest increment per batch: refused calls count twice, and identical calls count each execution.
  const largest = Math.max(2, progress.stale?.blockAt ?? 0)
  // The first batch always makes progress.
  const repeated = steps > 1 ? (steps - 1) * largest : 0
  const once = ['failing', 'sameError', 'unknownTools', 'refused', 'policyDenied', 'transient'] as const
  return [
    ...(['stale', 'mixed'] as const).map((name) => list(name, progress[name], repeated)),
    ...once.map((name) => list(name, progress[name], steps)),
  ].flat()

  function list(name: string, detector: (Steps & Partial<StepsWithBlock>) | null, most: number): Row[] {
    if (!detector) return []
    const path = `guardrails.progress.${name}`
    const { nudgeAt, blockAt = null, haltAt } = detector
    const isHalting = haltAt !== null && haltAt <= most
    return Object.entries({ nudgeAt, blockAt, haltAt }).map(([key, value]): Row => {
      const isHalted = key !== 'haltAt' && isHalting && value !== null && value >= haltAt
      const because = isHalted ? `the run stops at ${path}.haltAt (${haltAt})` : endsBefore(config)
      return [`${path}.${key}`, isHalted || isOver(value, most), because]
    })
  }
}

function listAmounts({
  limits,
  guardrails,
  retry,
  toolCalls,
  streamIdleMs,
  contentIdleMs,
}: AgentConfig): Row[] {
  const { timeoutMs, tokenBudget, outputTokens, costLimit, onNearBudget } = limits
  const { reserveTokens, reserveCostFraction } = guardrails
  const isLate = (ms: number): boolean => timeoutMs > 0 && ms >= timeoutMs
  const deadline = `limits.timeoutMs (${timeoutMs}) ends the run first`
  const isSilentBefore = contentIdleMs > 0 && streamIdleMs > contentIdleMs
  const concludes = onNearBudget === 'conclude'
  const hasReserve = (tokenBudget > 0 && reserveTokens > 0) || (costLimit > 0 && reserveCostFraction > 0)
  const isAllReserved = tokenBudget > 0 && reserveTokens >= tokenBudget
  const isReached = 'so the budget is almost exhausted from the start'
  return [
    ['toolCalls.timeoutMs', isLate(toolCalls.timeoutMs), deadline],
    ['contentIdleMs', isLate(contentIdleMs), deadline],
    [
      'streamIdleMs',
      isLate(streamIdleMs) || isSilentBefore,
      isLate(streamIdleMs) ? deadline : `contentIdleMs (${contentIdleMs}) ends the response first`,
    ],
    [
      'limits.outputTokens',
      tokenBudget > 0 && outputTokens >= tokenBudget,
      `limits.tokenBudget (${tokenBudget}) also counts them and is reached first`,
    ],
    [
      'guardrails.reserveTokens',
      isAllReserved,
      `it equals or exceeds limits.tokenBudget (${tokenBudget}), ${isReached}`,
    ],
    [
      'guardrails.reserveCostFraction',
      reserveCostFraction >= 1,
      `it equals or exceeds limits.costLimit, ${isReached}`,
    ],
    [
      'limits.onNearBudget',
      concludes && !hasReserve,
      'neither limits.tokenBudget nor limits.costLimit is set with a reserve',
    ],
    [
      'limits.tokenBudget',
      concludes && isAllReserved,
      `guardrails.reserveTokens (${reserveTokens}) equals or exceeds it, so the first request is the last (limits.onNearBudget)`,
    ],
    [
      'retry.baseDelayMs',
      retry.baseDelayMs > retry.maxDelayMs,
      `retry.maxDelayMs (${retry.maxDelayMs}) is less, so every wait takes that long`,
    ],
  ]
}

/** The user's guard settings that differ from the defaults and from all presets. */
function omitKnownParts(settings: AgentConfigInput['guardrails']): object {
  const known = [defaultConfig, ...Object.values(presets)].map(({ guardrails }) => guardrails as object)
  const isKnown = ([key, value]: [string, unknown]): boolean =>
    known.some((guardrails) => JSON.stringify(read(guardrails, key)) === JSON.stringify(value))
  return Object.fromEntries(Object.entries(settings ?? {}).filter((entry) => !isKnown(entry)))
}

const reported = new Set<string>()
/** Limits memory in case an app generates setting values. */
const mostReported = 100

/** Warns once per process about each setting. */
export function warnOfUnreachableSettings(input: AgentConfigInput, config: AgentConfig): void {
  for (const { sentence } of findUnreachableSettings(input, config)) {
    if (reported.has(sentence) || reported.size >= mostReported) continue
    reported.add(sentence)
    warnProcess(sentence, 'unreachable_setting')
  }
}
