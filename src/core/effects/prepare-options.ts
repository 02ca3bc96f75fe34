import type { AgentContext } from '../../../machines/agent/context.js'
import { isUnloadedTool } from '../../../machines/agent/batch-calls.js'
import type { CallAbort } from '../base/abort.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { Binding } from '../live/runtime.js'
import type { PrepareOptions } from '../tools/prepare-calls.js'

function getPoliciesInForce({ policies = [] }: Pick<AgentParts, 'policies'>, { policiesAbove }: Binding) {
  return { policies: [...policies, ...(policiesAbove?.policies ?? [])], path: policiesAbove?.path ?? [] }
}

export function getPoliciesBelow(
  parts: Pick<AgentParts, 'policies'>,
  binding: Binding,
  name: string,
): Binding['policiesAbove'] {
  const { policies, path } = getPoliciesInForce(parts, binding)
  return policies.length === 0 ? undefined : { policies, path: [...path, name] }
}

/** Options for checking whether the calls of a run may execute. `abort` aborts when the run stops. */
export function toPrepareOptions(
  parts: AgentParts,
  context: AgentContext,
  binding: Binding,
  abort: AbortSignal | CallAbort,
): PrepareOptions {
  const { tools, clock } = parts
  const options: PrepareOptions = {
    context: binding.context,
    defaultTimeoutMs: context.config.toolCalls.timeoutMs,
    clock,
    isUnloaded: tools.search && ((name) => isUnloadedTool(context, name)),
    askFirst: context.terms?.askFirst,
  }
  const { policies, path } = getPoliciesInForce(parts, binding)
  if (policies.length === 0) return options
  const requester = context.requesters?.at(-1)
  const session = { id: context.sessionId, tags: binding.tags?.() ?? {} }
  const call = { context: binding.context, session, path, ...(requester && { requester }) }
  return { ...options, policies: { policies, call, abort } }
}
