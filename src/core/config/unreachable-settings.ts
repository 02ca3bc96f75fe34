import { warnProcess } from '../base/platform.js'
import type { Steps, StepsWithBlock } from '../../../guards/progress-config.js'
import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import type { Problem } from './check-input.js'
import { defaultConfig } from './defaults.js'
import { presets } from './presets.js'

/** Defaults and presets are ignored, because their order is intended. */
export function findUnreachableSettings(input: AgentConfigInput, config: AgentConfig): Problem[] {
  const own = { ...input, guardrails: omitKnownParts(input.guardrails) }
  return [...listSteps(config), ...listProgressSteps(config), ...listAmounts(config)].flatMap(
    ({ path, value, isBeyond, because }): Problem[] => {
      if (!isBeyond || readPath(own, path) === undefined) return []
      return [{ path, sentence: `${path} (${value}) has no effect: ${because}.` }]
    },
  )
}

interface Threshold {
  path: string
  value: number | string | null
  isBeyond: boolean
  because: string
}

/** Counts of at least this size mean "never", because some counts cannot be switched off. */
const never = 1_000

const failingRules = ['identical', 'any', 'transientIdentical', 'transientAny', 'policyDenied'] as const

/** Counters that grow by at most one per step. */
function listSteps(config: AgentConfig): Threshold[] {
  const { failing, repeatedCall, repeatedOutput, cycle, emptyAnswer, ...counts } = config.guardrails
  const steps = config.limits.maxSteps ?? Infinity
  const because = endsBefore(config)
  const beyond = (path: string, value: number | null | undefined, most: number): Threshold => ({
    path,
    value: value ?? null,
    isBeyond: value != null && value > most && value < never,
    because,
  })
  // The shortest cycle has two batches.
  const mostPeriods = Math.floor(steps / 2)
  return [
    ...failingRules.map((rule) => beyond(`guardrails.failing.${rule}`, failing?.[rule], steps)),
    beyond('guardrails.maxRepeatedToolSteps', repeatedCall && counts.maxRepeatedToolSteps, steps),
    beyond('guardrails.repeatedOutput.rounds', repeatedOutput?.rounds, steps),
    beyond('guardrails.cycle.nudgeAt', cycle?.nudgeAt, mostPeriods),
    beyond('guardrails.cycle.haltAt', cycle?.haltAt, mostPeriods),
    // A retry takes another step.
    beyond('guardrails.maxTokensRecoveries', counts.maxTokensRecoveries, steps - 1),
    beyond('guardrails.emptyAnswer.reprompts', emptyAnswer?.reprompts, steps - 1),
    beyond('guardrails.emptyAnswer.retries', emptyAnswer?.retries, steps - 1),
    beyond('completion.maxOutputRepairs', config.completion.maxOutputRepairs, steps - 1),
  ]
}

function endsBefore({ limits }: AgentConfig): string {
  return `limits.maxSteps (${limits.maxSteps}) ends the run first`
}

function listProgressSteps(config: AgentConfig): Threshold[] {
  const { progress } = config.guardrails
  if (progress === null) return []
  const steps = config.limits.maxSteps ?? Infinity
  // The largest increment per batch: refused calls count twice, and identical calls count each execution.
  const largest = Math.max(2, progress.stale?.blockAt ?? 0)
  // The first batch always makes progress.
  const repeated = steps > 1 ? (steps - 1) * largest : 0
  const once = ['failing', 'sameError', 'unknownTools', 'refused', 'policyDenied', 'transient'] as const
  const because = endsBefore(config)
  return [
    ...(['stale', 'mixed'] as const).map((name) => list(name, progress[name], repeated)),
    ...once.map((name) => list(name, progress[name], steps)),
  ].flat()

  function list(name: string, detector: (Steps & Partial<StepsWithBlock>) | null, most: number): Threshold[] {
    if (!detector) return []
    const path = `guardrails.progress.${name}`
    const { nudgeAt, blockAt = null, haltAt } = detector
    const isHalting = haltAt !== null && haltAt <= most
    const halts = `the run stops at ${path}.haltAt (${haltAt})`
    return (['nudgeAt', 'blockAt', 'haltAt'] as const).map((key) => {
      const value = { nudgeAt, blockAt, haltAt }[key]
      const isHalted = key !== 'haltAt' && isHalting && value !== null && value >= haltAt
      return {
        path: `${path}.${key}`,
        value,
        isBeyond: isHalted || (value !== null && value > most && value < never),
        because: isHalted ? halts : because,
      }
    })
  }
}

function listAmounts(config: AgentConfig): Threshold[] {
  const { limits, guardrails, retry, toolCalls, streamIdleMs, contentIdleMs } = config
  const { timeoutMs, tokenBudget, outputTokens, costLimit, onNearBudget } = limits
  const { reserveTokens, reserveCostFraction } = guardrails
  const isLate = (ms: number): boolean => timeoutMs > 0 && ms >= timeoutMs
  const deadline = `limits.timeoutMs (${timeoutMs}) ends the run first`
  const isSilentBefore = contentIdleMs > 0 && streamIdleMs > contentIdleMs
  const concludes = onNearBudget === 'conclude'
  const hasReserve = (tokenBudget > 0 && reserveTokens > 0) || (costLimit > 0 && reserveCostFraction > 0)
  const isAllReserved = tokenBudget > 0 && reserveTokens >= tokenBudget
  const isReached = 'so the budget is almost exhausted from the start'
  const amounts: [path: string, value: number | string, isBeyond: boolean, because: string][] = [
    ['toolCalls.timeoutMs', toolCalls.timeoutMs, isLate(toolCalls.timeoutMs), deadline],
    ['contentIdleMs', contentIdleMs, isLate(contentIdleMs), deadline],
    [
      'streamIdleMs',
      streamIdleMs,
      isLate(streamIdleMs) || isSilentBefore,
      isLate(streamIdleMs) ? deadline : `contentIdleMs (${contentIdleMs}) ends the response first`,
    ],
    [
      'limits.outputTokens',
      outputTokens,
      tokenBudget > 0 && outputTokens >= tokenBudget,
      `limits.tokenBudget (${tokenBudget}) also counts them and is reached first`,
    ],
    [
      'guardrails.reserveTokens',
      reserveTokens,
      isAllReserved,
      `it equals or exceeds limits.tokenBudget (${tokenBudget}), ${isReached}`,
    ],
    [
      'guardrails.reserveCostFraction',
      reserveCostFraction,
      reserveCostFraction >= 1,
      `it equals or exceeds limits.costLimit, ${isReached}`,
    ],
    [
      'limits.onNearBudget',
      `'${onNearBudget}'`,
      concludes && !hasReserve,
      'neither limits.tokenBudget nor limits.costLimit is set with a reserve',
    ],
    [
      'limits.tokenBudget',
      tokenBudget,
      concludes && isAllReserved,
      `guardrails.reserveTokens (${reserveTokens}) equals or exceeds it, so the first request is the last (limits.onNearBudget)`,
    ],
    [
      'retry.baseDelayMs',
      retry.baseDelayMs,
      retry.baseDelayMs > retry.maxDelayMs,
      `retry.maxDelayMs (${retry.maxDelayMs}) is less, so every wait takes that long`,
    ],
  ]
  return amounts.map(([path, value, isBeyond, because]) => ({ path, value, isBeyond, because }))
}

/** The user's guard settings that differ from the defaults and from all presets. */
function omitKnownParts(settings: AgentConfigInput['guardrails']): object {
  const known = [defaultConfig, ...Object.values(presets)].map(({ guardrails }) => guardrails as object)
  const isKnown = ([key, value]: [string, unknown]): boolean =>
    known.some((guardrails) => JSON.stringify(readPath(guardrails, key)) === JSON.stringify(value))
  return Object.fromEntries(Object.entries(settings ?? {}).filter((entry) => !isKnown(entry)))
}

function readPath(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((inner, key) => (inner as Record<string, unknown> | null)?.[key], value)
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
