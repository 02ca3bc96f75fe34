import type { AnyActorRef } from 'xstate'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import type { ToolSet } from '../tools/tool-set.js'
import { getChildSessionId } from '../sessions/child-session.js'
import type { AgentRuntime } from './runtime.js'

/**
 * Calls of sub-agents that an event has closed though none of them is here: they rest, or were interrupted, in the store
 * of a process that is gone.
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
    if (!isBegun || result !== undefined || id === ended || runtime.children.has(id)) return false
    return !after.calls.some((call) => call.id === id && call.result === undefined)
  })
}

/** Ends the run of such a call, so that its log does not wait for ever. What cannot be reached is left as it is. */
export async function cancelAbandonedChild(
  runtime: AgentRuntime,
  context: AgentContext,
  call: BatchCall,
  tools: ToolSet,
): Promise<void> {
  const { store, depth = 0, maxDepth = Infinity, context: app } = runtime.binding
  try {
    const run = await tools.get(call.name)?.delegate?.open({
      name: call.name,
      message: '',
      sessionId: getChildSessionId(context, call.id),
      parentSessionId: context.sessionId,
      isBegun: true,
      parent: runtime.scope.self as AnyActorRef,
      actorId: `${call.name} ${call.id}`,
      store,
      left: { tokens: null, outputTokens: null, cost: null },
      countCached: true,
      prices: runtime.prices,
      budgets: undefined,
      depth: depth + 1,
      maxDepth,
      context: app,
      above: undefined,
      isUnwanted: () => true,
      watch: () => undefined,
      onEvent: () => undefined,
    })
    run?.cancel('The run that it worked for has ended.')
  } catch {
    // Another process resumes it, or the store is gone.
  }
}
