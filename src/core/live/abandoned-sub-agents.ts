import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import { getChildSessionId } from '../sessions/child-session.js'
import type { AgentRuntime } from './runtime.js'

/** Whether the open call of a sub-agent has a session of its own: it rests, or was under way. */
export function hasOpenChild(
  { tools }: Pick<AgentContext, 'tools'>,
  { name, questions, started, result }: BatchCall,
): boolean {
  // A tool that asks has no session.
  if (questions?.some(({ fromTool }) => fromTool)) return false
  const isBegun = questions !== undefined || (started === true && tools[name]?.delegate === true)
  return isBegun && result === undefined
}

/** The sessions of calls of sub-agents that are open. */
export function listOpenChildren(context: AgentContext): string[] {
  return context.calls
    .filter((call) => hasOpenChild(context, call))
    .map(({ id }) => getChildSessionId(context, id))
}

/**
 * Whether a sub-agent may go on in the store though its call is closed: the process that closed it may have died, or have lost the
 * store, before it could write the end there. A run that completed has seen to all of them.
 */
export function mayHaveLeftChildren({ state, tools }: AgentContext): boolean {
  return state !== 'COMPLETED' && Object.values(tools).some(({ delegate }) => delegate === true)
}

/**
 * Calls of sub-agents that an event has closed though their logs do not end: they rest, or were interrupted, in the store of
 * a process that is gone, or what they did here could not be written.
 */
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
