import { omitUndefined } from '../../../guards/lib/json.js'
import { getOrCreate } from '../base/values.js'
import { ConfigError } from '../base/errors.js'
import { checkOptions, type OptionRules } from '../config/check-options.js'
import type { AgentParts } from '../live/agent-parts.js'
import { defineTool } from '../tools/define-tool.js'
import type { Tool, Team } from '../tools/tool.js'
import type { Agent } from './agent-options.js'
import { internalsByAgent } from './agent-internals.js'

/** Describes an agent to the agent that may hand the conversation to it. */
export interface HandoffOptions<Name extends string = string> {
  /** The agent's name in the session: 1 to 50 letters, digits, `_` and `-`. The model calls `transfer_to_NAME`. */
  name: Name
  /** Tells the model when to hand over. Defaults to a sentence that contains the name. */
  description?: string
}

type AnyAgent = Pick<Agent, 'config'>

/**
 * A tool that hands the conversation to another agent. The session continues with the other agent's instructions, tools
 * and model until the next handoff. The first agent's limits, budgets, guards and shields stay in effect. See
 * docs/handoffs.md. `agent` is the other agent, or a function that returns it for mutual handoffs.
 * @example
 * const billing = createAgent({ model, instructions: 'You answer questions about bills.' })
 * const tools = [handoff(billing, { name: 'billing', description: 'Knows every bill.' })]
 * createAgent({ model, instructions: 'Find out what the customer needs.', tools })
 * @throws {ConfigError} `invalid_handoff` for an invalid agent or invalid options
 * @throws {UsageError} `invalid_argument` if the options are not an object
 */
export function handoff<const Name extends string>(
  agent: AnyAgent | (() => AnyAgent),
  options: HandoffOptions<Name>,
): Tool<Record<string, never>, unknown, `transfer_to_${Name}`> {
  const call = 'handoff(agent, options)'
  const { name, description } = checkOptions<HandoffOptions<Name>>(call, options, optionRules, handoffError)
  const isLater = typeof agent === 'function'
  if (!isLater) findParts(agent, name)
  const tool = defineTool({
    name: `transfer_to_${name}`,
    description:
      description ?? `Hands the conversation over to the agent '${name}', which then replies instead of you.`,
    input: { type: 'object', properties: {}, additionalProperties: false } as const,
    readOnly: true,
    execute: () => `The conversation was handed over to '${name}', which replies from now on.`,
  })
  return Object.freeze({
    ...(tool as unknown as Tool<Record<string, never>, unknown, `transfer_to_${Name}`>),
    handoff: {
      to: name,
      isLater,
      getParts: () => findParts(isLater ? agent() : agent, name),
      gather: createHandoffTeam,
    },
  })
}

function findParts(agent: unknown, name: string): AgentParts {
  const internals = internalsByAgent.get((agent ?? {}) as AnyAgent)
  if (internals) return internals.parts
  throw handoffError(
    `handoff '${name}': the first argument must be an agent created by createAgent() from the same copy of Statewright, or a function that returns one.`,
    name,
  )
}

function handoffError(message: string, subject: string): ConfigError {
  return new ConfigError('invalid_handoff', message, subject)
}

const optionRules: OptionRules<HandoffOptions> = {
  name: {
    is: (value) => typeof value === 'string' && /^[a-zA-Z0-9_-]{1,50}$/.test(value) && value !== '__proto__',
    phrase: '1 to 50 letters, digits, _ and -',
    isRequired: true,
  },
  description: {
    is: (value) => typeof value === 'string' && value.trim() !== '',
    phrase: 'a string that the model reads',
  },
}

/** The agents that can receive a session, through any number of handoffs. */
function createHandoffTeam(tools: readonly Tool[]): Team {
  const checked = new WeakSet<AgentParts>()
  let gathered: ReadonlyMap<string, AgentParts> | undefined
  const getMembers = () => (gathered ??= gather(tools, true))
  return {
    find: (name) => getMembers().get(name),
    list: () => [...getMembers()],
    mix(name, first: AgentParts) {
      const member = getMembers().get(name)
      if (member === undefined) return undefined
      const byFirst = getOrCreate(mixed, member, () => new WeakMap<AgentParts, AgentParts>())
      return getOrCreate(byFirst, first, () => mixParts(first, member))
    },
    /** Checks all agents. Agents that are passed as functions are resolved when a session starts. */
    check(first: AgentParts, { isBegun }) {
      if (checked.has(first)) return
      const members = isBegun ? getMembers() : gather(tools, false)
      for (const [name, member] of members) if (member !== first) checkMember(name, member, first)
      for (const agent of [first, ...members.values()]) checkOwnHandoffs(agent, isBegun)
      if (isBegun) checked.add(first)
    },
  }
}

/** Combined parts, cached by identity because other caches and hashes compare parts by reference. */
const mixed = new WeakMap<AgentParts, WeakMap<AgentParts, AgentParts>>()

/** The parts that this function names come from the current agent, all others from the first agent. */
function mixParts(first: AgentParts, member: AgentParts): AgentParts {
  const { writeInstructions: _w, skillIndex: _i, prepareStep: _p, skills: _s, ...shared } = first
  const { model, instructions, writeInstructions, skillIndex, prepareStep, tools, skills } = member
  const { sampling, toolChoice, extraBody } = member
  const policies = [...(first.policies ?? []), ...(member.policies ?? [])]
  return {
    ...shared,
    model,
    instructions,
    tools,
    sampling,
    toolChoice,
    extraBody,
    // Answers record their model if another model may continue the session.
    models: member.models ?? {},
    ...omitUndefined({ writeInstructions, skillIndex, prepareStep, skills }),
    ...(policies.length > 0 && { policies }),
  }
}

function gather(tools: readonly Tool[], withLater: boolean): Map<string, AgentParts> {
  const members = new Map<string, AgentParts>()
  const queue = [...tools]
  for (const { handoff } of queue) {
    if (!handoff || (handoff.isLater && !withLater)) continue
    const { to } = handoff
    const member = handoff.getParts() as AgentParts
    const known = members.get(to)
    if (known === member) continue
    if (known !== undefined) {
      const text = `Two handoffs use the name '${to}' for different agents. Rename one, because sessions store the active agent by name.`
      throw new ConfigError('duplicate_handoff', text, to)
    }
    members.set(to, member)
    queue.push(...listTools(member))
  }
  return members
}

const listTools = ({ tools }: AgentParts): Tool[] => tools.names.flatMap((name) => tools.get(name) ?? [])

function checkOwnHandoffs(agent: AgentParts, withLater: boolean): void {
  for (const { handoff } of listTools(agent)) {
    if (!handoff || (handoff.isLater && !withLater) || handoff.getParts() !== agent) continue
    throw handoffError(`handoff '${handoff.to}' points to its own agent. Pass another agent.`, handoff.to)
  }
}

/** A member needs the first agent's content checks, so that a handoff cannot bypass them. */
function checkMember(name: string, member: AgentParts, first: AgentParts): void {
  const refuse = (key: string, what: string): never => {
    throw handoffError(
      `handoff '${name}': the agent has ${what}, but a session uses only its first agent's. Add ${key} to the first agent as well, or remove it.`,
      key,
    )
  }
  for (const point of ['input', 'toolInput', 'toolOutput', 'output'] as const) {
    const lost = member.shields[point].find(
      (one) => !first.shields[point].some((other) => other.name === one.name && other.check === one.check),
    )
    if (lost) refuse(`shields.${point}`, `its own shield '${lost.name}'`)
  }
  const lost = member.guards.find(
    (one) => !first.guards.some((other) => other.name === one.name && other.verdict === one.verdict),
  )
  if (lost) refuse('guards', `its own guard '${lost.name}'`)
  if (member.memory && member.memory !== first.memory) refuse('memory', 'its own memory')
  if (member.stopWhen && member.stopWhen !== first.stopWhen) refuse('stopWhen', 'its own stopWhen')
  if (member.output && JSON.stringify(member.output.schema) !== JSON.stringify(first.output?.schema))
    refuse('output', 'its own output schema')
}
