import { optionsRule, expectArgument } from '../../core/base/expect-argument.js'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentInput } from '../../../machines/agent/context.js'
import type { ExploreOptions } from '../explore-options.js'
import { listAgentEvents } from './agent-alphabet.js'
import { agentInputs } from './agent-inputs.js'
import { serializeAgentState } from './agent-state-key.js'

/** How much of the agent machine is explored. */
export interface AgentSpaceOptions {
  /** Only these of `agentInputs`, by their names. Default: all. */
  only?: readonly string[]
  /** Steps that every run may take. Default: what each input needs to show its point, 1 to 4. */
  maxSteps?: number
}

/** What `agentSpace` gives: to be spread, or handed on as it is. */
export interface AgentSpace extends ExploreOptions<typeof agentMachine> {
  /** What runs begin with, each with another feature on. */
  inputs: Readonly<Record<string, AgentInput>>
  /** The events that can happen in a state, by name. */
  alphabet: typeof listAgentEvents
}

/**
 * What the agent machine is explored with: its inputs, its alphabet and its state key. Good for `generatePaths`,
 * `checkInvariants` and `canReach`.
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
