import { noGuards } from '../../../guards/roster.js'
import type { AgentConfigInput } from '../../../machines/agent/config.js'
import type { AgentInput, Features } from '../../../machines/agent/context.js'
import { noUsage, type Usage } from '../../../machines/agent/usage.js'
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

const eagerStaleness = { ...noDetectors, stale: { nudgeAt: 1, blockAt: 1, haltAt: 2 }, memory: 2 }

/** No retries, because each counter multiplies the number of states. */
const noRetries = {
  retry: { maxAttempts: 1, rateLimitAttempts: 1 },
  guardrails: { ...noGuards, maxTokensRecoveries: 0, emptyAnswer: null },
} as const satisfies AgentConfigInput

const tokenBudget = 500

type Traits = AgentInput['tools'][string]
const writing: Traits = { readOnly: false, idempotent: false, polling: false }
const reading: Traits = { readOnly: true, idempotent: true, polling: false }
const tools = { read: writing, look: reading, transfer: writing, pick: writing }
const delegating = { ...writing, delegate: true as const }
const napping = { nap: reading, research: delegating }
const lastToken = { ...noUsage, inputTokens: tokenBudget - 1, totalTokens: tokenBudget - 1 }

const skilled = { tools: { load_skill: { ...reading, skill: true as const } } }
const handing = { tools: { transfer_to_billing: { ...reading, handoff: true as const } } }
const ending = { tools: { read: { ...writing, endsRun: true as const } } }
const governed = { tools: { govern: writing }, requesters: [{ id: 'ann' }] }
const oneRepair = { completion: { maxOutputRepairs: 1 } }
const finishesBatch = { budget: { finishBatch: true } }
const asksAgain = { toolCalls: { onInterrupted: 'approval' as const } }

interface InputParts extends Omit<AgentConfigInput, 'limits' | 'preset'> {
  tools?: AgentInput['tools']
  usage?: Usage
  requesters?: AgentInput['requesters']
}

type Limits = AgentConfigInput['limits']
type FeatureNames = readonly (keyof Features)[]

function createInput(limits: Limits, on: FeatureNames = [], parts: InputParts = {}): AgentInput {
  const { tools: more, usage, requesters, ...config } = parts
  const features = Object.fromEntries(on.map((name) => [name, true]))
  const input = { config: { ...noRetries, limits, ...config }, features, tools: { ...tools, ...more } }
  return {
    ...createMachineInput('Go.', { ...input, now: early }),
    ...(usage && { usage }),
    ...(requesters && { requesters }),
  }
}

function createWatchingInput(
  guards: AgentConfigInput['guardrails'],
  limits: Limits = {},
  on: FeatureNames = [],
): AgentInput {
  const guardrails = { ...noRetries.guardrails, maxRepeatedToolSteps: 2, ...guards }
  return createInput({ maxSteps: 4, ...limits }, on, { guardrails })
}

/**
 * Inputs for exploring the agent machine. Each input enables one feature, with limits that are small enough to be
 * reached.
 *
 * @example checkInvariants(agentMachine, agentInvariants, agentSpace({ only: ['with an output schema', 'watching progress'], maxSteps: 1 }))
 */
export const agentInputs: Readonly<Record<string, AgentInput>> = {
  plain: createInput({ maxSteps: 2, tokenBudget }, [], {
    retry: { maxAttempts: 2, rateLimitAttempts: 2 },
    guardrails: { ...noGuards, maxTokensRecoveries: 1, emptyAnswer: { reprompts: 1, retries: 1 } },
  }),
  'with a deadline': createInput({ maxSteps: 2, timeoutMs: 500_000 }),
  'with every shield': createInput(
    { maxSteps: 1, onLimit: 'conclude' },
    ['inputShields', 'outputShields', 'callShields', 'retrieval', 'fitting'],
    { guardrails: { ...noRetries.guardrails, emptyAnswer: { reprompts: 0, retries: 0 } } },
  ),
  'with result shields': createInput({ maxSteps: 1 }, ['resultShields']),
  'with input shields': createInput({ maxSteps: 1 }, ['inputShields']),
  'with retrieval': createInput({ maxSteps: 1 }, ['retrieval']),
  'summarizing near the budget': createInput({ maxSteps: 1, tokenBudget }, ['fitting'], {
    retry: { maxAttempts: 2, rateLimitAttempts: 1 },
  }),
  'with custom guards': createInput({ maxSteps: 2 }, ['userGuards']),
  'with custom guards and shields': createInput({ maxSteps: 1 }, ['userGuards', 'callShields']),
  'with an output schema': createInput({ maxSteps: 2, tokenBudget }, ['structuredOutput'], oneRepair),
  'asking about interrupted calls': createInput({ maxSteps: 1 }, [], {
    ...asksAgain,
    tools: { transfer: { ...writing, keepsHandle: true } },
  }),
  'with capped calls': createInput({ maxSteps: 2, maxToolCallsPerResponse: 2 }, [], {
    tools: { read: { ...writing, maxCalls: 1 } },
  }),
  'with one call': createInput({ maxSteps: 3, maxToolCalls: 1, tokenBudget }, [], finishesBatch),
  'with one call, concluding': createInput({ maxSteps: 2, maxToolCalls: 1, onLimit: 'conclude' }),
  'with deferred tools': createInput({ maxSteps: 2, maxToolCalls: 1 }, ['userGuards'], {
    tools: { read: { ...writing, deferred: true, maxCalls: 1 } },
  }),
  'with sub-agents': createInput({ maxSteps: 1, tokenBudget }, [], { tools: { research: delegating } }),
  'with tools that ask': createInput({ maxSteps: 1 }, [], { ...asksAgain, tools: { book: writing } }),
  'with sleep': createInput({ maxSteps: 2, timeoutMs: 2_000_000 }, [], { tools: napping }),
  'with sleep and a spent budget': createInput({ maxSteps: 2, tokenBudget }, [], {
    ...finishesBatch,
    tools: napping,
    usage: lastToken,
  }),
  'with sleep, shields and guards': createInput({ maxSteps: 2 }, ['resultShields', 'userGuards'], {
    tools: napping,
  }),
  'with skills': createInput({ maxSteps: 3 }, [], skilled),
  'with skills and result shields': createInput({ maxSteps: 2 }, ['resultShields'], skilled),
  'with handoffs': createInput({ maxSteps: 2 }, [], handing),
  'with handoffs and result shields': createInput({ maxSteps: 2 }, ['resultShields'], handing),
  'with policies': createInput({ maxSteps: 2 }, [], governed),
  'with policies and shields': createInput({ maxSteps: 1 }, ['callShields'], governed),
  'with questions that expire': createInput({ maxSteps: 2 }, [], {
    tools: { pledge: writing, research: delegating },
  }),
  'with grants': createInput({ maxSteps: 2 }, [], { tools: { lend: writing } }),
  'ending with a result': createInput({ maxSteps: 2, tokenBudget }, [], {
    ...finishesBatch,
    tools: { look: { ...reading, endsRun: true } },
  }),
  'ending with a screened result': createInput({ maxSteps: 1 }, ['outputShields'], ending),
  'stopping on results': createInput({ maxSteps: 2 }, ['stopWhen', 'structuredOutput'], oneRepair),
  'stopping on screened results': createInput(
    { maxSteps: 2 },
    ['stopWhen', 'outputShields', 'structuredOutput'],
    { ...oneRepair, ...ending },
  ),
  'with prepared steps': createInput({ maxSteps: 2 }, ['prepareStep']),
  'with prepared steps, input shields and a window': createInput({ maxSteps: 1 }, [
    'prepareStep',
    'inputShields',
    'fitting',
  ]),
  'with content that the provider refuses': createInput(
    { maxSteps: 2, tokenBudget, onLimit: 'conclude' },
    [],
    { tools: { browse: reading } },
  ),
  interactive: createInput({ maxSteps: 1 }, [], { interactive: true }),
  'asked to conclude': createInput({ maxSteps: 1, onLimit: 'conclude' }),
  'over budget at the start': createInput(
    { maxSteps: 1, outputTokens: tokenBudget },
    ['fitting', 'inputShields'],
    { usage: { ...noUsage, outputTokens: tokenBudget, totalTokens: tokenBudget } },
  ),
  'near the budget with preflight': createInput({ maxSteps: 1, tokenBudget }, [], {
    budget: { preflight: true },
    usage: lastToken,
  }),
  'concluding near the budget': createInput(
    { maxSteps: 2, tokenBudget, onNearBudget: 'conclude' },
    ['inputShields', 'outputShields'],
    { guardrails: { ...noRetries.guardrails, reserveTokens: tokenBudget - 10 } },
  ),
  'concluding near the cost limit': createInput(
    { maxSteps: 1, costLimit: 1, onNearBudget: 'conclude' },
    ['prepareStep'],
    { usage: { ...noUsage, cost: 0.95 } },
  ),
  'finishing the batch': createInput({ maxSteps: 2, tokenBudget }, [], {
    budget: { finishBatch: true, onOvershoot: 'complete' },
  }),
  'watching repetition with custom guards': createWatchingInput({ repeatedCall: {} }, {}, ['userGuards']),
  'watching repetition, halting immediately': createWatchingInput(
    { repeatedCall: { haltAt: 'reached', onHalt: 'pause', lastWords: false } },
    { onLimit: 'conclude' },
    ['userGuards'],
  ),
  'watching repetition, concluding': createWatchingInput({ repeatedCall: {} }, { onLimit: 'conclude' }, [
    'outputShields',
  ]),
  'watching progress': createWatchingInput({ progress: eagerStaleness }),
  'watching progress with output shields': createWatchingInput({ progress: eagerStaleness }, {}, [
    'outputShields',
  ]),
  'watching sub-agents': createWatchingInput({ terminalDelegation: {} }, { tokenBudget }),
}

/** Options that narrow the exploration. */
export interface AgentSpaceOptions {
  /** Names of the `agentInputs` to use. Defaults to all. */
  only?: readonly string[]
  /** Step limit for every run. Defaults to 1 to 4, depending on the input. */
  maxSteps?: number
}

/** Exploration options for the agent machine. Spread them, or pass them on. */
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
