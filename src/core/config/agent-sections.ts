import { guardSections } from './guard-sections.js'
import type { PresetName } from '../../../machines/agent/config.js'
import { type Kind, nullable, type KindValue } from './kind.js'
import {
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
} from './value-kinds.js'

/** The sections of an agent's configuration as a user writes them: no key is needed, no other is allowed. */
export const agentSections = {
  limits: section({
    maxSteps: countOrNull(1, ', or null for no cap'),
    maxToolCalls: countOrNull(1, ', or null for no cap'),
    maxToolCallsPerResponse: countOrNull(1, ', or null for no cap'),
    timeoutMs: amountOrOff('milliseconds'),
    tokenBudget: countOrOff(),
    outputTokens: countOrOff(),
    costLimit: amountOrOff('USD'),
    onLimit: choice('stop', 'conclude'),
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
    maxAttempts: count(1, ' (1 is no retry)'),
    rateLimitAttempts: count(1, ' (1 is no retry)'),
    baseDelayMs: amount('milliseconds'),
    maxDelayMs: amount('milliseconds'),
    maxRetryAfterMs: amount('milliseconds'),
  }),
  stream: flag(),
  streamIdleMs: amountOrOff('milliseconds'),
  storeTimeoutMs: amountOrOff('milliseconds'),
  contentIdleMs: amountOrOff('milliseconds'),
  completion: section({ onMissingEnd: choice('retry', 'accept'), maxOutputRepairs: countOrOff() }),
  context: section({
    window: countOrOff(),
    strategy: choice('sliding_window', 'compact', 'summarize', 'none'),
  }),
  toolCalls: section({
    concurrency: count(1),
    timeoutMs: amountOrOff('milliseconds'),
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
  // Which there are is known where they are laid under the other keys.
  preset: anyText('the name of a preset') as Kind<PresetName>,
}

export const agentSchema = section(agentSections)

/** A configuration that the schema has accepted, before the defaults. */
export type GivenConfig = KindValue<typeof agentSchema>
