import { type GuardKey, guards } from '../../../guards/roster.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import { deepFreeze } from '../base/values.js'

/** The defaults. The keys are documented in `AgentConfig`. */
export const defaultConfig: AgentConfig = deepFreeze({
  limits: {
    maxSteps: 50,
    maxToolCalls: null,
    maxToolCallsPerResponse: null,
    timeoutMs: 0,
    tokenBudget: 0,
    outputTokens: 0,
    costLimit: 0,
    onLimit: 'stop',
    onNearBudget: 'warn',
  },
  budget: {
    scope: 'session',
    countCached: true,
    onOvershoot: 'exceeded',
    finishBatch: false,
    preflight: false,
    onUnknownPrice: 'error',
    onMissingUsage: 'estimate',
  },
  retry: {
    maxAttempts: 3,
    rateLimitAttempts: 6,
    baseDelayMs: 1_000,
    maxDelayMs: 60_000,
    maxRetryAfterMs: 600_000,
  },
  stream: true,
  streamIdleMs: 120_000,
  storeTimeoutMs: 60_000,
  contentIdleMs: 600_000,
  completion: { onMissingEnd: 'retry', maxOutputRepairs: 2 },
  context: { window: 0, strategy: 'compact' },
  toolCalls: { concurrency: 8, timeoutMs: 600_000, maxResultChars: 50_000, onInterrupted: 'result' },
  interactive: false,
  guardrails: {
    maxTokensRecoveries: 2,
    maxRepeatedToolSteps: 3,
    reserveTokens: 512,
    reserveCostFraction: 0.1,
    ...createDefaultGuards(),
    emptyAnswer: { reprompts: 2, retries: 1 },
  },
})

export const enabledGuards = deepFreeze(
  Object.fromEntries(guards.map(([key, { defaults }]) => [key, defaults])),
) as { [Key in GuardKey]: NonNullable<AgentConfig['guardrails'][Key]> }

function createDefaultGuards(): Pick<AgentConfig['guardrails'], GuardKey> {
  const on = guards.map(([key, { defaults, isOn }]) => [key, isOn ? defaults : null])
  return Object.fromEntries(on) as Pick<AgentConfig['guardrails'], GuardKey>
}
