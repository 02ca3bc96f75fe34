import type { AgentContext } from '../../../machines/agent/context.js'
import type { UserGuardsOutput } from '../../../machines/agent/consultation.js'
import { consultUserGuards } from '../user-guards/consult-user-guards.js'
import { createGuardCallsFact, createGuardResultsFact } from '../user-guards/guard-facts.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'

/** Asks the user's own guards about the batch at hand. What they throw or forget to return is plain data already. */
export async function consultGuards(
  parts: AgentParts,
  {
    on,
    signal,
    runtime,
    context,
  }: { on: 'calls' | 'results'; signal: AbortSignal; runtime: AgentRuntime; context: AgentContext },
): Promise<UserGuardsOutput> {
  await runtime.waitUntilDurable()
  signal.throwIfAborted()
  const fact = on === 'calls' ? createGuardCallsFact(context) : createGuardResultsFact(context)
  const { clock, binding } = runtime
  return consultUserGuards(parts.guards, context.guardrails.user, fact, {
    signal,
    clock,
    context: binding.context,
  })
}
