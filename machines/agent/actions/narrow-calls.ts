import type { EmittedEvent } from '../announcements.js'
import type { BatchCall, ToolResult } from '../batch-calls.js'
import type { AgentContext } from '../context.js'
import type { ActiveSkill } from '../skills.js'
import { closeCall } from './update-transcript.js'

/**
 * Refuses the calls of tools that the plan of the step leaves out, or that an active skill does not allow, and each handoff after the
 * first; undefined where every call is allowed.
 */
export function narrowCalls(
  context: AgentContext,
  now: number,
  emit: (announcement: EmittedEvent) => void,
): Pick<AgentContext, 'calls'> | undefined {
  const planned = context.plan?.step === context.steps ? context.plan.tools : undefined
  const handoff = findFirstHandoff(context)
  if (context.skills.length === 0 && planned === undefined && handoff === undefined) return undefined
  const refuse = (call: BatchCall): BatchCall => {
    if (handoff && call !== handoff && isHandoff(context, call)) return closeCall(call, handedOver, now, emit)
    if (planned?.includes(call.name) === false) return closeCall(call, leftOut, now, emit)
    const skill = findForbiddingSkill(context, call.name)
    return skill ? closeCall(call, createRefusal(context, skill), now, emit) : call
  }
  const calls = context.calls.map(refuse)
  return calls.every((call, i) => call === context.calls[i]) ? undefined : { calls }
}

const leftOut: ToolResult = {
  status: 'blocked',
  content: 'Not executed: this step may not call this tool.',
  durationMs: 0,
}

/** A conversation goes on under one agent: of several handoffs in one answer, the first counts. Undefined where there are no two. */
function findFirstHandoff(context: AgentContext): BatchCall | undefined {
  if (context.calls.length < 2) return undefined
  const [first, second] = context.calls.filter((call) => isHandoff(context, call))
  return second && first
}

function isHandoff({ tools }: AgentContext, { name }: BatchCall): boolean {
  return Object.hasOwn(tools, name) && tools[name]?.handoff === true
}

const handedOver: ToolResult = {
  status: 'blocked',
  content:
    'Not executed: one answer hands the conversation to one agent, and an earlier call of this answer does.',
  durationMs: 0,
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
