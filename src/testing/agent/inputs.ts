import { initialGuardrails } from '../../../guards/state.js'
import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import { type AgentInput, type Features, noFeatures } from '../../../machines/agent/context.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { resolveConfig } from '../../config/schema.js'
import { early } from './alphabet.js'

const quiet = {
  repeatedCall: null,
  repeatedOutput: null,
  cycle: null,
  failing: null,
  terminalDelegation: null,
} as const satisfies AgentConfigInput['guardrails']

const small = { maxSteps: 2, tokenBudget: 500 } as const
const retry = { maxAttempts: 2, rateLimitAttempts: 2 } as const

/**
 * What the agent machine is explored from: each input switches one thing on, with counters small enough that every
 * limit is near.
 */
export const agentInputs: Record<string, AgentInput> = {
  plain: start({ limits: small, retry, guardrails: { ...quiet, maxTokensRecoveries: 1 } }),
  'with a deadline': start({ limits: { maxSteps: 1, timeoutMs: 5_000 }, guardrails: quiet }),
  'with every shield': start(
    { limits: { maxSteps: 1 }, guardrails: quiet },
    { inputShields: true, outputShields: true, callShields: true, retrieval: true, fitting: true },
  ),
  'with input shields': start({ limits: { maxSteps: 1 }, guardrails: quiet }, { inputShields: true }),
  'with retrieval': start({ limits: { maxSteps: 1 }, guardrails: quiet }, { retrieval: true }),
  interactive: start({ limits: { maxSteps: 2 }, interactive: true, guardrails: quiet }),
  'asked to conclude': start({ limits: { maxSteps: 1, onLimit: 'conclude' }, guardrails: quiet }),
  'spent before it starts': {
    ...start({ limits: small, guardrails: quiet }),
    usage: { ...noUsage, inputTokens: 500, totalTokens: 500 },
  },
  'finishing the batch': start({
    limits: small,
    budget: { finishBatch: true, onOvershoot: 'complete' },
    guardrails: quiet,
  }),
  'watching repetition': watching({ repeatedCall: {} }),
  'watching repetition, halting at once': watching({ repeatedCall: { haltAt: 'reached', onHalt: 'pause' } }),
  'watching repetition, concluding': watching({ repeatedCall: {} }, 'conclude'),
  'watching outputs': watching({ repeatedOutput: { rounds: 2, strict: true } }),
  'watching cycles': watching({ cycle: { maxPeriod: 2, nudgeAt: 2, haltAt: 3 } }, 'stop', 7),
  'watching sub-agents': watching({ terminalDelegation: {} }),
  'watching failures': watching({ failing: { identical: 2, any: 3, transientIdentical: 2, transientAny: 3 } }),
  'refusing failures': watching({
    failing: { identical: 1, any: 3, transientIdentical: 1, transientAny: 3, onRepeat: 'block' },
  }),
}

function watching(
  guards: AgentConfigInput['guardrails'],
  onLimit: 'stop' | 'conclude' = 'stop',
  maxSteps = 4,
): AgentInput {
  return start({
    limits: { maxSteps, onLimit },
    retry: { maxAttempts: 1, rateLimitAttempts: 1 },
    guardrails: { ...quiet, maxTokensRecoveries: 0, emptyAnswer: null, maxRepeatedToolSteps: 2, ...guards },
  })
}

function start(config: AgentConfigInput, features: Partial<Features> = {}): AgentInput {
  return {
    now: early,
    runId: 'run',
    sessionId: 'session',
    config: resolveConfig(config) satisfies AgentConfig,
    tools: { look: { readOnly: true, idempotent: true, polling: false } },
    features: { ...noFeatures, ...features },
    messages: [],
    input: [{ content: 'Go.' }],
    usage: noUsage,
    guardrails: initialGuardrails(),
    warnedOfBudget: false,
  }
}
