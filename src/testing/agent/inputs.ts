import { noGuards } from '../../../guards/roster.js'
import { getInitialGuardrails } from '../../../guards/state.js'
import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import { type AgentInput, type Features, noFeatures } from '../../../machines/agent/context.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { resolveConfig } from '../../core/config/schema.js'
import { early } from './at.js'
import { noDetectors } from './quiet.js'

/** One thing is watched for, and acted on as soon as can be. */
const soonStale = {
  ...noDetectors,
  stale: { nudgeAt: 1, blockAt: 1, haltAt: 2 },
  memory: 2,
} as const satisfies NonNullable<AgentConfigInput['guardrails']>['progress']

/** Nothing is tried twice: each counter multiplies the states. */
const calm = {
  retry: { maxAttempts: 1, rateLimitAttempts: 1 },
  guardrails: { ...noGuards, maxTokensRecoveries: 0, emptyAnswer: null },
} as const satisfies AgentConfigInput

const tokenBudget = 500

const tools = {
  read: traits(false),
  look: traits(true),
  transfer: traits(false),
  pick: traits(false),
}

/**
 * What the agent machine is explored from: each input switches one thing on, with counters small enough that every
 * limit is near.
 *
 * @example checkInvariants(agentMachine, agentInvariants, agentSpace({ only: ['with an output schema', 'watching progress'], maxSteps: 1 }))
 */
export const agentInputs: Readonly<Record<string, AgentInput>> = {
  plain: start({
    limits: { maxSteps: 2, tokenBudget },
    retry: { maxAttempts: 2, rateLimitAttempts: 2 },
    guardrails: { ...noGuards, maxTokensRecoveries: 1, emptyAnswer: { reprompts: 1, retries: 1 } },
  }),
  'with a deadline': start({ ...calm, limits: { maxSteps: 2, timeoutMs: 500_000 } }),
  'with every shield': start(
    {
      ...calm,
      limits: { maxSteps: 1, onLimit: 'conclude' },
      guardrails: { ...calm.guardrails, emptyAnswer: { reprompts: 0, retries: 0 } },
    },
    {
      inputShields: true,
      outputShields: true,
      callShields: true,
      retrieval: true,
      fitting: true,
    },
  ),
  'with result shields': start({ ...calm, limits: { maxSteps: 1 } }, { resultShields: true }),
  'with input shields': start({ ...calm, limits: { maxSteps: 1 } }, { inputShields: true }),
  'with retrieval': start({ ...calm, limits: { maxSteps: 1 } }, { retrieval: true }),
  'summing up, nearly spent': start(
    { ...calm, limits: { maxSteps: 1, tokenBudget }, retry: { maxAttempts: 2, rateLimitAttempts: 1 } },
    { fitting: true },
  ),
  'with guards of its own': start({ ...calm, limits: { maxSteps: 2 } }, { userGuards: true }),
  'with guards of its own and shields': start(
    { ...calm, limits: { maxSteps: 1 } },
    { userGuards: true, callShields: true },
  ),
  'with an output schema': start(
    { ...calm, limits: { maxSteps: 2, tokenBudget }, completion: { maxOutputRepairs: 1 } },
    { structuredOutput: true },
  ),
  'asking about interrupted calls': start({
    ...calm,
    limits: { maxSteps: 1 },
    toolCalls: { onInterrupted: 'approval' },
  }),
  'with sub-agents': {
    ...start({ ...calm, limits: { maxSteps: 1, tokenBudget } }),
    tools: { ...tools, research: { ...traits(false), delegate: true } },
  },
  interactive: start({ ...calm, limits: { maxSteps: 1 }, interactive: true }),
  'asked to conclude': start({ ...calm, limits: { maxSteps: 1, onLimit: 'conclude' } }),
  'spent before it starts': {
    ...start(
      { ...calm, limits: { maxSteps: 1, outputTokens: tokenBudget } },
      { fitting: true, inputShields: true },
    ),
    usage: { ...noUsage, outputTokens: tokenBudget, totalTokens: tokenBudget },
  },
  'nearly spent, and careful': {
    ...start({ ...calm, limits: { maxSteps: 1, tokenBudget }, budget: { preflight: true } }),
    usage: { ...noUsage, inputTokens: tokenBudget - 1, totalTokens: tokenBudget - 1 },
  },
  'finishing the batch': start({
    ...calm,
    limits: { maxSteps: 2, tokenBudget },
    budget: { finishBatch: true, onOvershoot: 'complete' },
  }),
  'watching repetition, beside guards of its own': watching({ repeatedCall: {} }, {}, { userGuards: true }),
  'watching repetition, halting at once': watching(
    { repeatedCall: { haltAt: 'reached', onHalt: 'pause', lastWords: false } },
    { onLimit: 'conclude' },
    { userGuards: true },
  ),
  'watching repetition, concluding': watching(
    { repeatedCall: {} },
    { onLimit: 'conclude' },
    { outputShields: true },
  ),
  'watching progress': watching({ progress: soonStale }),
  'watching progress, with every answer screened': watching(
    { progress: soonStale },
    {},
    { outputShields: true },
  ),
  'watching sub-agents': watching({ terminalDelegation: {} }, { tokenBudget }),
}

function watching(
  guards: AgentConfigInput['guardrails'],
  limits: AgentConfigInput['limits'] = {},
  features: Partial<Features> = {},
): AgentInput {
  const config: AgentConfigInput = {
    ...calm,
    limits: { maxSteps: 4, ...limits },
    guardrails: { ...calm.guardrails, maxRepeatedToolSteps: 2, ...guards },
  }
  return start(config, features)
}

function start(config: AgentConfigInput, features: Partial<Features> = {}): AgentInput {
  return {
    now: early,
    runId: 'run',
    sessionId: 'session',
    config: resolveConfig(config) satisfies AgentConfig,
    tools,
    features: { ...noFeatures, ...features },
    messages: [],
    input: [{ content: 'Go.' }],
    usage: noUsage,
    guardrails: getInitialGuardrails(),
    warnedOfBudget: false,
  }
}

function traits(readOnly: boolean): AgentInput['tools'][string] {
  return { readOnly, idempotent: readOnly, polling: false }
}
