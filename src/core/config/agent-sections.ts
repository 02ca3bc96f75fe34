import type { PresetName, AgentConfig } from '../../../machines/agent/config.js'
import type { Setting, Settings } from '../../../guards/lib/settings.js'
import { type GuardKey, guards } from '../../../guards/roster.js'
import {
  type Kind,
  nullable,
  type KindValue,
  type PartialKind,
  amount,
  amountOrOff,
  anyText,
  choice,
  count,
  countOrNull,
  countOrOff,
  flag,
  fractionOrOff,
  section,
  number,
  wholeNumber,
} from './kind.js'

const guardSections = Object.fromEntries(
  guards.map(([key, { settings }]) => [key, nullable(toSection(settings))]),
) as { [Key in GuardKey]: Kind<GivenSettings<AgentConfig['guardrails'][Key]> | null> }

type GivenSettings<Value> = Value extends object
  ? { [Key in keyof Value]?: GivenSettings<Value[Key]> | undefined }
  : Value

/**
 * The sections of an agent configuration as written by users. All keys are optional, and unknown keys are
 * rejected.
 */
export const agentSections = {
  limits: section({
    maxSteps: countOrNull(1, ', or null for no cap'),
    maxToolCalls: countOrNull(1, ', or null for no cap'),
    maxToolCallsPerResponse: countOrNull(1, ', or null for no cap'),
    timeoutMs: amountOrOff('a number of milliseconds'),
    tokenBudget: countOrOff(),
    outputTokens: countOrOff(),
    costLimit: amountOrOff('an amount in USD'),
    onLimit: choice('stop', 'conclude'),
    onNearBudget: choice('warn', 'conclude'),
  }),
  budget: section({
    scope: choice('session', 'run'),
    countCached: flag(),
    onOvershoot: choice('exceeded', 'complete'),
    finishBatch: flag(),
    preflight: flag(),
    onUnknownPrice: choice('error', 'warn'),
    onMissingUsage: choice('estimate', 'zero'),
  }),
  retry: section({
    maxAttempts: count(1, ' (1 means no retry)'),
    rateLimitAttempts: count(1, ' (1 means no retry)'),
    baseDelayMs: amount('milliseconds'),
    maxDelayMs: amount('milliseconds'),
    maxRetryAfterMs: amount('milliseconds'),
  }),
  stream: flag(),
  streamIdleMs: amountOrOff('a number of milliseconds'),
  storeTimeoutMs: amountOrOff('a number of milliseconds'),
  contentIdleMs: amountOrOff('a number of milliseconds'),
  completion: section({ onMissingEnd: choice('retry', 'accept'), maxOutputRepairs: countOrOff() }),
  context: section({
    window: countOrOff(),
    strategy: choice('sliding_window', 'compact', 'summarize', 'none'),
  }),
  toolCalls: section({
    concurrency: count(1),
    timeoutMs: amountOrOff('a number of milliseconds'),
    maxResultChars: count(1),
    onInterrupted: choice('result', 'approval'),
  }),
  interactive: flag(),
  guardrails: section({
    maxTokensRecoveries: countOrOff(),
    maxRepeatedToolSteps: countOrNull(1, ', or null to switch the guard off'),
    reserveTokens: countOrOff(),
    reserveCostFraction: fractionOrOff(),
    ...guardSections,
    emptyAnswer: nullable(section({ reprompts: count(0), retries: count(0) })),
  }),
  // Names are checked when the preset is merged.
  preset: anyText('a preset name') as Kind<PresetName>,
}

export const agentSchema = section(agentSections)

/** A validated configuration without defaults. */
export type GivenConfig = KindValue<typeof agentSchema>

function toSection(settings: Settings<object>): PartialKind<Record<string, Kind>> {
  return section(
    Object.fromEntries(Object.entries(settings).map(([key, setting]) => [key, toKind(setting as Setting)])),
  )
}

function toKind(setting: Setting): Kind {
  if (setting === 'flag') return flag()
  if (isChoice(setting)) return choice(...setting)
  if ('has' in setting) return setting.canBeOff ? nullable(toSection(setting.has)) : toSection(setting.has)
  if ('isNever' in setting) return countOrNull(setting.from, ', or null for never')
  const { from, to = Infinity, of } = setting
  if (of === 'milliseconds') return amount(of)
  if (of === 'share') return number(from, to, `a number from ${from} to ${to}`)
  return to === Infinity ? count(from) : wholeNumber(from, to, `a whole number from ${from} to ${to}`)
}

function isChoice(setting: Setting): setting is readonly [string, ...string[]] {
  return Array.isArray(setting)
}
