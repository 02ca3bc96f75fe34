import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import type { AgentRuntime } from './runtime.js'

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
  return before.calls.filter(({ id, name, questions, started, result }) => {
    const isBegun = questions !== undefined || (started === true && before.tools[name]?.delegate === true)
    const child = runtime.children.get(id)
    const isKept = (id === ended || child !== undefined) && child?.isUnwritten !== true
    if (!isBegun || result !== undefined || isKept) return false
    return !after.calls.some((call) => call.id === id && call.result === undefined)
  })
}
