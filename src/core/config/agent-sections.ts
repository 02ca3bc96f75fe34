import type { PresetName, AgentConfig } from '../../../machines/agent/config.js'
import type { Setting, Settings } from '../../../guards/lib/settings.js'
import { type GuardKey, guards } from '../../../guards/roster.js'
import * as is from './kind.js'
import type { Kind, KindValue, PartialKind } from './kind.js'

const guardSections = Object.fromEntries(
  guards.map(([key, { settings }]) => [key, is.nullable(toSection(settings))]),
) as { [Key in GuardKey]: Kind<GivenSettings<AgentConfig['guardrails'][Key]> | null> }

type GivenSettings<Value> = Value extends object
  ? { [Key in keyof Value]?: GivenSettings<Value[Key]> | undefined }
  : Value

/** An agent configuration as users write it. All keys are optional, and unknown keys are rejected. */
export const agentSections = {
  limits: is.section({
    maxSteps: is.countOrNull(1, ', or null for no cap'),
    maxToolCalls: is.countOrNull(1, ', or null for no cap'),
    maxToolCallsPerResponse: is.countOrNull(1, ', or null for no cap'),
    timeoutMs: is.amountOrOff('a number of milliseconds'),
    tokenBudget: is.countOrOff(),
    outputTokens: is.countOrOff(),
    costLimit: is.amountOrOff('an amount in USD'),
    onLimit: is.choice('stop', 'conclude'),
    onNearBudget: is.choice('warn', 'conclude'),
  }),
  budget: is.section({
    scope: is.choice('session', 'run'),
    countCached: is.flag(),
    onOvershoot: is.choice('exceeded', 'complete'),
    finishBatch: is.flag(),
    preflight: is.flag(),
    onUnknownPrice: is.choice('error', 'warn'),
    onMissingUsage: is.choice('estimate', 'zero'),
  }),
  retry: is.section({
    maxAttempts: is.count(1, ' (1 means no retry)'),
    rateLimitAttempts: is.count(1, ' (1 means no retry)'),
    baseDelayMs: is.amount('milliseconds'),
    maxDelayMs: is.amount('milliseconds'),
    maxRetryAfterMs: is.amount('milliseconds'),
  }),
  stream: is.flag(),
  streamIdleMs: is.amountOrOff('a number of milliseconds'),
  storeTimeoutMs: is.amountOrOff('a number of milliseconds'),
  contentIdleMs: is.amountOrOff('a number of milliseconds'),
  completion: is.section({ onMissingEnd: is.choice('retry', 'accept'), maxOutputRepairs: is.countOrOff() }),
  context: is.section({
    window: is.countOrOff(),
    strategy: is.choice('sliding_window', 'compact', 'summarize', 'none'),
  }),
  toolCalls: is.section({
    concurrency: is.count(1),
    timeoutMs: is.amountOrOff('a number of milliseconds'),
    maxResultChars: is.count(1),
    onInterrupted: is.choice('result', 'approval'),
  }),
  interactive: is.flag(),
  guardrails: is.section({
    maxTokensRecoveries: is.countOrOff(),
    maxRepeatedToolSteps: is.countOrNull(1, ', or null to switch the guard off'),
    reserveTokens: is.countOrOff(),
    reserveCostFraction: is.fractionOrOff(),
    ...guardSections,
    emptyAnswer: is.nullable(is.section({ reprompts: is.count(0), retries: is.count(0) })),
  }),
  // Names are checked when the preset is merged.
  preset: is.anyText('a preset name') as Kind<PresetName>,
}

export const agentSchema = is.section(agentSections)

/** A validated configuration without defaults. */
export type GivenConfig = KindValue<typeof agentSchema>

function toSection(settings: Settings<object>): PartialKind<Record<string, Kind>> {
  return is.section(
    Object.fromEntries(Object.entries(settings).map(([key, setting]) => [key, toKind(setting as Setting)])),
  )
}

function toKind(setting: Setting): Kind {
  if (setting === 'flag') return is.flag()
  if (isChoice(setting)) return is.choice(...setting)
  if ('has' in setting) return setting.canBeOff ? is.nullable(toSection(setting.has)) : toSection(setting.has)
  if ('isNever' in setting) return is.countOrNull(setting.from, ', or null for never')
  const { from, to = Infinity, of } = setting
  if (of === 'milliseconds') return is.amount(of)
  if (of === 'share') return is.number(from, to, `a number from ${from} to ${to}`)
  return to === Infinity ? is.count(from) : is.wholeNumber(from, to, `a whole number from ${from} to ${to}`)
}

function isChoice(setting: Setting): setting is readonly [string, ...string[]] {
  return Array.isArray(setting)
}
