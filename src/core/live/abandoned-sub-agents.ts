import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import { getChildSessionId } from '../sessions/agent-definition.js'
import type { AgentRuntime } from './runtime.js'

/** Whether a call is open and its sub-agent has a session, because the sub-agent was started or rests. */
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

/**
 * Whether sub-agents of closed calls may still be active in the store. This happens if the process that closed a call
 * crashed, or lost the store before the sub-agent's end was stored. A completed run has ended all its sub-agents.
 */
export function mayHaveLeftChildren({ state, tools }: AgentContext): boolean {
  return state !== 'COMPLETED' && Object.values(tools).some(({ delegate }) => delegate === true)
}

/**
 * Finds closed calls whose sub-agent's log does not record an end, because the sub-agent's process is gone or the log
 * could not be written.
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
