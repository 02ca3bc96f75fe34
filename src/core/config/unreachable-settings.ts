import { warnProcess } from '../base/platform.js'
import type { ProgressConfig, Steps, StepsWithBlock } from '../../../guards/progress-config.js'
import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import type { Problem } from './check-input.js'
import { defaultConfig } from './defaults.js'
import { presets } from './presets.js'

/**
 * Finds user settings that can never take effect because of other settings. Defaults and presets are ignored, because
 * their order is intended.
 */
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
    ...(['identical', 'any', 'transientIdentical', 'transientAny', 'policyDenied'] as const).map((rule) =>
      beyond(`guardrails.failing.${rule}`, failing?.[rule], steps),
    ),
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

type Detector = Steps & Partial<StepsWithBlock>

function listProgressSteps(config: AgentConfig): Threshold[] {
  const { progress } = config.guardrails
  if (progress === null) return []
  const steps = config.limits.maxSteps ?? Infinity
  // The first batch always makes progress.
  const repeated = steps > 1 ? (steps - 1) * getLargestPart(progress) : 0
  const once = ['failing', 'sameError', 'unknownTools', 'refused', 'policyDenied', 'transient'] as const
  const because = endsBefore(config)
  return [
    ...(['stale', 'mixed'] as const).map((name) => list(name, progress[name], repeated)),
    ...once.map((name) => list(name, progress[name], steps)),
  ].flat()

  function list(name: string, detector: Detector | null, most: number): Threshold[] {
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

/** The largest increment per batch. Refused calls count twice, and identical calls count each execution. */
function getLargestPart({ stale }: ProgressConfig): number {
  return Math.max(2, stale?.blockAt ?? 0)
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
  return [
    {
      path: 'toolCalls.timeoutMs',
      value: toolCalls.timeoutMs,
      isBeyond: isLate(toolCalls.timeoutMs),
      because: deadline,
    },
    { path: 'contentIdleMs', value: contentIdleMs, isBeyond: isLate(contentIdleMs), because: deadline },
    {
      path: 'streamIdleMs',
      value: streamIdleMs,
      isBeyond: isLate(streamIdleMs) || isSilentBefore,
      because: isLate(streamIdleMs) ? deadline : `contentIdleMs (${contentIdleMs}) ends the response first`,
    },
    {
      path: 'limits.outputTokens',
      value: outputTokens,
      isBeyond: tokenBudget > 0 && outputTokens >= tokenBudget,
      because: `limits.tokenBudget (${tokenBudget}) also counts them and is reached first`,
    },
    {
      path: 'guardrails.reserveTokens',
      value: reserveTokens,
      isBeyond: tokenBudget > 0 && reserveTokens >= tokenBudget,
      because: `it equals or exceeds limits.tokenBudget (${tokenBudget}), so the budget is almost exhausted from the start`,
    },
    {
      path: 'guardrails.reserveCostFraction',
      value: reserveCostFraction,
      isBeyond: reserveCostFraction >= 1,
      because: 'it equals or exceeds limits.costLimit, so the budget is almost exhausted from the start',
    },
    {
      path: 'limits.onNearBudget',
      value: `'${onNearBudget}'`,
      isBeyond: concludes && !hasReserve,
      because: 'neither limits.tokenBudget nor limits.costLimit is set with a reserve',
    },
    {
      path: 'limits.tokenBudget',
      value: tokenBudget,
      isBeyond: concludes && tokenBudget > 0 && reserveTokens >= tokenBudget,
      because: `guardrails.reserveTokens (${reserveTokens}) equals or exceeds it, so the first request is the last (limits.onNearBudget)`,
    },
    {
      path: 'retry.baseDelayMs',
      value: retry.baseDelayMs,
      isBeyond: retry.baseDelayMs > retry.maxDelayMs,
      because: `retry.maxDelayMs (${retry.maxDelayMs}) is less, so every wait takes that long`,
    },
  ]
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
