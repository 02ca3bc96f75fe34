import { ConfigError } from '../base/errors.js'
import type { AgentParts } from '../live/agent-parts.js'
import { defineTool } from '../tools/define-tool.js'
import type { Tool } from '../tools/tool.js'
import type { Agent } from './agent-options.js'
import { internalsByAgent } from './agent-internals.js'
import { HandoffTeam } from './handoff-team.js'

/** How an agent is offered to another one, which may hand the conversation to it. */
export interface HandoffOptions<Name extends string = string> {
  /** What it is called in the session: 1 to 50 letters, digits, `_` and `-`. The model calls `transfer_to_NAME`. */
  name: Name
  /** What it is for and when to hand over, for the model. Default: a sentence with the name. */
  description?: string
}

/** An agent of any output, tools and context. */
type AnyAgent = Pick<Agent, 'config'>

/**
 * A tool that hands the conversation to another agent: the session goes on under that agent's instructions, tools and model, until it is
 * handed on. Limits, budgets, guards and shields stay those of the session's first agent. See docs/handoffs.md.
 *
 * `agent`: the other agent, or a function that returns it, where agents hand over to each other.
 *
 * @example
 * const billing = createAgent({ model, instructions: 'You answer questions about bills.' })
 * const triage = createAgent({
 *   model,
 *   instructions: 'Find out what the customer needs.',
 *   tools: [handoff(billing, { name: 'billing', description: 'Knows every bill.' })],
 * })
 * @throws {ConfigError} `invalid_handoff` for what is no agent, and for options that cannot be used
 */
export function handoff<const Name extends string>(
  agent: AnyAgent | (() => AnyAgent),
  options: HandoffOptions<Name>,
): Tool<Record<string, never>, unknown, `transfer_to_${Name}`> {
  const { name, description } = checkOptions(options)
  const isLater = typeof agent === 'function'
  if (!isLater) findParts(agent, name)
  const tool = defineTool({
    name: `transfer_to_${name}`,
    description: description ?? `Hands the conversation to '${name}', who goes on with it in your place.`,
    input: { type: 'object', properties: {}, additionalProperties: false } as const,
    readOnly: true,
    execute: () => `The conversation is handed to '${name}', who answers from here on.`,
  })
  return Object.freeze({
    ...(tool as unknown as Tool<Record<string, never>, unknown, `transfer_to_${Name}`>),
    handoff: {
      to: name,
      isLater,
      getParts: () => findParts(isLater ? agent() : agent, name),
      gather: (tools: readonly Tool[]) => new HandoffTeam(tools),
    },
  })
}

function findParts(agent: unknown, name: string): AgentParts {
  const made = internalsByAgent.get((agent ?? {}) as AnyAgent)
  if (made) return made.parts
  throw new ConfigError(
    'invalid_handoff',
    `handoff '${name}': the first argument must be an agent that createAgent() has made, in the same copy of Statewright, or a function that returns one.`,
    name,
  )
}

const keys = ['name', 'description']

function checkOptions<Name extends string>(options: HandoffOptions<Name>): HandoffOptions<Name> {
  const refuse = (problem: string, key?: string): never => {
    throw new ConfigError('invalid_handoff', `handoff: ${problem}`, key)
  }
  if (typeof options !== 'object' || (options as unknown) === null)
    return refuse("takes what the agent is called: handoff(agent, { name: 'billing', description: '…' }).")
  for (const key of Object.keys(options)) {
    if (!keys.includes(key)) refuse(`there is no option '${key}'. The options are ${keys.join(', ')}.`, key)
  }
  const { name, description } = options
  if (typeof name !== 'string' || !/^[a-zA-Z0-9_-]{1,50}$/.test(name) || name === '__proto__')
    refuse('name must be 1 to 50 letters, digits, _ and -.', 'name')
  if (description !== undefined && (typeof description !== 'string' || description.trim() === ''))
    refuse('description must be a text for the model.', 'description')
  return options
}
