import type { AgentContext, AgentMachineEvent } from '../../../machines/agent/context.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import { getChildSessionId } from '../sessions/agent-definition.js'
import type { AgentRuntime } from './runtime.js'

/** Whether the sub-agent of an open call has a session. */
export function hasOpenChild(
  { tools }: Pick<AgentContext, 'tools'>,
  { name, questions, started, result }: BatchCall,
): boolean {
  // A tool that asks questions has no session.
  if (questions?.some(({ fromTool }) => fromTool)) return false
  const isBegun = questions !== undefined || (started === true && tools[name]?.delegate === true)
  return isBegun && result === undefined
}

export function listOpenChildren(context: AgentContext): string[] {
  return context.calls
    .filter((call) => hasOpenChild(context, call))
    .map(({ id }) => getChildSessionId(context, id))
}

/** Sub-agents of closed calls may still be active if the process that closed a call crashed or lost the store. */
export function mayHaveLeftChildren({ state, tools }: AgentContext): boolean {
  return state !== 'COMPLETED' && Object.values(tools).some(({ delegate }) => delegate === true)
}

/** Closed calls whose sub-agent's log records no end, because its process or the log is gone. */
export function findAbandonedCalls(
  runtime: AgentRuntime,
  before: AgentContext,
  after: AgentContext,
  event: AgentMachineEvent,
): BatchCall[] {
  if (!runtime.binding.store) return []
  const ended = event.type === 'TOOL_RESULT' ? event.callId : null
  return before.calls.filter((one) => {
    const { id } = one
    const child = runtime.children.get(id)
    const isKept = (id === ended || child !== undefined) && child?.isUnwritten !== true
    if (isKept || !hasOpenChild(before, one)) return false
    return !after.calls.some((call) => call.id === id && call.result === undefined)
  })
}
