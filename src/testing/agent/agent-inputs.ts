import { noGuards } from '../../../guards/roster.js'
import type { AgentConfigInput } from '../../../machines/agent/config.js'
import type { AgentInput, Features } from '../../../machines/agent/context.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { createInput as createMachineInput } from '../../core/agent/machine-input.js'
import { early } from './actor-outcomes.js'
import { progressSettings, type ProgressConfig } from '../../../guards/progress-config.js'
import { optionsRule, expectArgument } from '../../core/base/values.js'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { ExploreOptions } from '../explore-options.js'
import { listAgentEvents } from './agent-alphabet.js'
import { serializeAgentState } from './agent-state-key.js'

type Detector = {
  [Key in keyof ProgressConfig]-?: null extends ProgressConfig[Key] ? Key : never
}[keyof ProgressConfig]

const detectors = Object.entries(progressSettings)
  .filter(([, setting]) => typeof setting === 'object' && 'canBeOff' in setting)
  // `waiting` configures the detectors but is not one.
  .filter(([name]) => name !== 'waiting')

export const noDetectors = Object.fromEntries(detectors.map(([name]) => [name, null])) as Record<
  Exclude<Detector, 'waiting'>,
  null
>

const eagerStaleness = {
  ...noDetectors,
  stale: { nudgeAt: 1, blockAt: 1, haltAt: 2 },
  memory: 2,
} as const satisfies NonNullable<AgentConfigInput['guardrails']>['progress']

/** No retries, because each counter multiplies the states. */
const noRetries = {
  retry: { maxAttempts: 1, rateLimitAttempts: 1 },
  guardrails: { ...noGuards, maxTokensRecoveries: 0, emptyAnswer: null },
} as const satisfies AgentConfigInput

const tokenBudget = 500

const tools = {
  read: createTraits(false),
  look: createTraits(true),
  transfer: createTraits(false),
  pick: createTraits(false),
}

/**
 * Inputs for exploring the agent machine. Each enables one feature, with limits small enough to be reached.
 *
 * @example checkInvariants(agentMachine, agentInvariants, agentSpace({ only: ['with an output schema', 'watching progress'], maxSteps: 1 }))
 */
export const agentInputs: Readonly<Record<string, AgentInput>> = {
  plain: createInput({
    limits: { maxSteps: 2, tokenBudget },
    retry: { maxAttempts: 2, rateLimitAttempts: 2 },
    guardrails: { ...noGuards, maxTokensRecoveries: 1, emptyAnswer: { reprompts: 1, retries: 1 } },
  }),
  'with a deadline': createInput({ ...noRetries, limits: { maxSteps: 2, timeoutMs: 500_000 } }),
  'with every shield': createInput(
    {
      ...noRetries,
      limits: { maxSteps: 1, onLimit: 'conclude' },
      guardrails: { ...noRetries.guardrails, emptyAnswer: { reprompts: 0, retries: 0 } },
    },
    {
      inputShields: true,
      outputShields: true,
      callShields: true,
      retrieval: true,
      fitting: true,
    },
  ),
  'with result shields': createInput({ ...noRetries, limits: { maxSteps: 1 } }, { resultShields: true }),
  'with input shields': createInput({ ...noRetries, limits: { maxSteps: 1 } }, { inputShields: true }),
  'with retrieval': createInput({ ...noRetries, limits: { maxSteps: 1 } }, { retrieval: true }),
  'summing up, nearly spent': createInput(
    { ...noRetries, limits: { maxSteps: 1, tokenBudget }, retry: { maxAttempts: 2, rateLimitAttempts: 1 } },
    { fitting: true },
  ),
  'with custom guards': createInput({ ...noRetries, limits: { maxSteps: 2 } }, { userGuards: true }),
  'with custom guards and shields': createInput(
    { ...noRetries, limits: { maxSteps: 1 } },
    { userGuards: true, callShields: true },
  ),
  'with an output schema': createInput(
    { ...noRetries, limits: { maxSteps: 2, tokenBudget }, completion: { maxOutputRepairs: 1 } },
    { structuredOutput: true },
  ),
  'asking about interrupted calls': {
    ...createInput({
      ...noRetries,
      limits: { maxSteps: 1 },
      toolCalls: { onInterrupted: 'approval' },
    }),
    tools: { ...tools, transfer: { ...createTraits(false), keepsHandle: true } },
  },
  'with capped calls': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2, maxToolCallsPerResponse: 2 } }),
    tools: { ...tools, read: { ...createTraits(false), maxCalls: 1 } },
  },
  'with one call': createInput({
    ...noRetries,
    limits: { maxSteps: 3, maxToolCalls: 1, tokenBudget },
    budget: { finishBatch: true },
  }),
  'with one call, concluding': createInput({
    ...noRetries,
    limits: { maxSteps: 2, maxToolCalls: 1, onLimit: 'conclude' },
  }),
  'with deferred tools': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2, maxToolCalls: 1 } }, { userGuards: true }),
    tools: { ...tools, read: { ...createTraits(false), deferred: true, maxCalls: 1 } },
  },
  'with sub-agents': {
    ...createInput({ ...noRetries, limits: { maxSteps: 1, tokenBudget } }),
    tools: { ...tools, research: { ...createTraits(false), delegate: true } },
  },
  'with tools that ask': {
    ...createInput({ ...noRetries, limits: { maxSteps: 1 }, toolCalls: { onInterrupted: 'approval' } }),
    tools: { ...tools, book: createTraits(false) },
  },
  'with sleep': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2, timeoutMs: 2_000_000 } }),
    tools: { ...tools, nap: createTraits(true), research: { ...createTraits(false), delegate: true } },
  },
  'with sleep, when the budget is spent': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2, tokenBudget }, budget: { finishBatch: true } }),
    tools: { ...tools, nap: createTraits(true), research: { ...createTraits(false), delegate: true } },
    usage: { ...noUsage, inputTokens: tokenBudget - 1, totalTokens: tokenBudget - 1 },
  },
  'with sleep, shields and guards': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2 } }, { resultShields: true, userGuards: true }),
    tools: { ...tools, nap: createTraits(true), research: { ...createTraits(false), delegate: true } },
  },
  'with skills': {
    ...createInput({ ...noRetries, limits: { maxSteps: 3 } }),
    tools: { ...tools, load_skill: { ...createTraits(true), skill: true } },
  },
  'with skills and result shields': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2 } }, { resultShields: true }),
    tools: { ...tools, load_skill: { ...createTraits(true), skill: true } },
  },
  'with handoffs': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2 } }),
    tools: { ...tools, transfer_to_billing: { ...createTraits(true), handoff: true } },
  },
  'with handoffs and result shields': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2 } }, { resultShields: true }),
    tools: { ...tools, transfer_to_billing: { ...createTraits(true), handoff: true } },
  },
  'with policies': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2 } }),
    tools: { ...tools, govern: createTraits(false) },
    requesters: [{ id: 'ann' }],
  },
  'with policies and shields': {
    ...createInput({ ...noRetries, limits: { maxSteps: 1 } }, { callShields: true }),
    tools: { ...tools, govern: createTraits(false) },
    requesters: [{ id: 'ann' }],
  },
  'with questions that expire': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2 } }),
    tools: {
      ...tools,
      pledge: createTraits(false),
      research: { ...createTraits(false), delegate: true },
    },
  },
  'ending by a result': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2, tokenBudget }, budget: { finishBatch: true } }),
    tools: { ...tools, look: { ...createTraits(true), endsRun: true } },
  },
  'ending by a result that shields clear': {
    ...createInput({ ...noRetries, limits: { maxSteps: 1 } }, { outputShields: true }),
    tools: { ...tools, read: { ...createTraits(false), endsRun: true } },
  },
  'stopping when it has results': createInput(
    { ...noRetries, limits: { maxSteps: 2 }, completion: { maxOutputRepairs: 1 } },
    { stopWhen: true, structuredOutput: true },
  ),
  'stopping when it has results that shields clear': {
    ...createInput(
      { ...noRetries, limits: { maxSteps: 2 }, completion: { maxOutputRepairs: 1 } },
      { stopWhen: true, outputShields: true, structuredOutput: true },
    ),
    tools: { ...tools, read: { ...createTraits(false), endsRun: true } },
  },
  'with prepared steps': createInput({ ...noRetries, limits: { maxSteps: 2 } }, { prepareStep: true }),
  'with prepared steps, input shields and a window': createInput(
    { ...noRetries, limits: { maxSteps: 1 } },
    { prepareStep: true, inputShields: true, fitting: true },
  ),
  'with content that the provider refuses': {
    ...createInput({ ...noRetries, limits: { maxSteps: 2, tokenBudget, onLimit: 'conclude' } }),
    tools: { ...tools, browse: createTraits(true) },
  },
  interactive: createInput({ ...noRetries, limits: { maxSteps: 1 }, interactive: true }),
  'asked to conclude': createInput({ ...noRetries, limits: { maxSteps: 1, onLimit: 'conclude' } }),
  'spent before it starts': {
    ...createInput(
      { ...noRetries, limits: { maxSteps: 1, outputTokens: tokenBudget } },
      { fitting: true, inputShields: true },
    ),
    usage: { ...noUsage, outputTokens: tokenBudget, totalTokens: tokenBudget },
  },
  'nearly spent, and careful': {
    ...createInput({ ...noRetries, limits: { maxSteps: 1, tokenBudget }, budget: { preflight: true } }),
    usage: { ...noUsage, inputTokens: tokenBudget - 1, totalTokens: tokenBudget - 1 },
  },
  'concluding near the budget': createInput(
    {
      ...noRetries,
      limits: { maxSteps: 2, tokenBudget, onNearBudget: 'conclude' },
      guardrails: { ...noRetries.guardrails, reserveTokens: tokenBudget - 10 },
    },
    { inputShields: true, outputShields: true },
  ),
  'concluding near the limit of its cost': {
    ...createInput(
      { ...noRetries, limits: { maxSteps: 1, costLimit: 1, onNearBudget: 'conclude' } },
      { prepareStep: true },
    ),
    usage: { ...noUsage, cost: 0.95 },
  },
  'finishing the batch': createInput({
    ...noRetries,
    limits: { maxSteps: 2, tokenBudget },
    budget: { finishBatch: true, onOvershoot: 'complete' },
  }),
  'watching repetition, beside custom guards': createWatchingInput(
    { repeatedCall: {} },
    {},
    { userGuards: true },
  ),
  'watching repetition, halting at once': createWatchingInput(
    { repeatedCall: { haltAt: 'reached', onHalt: 'pause', lastWords: false } },
    { onLimit: 'conclude' },
    { userGuards: true },
  ),
  'watching repetition, concluding': createWatchingInput(
    { repeatedCall: {} },
    { onLimit: 'conclude' },
    { outputShields: true },
  ),
  'watching progress': createWatchingInput({ progress: eagerStaleness }),
  'watching progress, with every answer screened': createWatchingInput(
    { progress: eagerStaleness },
    {},
    { outputShields: true },
  ),
  'watching sub-agents': createWatchingInput({ terminalDelegation: {} }, { tokenBudget }),
}

function createWatchingInput(
  guards: AgentConfigInput['guardrails'],
  limits: AgentConfigInput['limits'] = {},
  features: Partial<Features> = {},
): AgentInput {
  const config: AgentConfigInput = {
    ...noRetries,
    limits: { maxSteps: 4, ...limits },
    guardrails: { ...noRetries.guardrails, maxRepeatedToolSteps: 2, ...guards },
  }
  return createInput(config, features)
}

function createInput(config: AgentConfigInput, features: Partial<Features> = {}): AgentInput {
  return createMachineInput('Go.', { config, features, tools, now: early })
}

function createTraits(readOnly: boolean): AgentInput['tools'][string] {
  return { readOnly, idempotent: readOnly, polling: false }
}

/** Options that narrow the exploration. */
export interface AgentSpaceOptions {
  /** Names of the `agentInputs` to use. Default: all. */
  only?: readonly string[]
  /** Step limit for every run. Default: 1 to 4, depending on the input. */
  maxSteps?: number
}

/** Exploration options for the agent machine. Spread it or pass it on. */
export interface AgentSpace extends ExploreOptions<typeof agentMachine> {
  inputs: Readonly<Record<string, AgentInput>>
  alphabet: typeof listAgentEvents
}

/**
 * The inputs, alphabet and state key for exploring the agent machine with `generatePaths`, `checkInvariants` or
 * `canReach`.
 *
 * ```ts
 * const { paths } = generatePaths(agentMachine, agentSpace())
 * ```
 */
export function agentSpace(options: AgentSpaceOptions = {}): AgentSpace {
  expectArgument('agentSpace(options)', options, optionsRule)
  const { only = Object.keys(agentInputs), maxSteps } = options
  const inputs = Object.entries(agentInputs)
    .filter(([name]) => only.includes(name))
    .map(([name, input]) => [name, maxSteps === undefined ? input : setMaxSteps(input, maxSteps)] as const)
  return {
    inputs: Object.fromEntries(inputs),
    alphabet: listAgentEvents,
    serializeState: serializeAgentState,
    limit: 200_000,
  }
}

function setMaxSteps(input: AgentInput, maxSteps: number): AgentInput {
  const { config } = input
  return { ...input, config: { ...config, limits: { ...config.limits, maxSteps } } }
}
