import { assembleAgent } from '../core/agent/agent.js'
import { type AgentInternals, internalsByAgent } from '../core/agent/agent-internals.js'
import type { Agent } from '../core/agent/agent-options.js'
import type { AnyAgent } from '../core/drive/define-agents.js'
import type { AgentParts } from '../core/live/agent-parts.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { EvaluationError } from './evaluate/evaluation-case.js'
import type { ToolTraits } from '../../machines/agent/batch-calls.js'
import type { ToolSpec } from '../core/models/provider.js'
import type { Team, Tool, ToolSearch } from '../core/tools/tool.js'
import type { ToolSet } from '../core/tools/tool-set.js'

export function getInternals(agent: AnyAgent): AgentInternals {
  const internals = internalsByAgent.get((agent as AnyAgent | null) ?? ({} as AnyAgent))
  if (internals) return internals
  throw new EvaluationError('not_an_agent', 'evaluate requires an agent created by createAgent().', 'agent')
}

export function rebindAgent(
  parts: AgentParts,
  store: SessionStore,
  changes: Partial<AgentParts> = {},
): Agent {
  return assembleAgent({ ...parts, ...changes }, { store, inspect: undefined })
}

/** Replaces each tool of an agent. Sub-agents do not run, because their tools become ordinary tools. */
export abstract class WrappedTools implements ToolSet {
  readonly #tools: ToolSet
  readonly #wrapped = new WeakMap<Tool, Tool>()
  #team: Team | undefined

  constructor(tools: ToolSet) {
    this.#tools = tools
  }

  protected abstract wrap(tool: Tool): Tool

  get(name: string): Tool | undefined {
    const tool = this.#tools.get(name)
    if (!tool) return undefined
    const known = this.#wrapped.get(tool)
    if (known) return known
    const { delegate: _delegate, ...wrapped } = this.wrap(tool)
    this.#wrapped.set(tool, wrapped)
    return wrapped
  }

  get names(): readonly string[] {
    return this.#tools.names
  }

  get specs(): readonly ToolSpec[] {
    return this.#tools.specs
  }

  get offered(): readonly ToolSpec[] {
    return this.#tools.offered
  }

  get deferred(): readonly Tool[] {
    return this.#tools.deferred
  }

  get search(): ToolSearch | undefined {
    return this.#tools.search
  }

  get isHosted() {
    return this.#tools.isHosted
  }

  get team(): Team | undefined {
    const { team } = this.#tools
    const wrap = (tools: ToolSet): ToolSet =>
      new MemberTools(
        tools,
        (tool) => this.wrap(tool),
        (traits) => this.trim(traits),
      )
    return team && (this.#team ??= wrapTeam(team, wrap))
  }

  get traits(): Record<string, ToolTraits> {
    return Object.fromEntries(
      Object.entries(this.#tools.traits).map(([name, traits]) => [name, this.trim(traits)]),
    )
  }

  protected trim({ delegate: _delegate, ...traits }: ToolTraits): ToolTraits {
    return traits
  }
}

class MemberTools extends WrappedTools {
  protected override readonly wrap: (tool: Tool) => Tool
  protected override readonly trim: (traits: ToolTraits) => ToolTraits

  constructor(tools: ToolSet, wrap: (tool: Tool) => Tool, trim: (traits: ToolTraits) => ToolTraits) {
    super(tools)
    this.wrap = wrap
    this.trim = trim
  }
}

type Member = Pick<AgentParts, 'tools'>

function wrapTeam(team: Team, wrap: (tools: ToolSet) => ToolSet): Team {
  const members = new Map<object, Member>()
  const wrapMember = (agent: object | undefined): Member | undefined => {
    const member = agent as Member | undefined
    if (!member) return undefined
    const wrapped = members.get(member) ?? { ...member, tools: wrap(member.tools) }
    members.set(member, wrapped)
    return wrapped
  }
  return {
    find: (name) => wrapMember(team.find(name)),
    mix: (name, first) => wrapMember(team.mix(name, first)),
    list: () => team.list(),
    check: (...of) => team.check(...of),
  }
}
