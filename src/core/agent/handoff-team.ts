import { ConfigError } from '../base/errors.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { Team, Tool } from '../tools/tool.js'

/** The agents that a session can be handed to, by one handoff or by several. */
export class HandoffTeam implements Team {
  readonly #tools: readonly Tool[]
  readonly #checked = new WeakSet<AgentParts>()
  #members: ReadonlyMap<string, AgentParts> | undefined

  constructor(tools: readonly Tool[]) {
    this.#tools = tools
  }

  find(name: string): AgentParts | undefined {
    return this.#all.get(name)
  }

  list(): readonly [string, AgentParts][] {
    return [...this.#all]
  }

  mix(name: string, first: AgentParts): AgentParts | undefined {
    const member = this.find(name)
    if (member === undefined) return undefined
    const known = mixed.get(member)?.get(first)
    if (known !== undefined) return known
    const made = mixParts(first, member)
    if (!mixed.has(member)) mixed.set(member, new WeakMap())
    mixed.get(member)?.set(first, made)
    return made
  }

  /** Agents that are named later are looked up when a session begins. */
  check(first: AgentParts, { isBegun }: { isBegun: boolean }): void {
    if (this.#checked.has(first)) return
    const members = isBegun ? this.#all : gather(this.#tools, false)
    for (const [name, member] of members) if (member !== first) checkMember(name, member, first)
    for (const agent of [first, ...members.values()]) checkOwnHandoffs(agent, isBegun)
    if (isBegun) this.#checked.add(first)
  }

  get #all(): ReadonlyMap<string, AgentParts> {
    return (this.#members ??= gather(this.#tools, true))
  }
}

/** What is counted and hashed once knows parts by identity. */
const mixed = new WeakMap<AgentParts, WeakMap<AgentParts, AgentParts>>()

/** The agent that speaks has these parts as its own; all else is the first agent's. */
function mixParts(first: AgentParts, member: AgentParts): AgentParts {
  const { writeInstructions: _w, skillIndex: _i, prepareStep: _p, skills: _s, ...shared } = first
  const { model, models, instructions, writeInstructions, skillIndex, prepareStep, tools, skills } = member
  const { sampling, toolChoice, extraBody } = member
  return {
    ...shared,
    model,
    // Answers of one model are marked where others may go on.
    models: models ?? {},
    instructions,
    ...(writeInstructions && { writeInstructions }),
    ...(skillIndex !== undefined && { skillIndex }),
    ...(prepareStep && { prepareStep }),
    tools,
    ...(skills && { skills }),
    sampling,
    toolChoice,
    extraBody,
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
    if (known !== undefined)
      throw new ConfigError(
        'duplicate_handoff',
        `Two agents are called '${to}' by handoffs. Rename one: a session remembers by name who speaks.`,
        to,
      )
    members.set(to, member)
    queue.push(...listTools(member))
  }
  return members
}

const listTools = ({ tools }: AgentParts): Tool[] => tools.names.flatMap((name) => tools.get(name) ?? [])

function checkOwnHandoffs(agent: AgentParts, withLater: boolean): void {
  for (const { handoff } of listTools(agent)) {
    if (!handoff || (handoff.isLater && !withLater) || handoff.getParts() !== agent) continue
    throw new ConfigError(
      'invalid_handoff',
      `handoff '${handoff.to}' hands the conversation to the agent that has it. Name another agent.`,
      handoff.to,
    )
  }
}

/** Nothing that looks at content is lost without a word: it has to be the first agent's, too. */
function checkMember(name: string, member: AgentParts, first: AgentParts): void {
  const refuse = (key: string, what: string): never => {
    throw new ConfigError(
      'invalid_handoff',
      `handoff '${name}': the agent has ${what}, and a session has those of its first agent alone. Give ${key} to the first agent, too, or leave it out.`,
      key,
    )
  }
  for (const point of ['input', 'toolInput', 'toolOutput', 'output'] as const) {
    const lost = member.shields[point].find(
      (one) => !first.shields[point].some((other) => other.name === one.name && other.check === one.check),
    )
    if (lost) refuse(`shields.${point}`, `a shield of its own, '${lost.name}'`)
  }
  const lost = member.guards.find(
    (one) => !first.guards.some((other) => other.name === one.name && other.verdict === one.verdict),
  )
  if (lost) refuse('guards', `a guard of its own, '${lost.name}'`)
  if (member.memory && member.memory !== first.memory) refuse('memory', 'a memory of its own')
  if (member.stopWhen && member.stopWhen !== first.stopWhen) refuse('stopWhen', 'a stopWhen of its own')
  if (member.output && JSON.stringify(member.output.schema) !== JSON.stringify(first.output?.schema))
    refuse('output', 'an output schema of its own')
}
