import { getOrCreate } from '../core/base/values.js'
import { assembleAgent } from '../core/agent/agent.js'
import { type AgentInternals, internalsByAgent } from '../core/agent/agent-internals.js'
import type { Agent } from '../core/agent/agent-options.js'
import type { AnyAgent } from '../core/drive/define-agents.js'
import type { AgentParts } from '../core/live/agent-parts.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { EvaluationError } from './evaluate/evaluation-case.js'
import type { ToolTraits } from '../../machines/agent/batch-calls.js'
import type { Team, Tool } from '../core/tools/tool.js'
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

interface ToolChanges {
  wrap: (tool: Tool) => Tool
  trim: (traits: ToolTraits) => ToolTraits
  /** Whether handoffs stay. Then the tools of their targets are changed too. Defaults to true. */
  hasTeam?: boolean
}

/** Changes each tool of an agent. Sub-agents do not run, because their tools become ordinary tools. */
export function wrapTools(tools: ToolSet, changes: ToolChanges): ToolSet {
  const { wrap, trim, hasTeam = true } = changes
  const wrapped = new WeakMap<Tool, Tool>()
  const teams = new WeakMap<Team, Team>()
  const wrapTool = (tool: Tool): Tool =>
    getOrCreate(wrapped, tool, () => {
      const { delegate: _delegate, ...ordinary } = wrap(tool)
      return ordinary
    })
  const trimTraits = ({ delegate: _delegate, ...traits }: ToolTraits): ToolTraits => trim(traits)
  // Everything else is inherited, because a source may change it at any time.
  return Object.create(tools, {
    get: {
      value: (name: string) => {
        const tool = tools.get(name)
        return tool && wrapTool(tool)
      },
    },
    traits: {
      get: () =>
        Object.fromEntries(Object.entries(tools.traits).map(([name, traits]) => [name, trimTraits(traits)])),
    },
    team: {
      get: () => {
        const { team } = tools
        return hasTeam && team ? getOrCreate(teams, team, () => wrapTeam(team, changes)) : undefined
      },
    },
  }) as ToolSet
}

type Member = Pick<AgentParts, 'tools'>

function wrapTeam(team: Team, changes: ToolChanges): Team {
  const members = new Map<object, Member>()
  const wrapMember = (agent: object | undefined): Member | undefined => {
    const member = agent as Member | undefined
    return (
      member && getOrCreate(members, member, () => ({ ...member, tools: wrapTools(member.tools, changes) }))
    )
  }
  return {
    find: (name) => wrapMember(team.find(name)),
    mix: (name, first) => wrapMember(team.mix(name, first)),
    list: () => team.list(),
    check: (...of) => team.check(...of),
  }
}
