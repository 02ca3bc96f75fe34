import type { EmittedEvent } from '../announcements.js'
import type { BatchCall, ToolResult } from '../batch-calls.js'
import type { AgentContext } from '../context.js'
import type { ActiveSkill } from '../skills.js'
import { closeCall } from './update-transcript.js'

/** Refuses the calls of tools that an active skill does not allow; undefined where every call is allowed. */
export function narrowCalls(
  context: AgentContext,
  now: number,
  emit: (announcement: EmittedEvent) => void,
): Pick<AgentContext, 'calls'> | undefined {
  if (context.skills.length === 0) return undefined
  const refuse = (call: BatchCall): BatchCall => {
    const skill = findForbiddingSkill(context, call.name)
    return skill ? closeCall(call, createRefusal(context, skill), now, emit) : call
  }
  const calls = context.calls.map(refuse)
  return calls.every((call, i) => call === context.calls[i]) ? undefined : { calls }
}

/** The active skill that does not allow a tool; undefined: it may be called. */
function findForbiddingSkill({ skills, tools }: AgentContext, name: string): ActiveSkill | undefined {
  if (Object.hasOwn(tools, name) && tools[name]?.skill) return undefined
  return skills.find(({ allowedTools }) => allowedTools !== undefined && !allowedTools.includes(name))
}

function createRefusal({ tools }: AgentContext, { name, allowedTools = [] }: ActiveSkill): ToolResult {
  const allowed = allowedTools.length === 0 ? 'no tools' : `only ${allowedTools.join(', ')}`
  // The agent that goes on with a session may have no skills.
  const way = Object.hasOwn(tools, 'unload_skill') ? ' Or take the skill back with unload_skill.' : ''
  const content = `Not executed: the skill '${name}' is loaded, and allows ${allowed}.${way}`
  return { status: 'blocked', content, durationMs: 0 }
}
