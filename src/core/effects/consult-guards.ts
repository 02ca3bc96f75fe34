import type { AgentContext } from '../../../machines/agent/context.js'
import type { UserGuardsOutput } from '../../../machines/agent/consultation.js'
import { consult } from '../user-guards/consult.js'
import { callsFact, resultsFact } from '../user-guards/facts.js'
import type { Live } from '../live/live.js'
import type { AgentParts } from '../live/parts.js'

/** Asks the user's own guards about the batch at hand. What they throw or forget to return is plain data already. */
export async function consultGuards(
  parts: AgentParts,
  {
    on,
    signal,
    live,
    context,
  }: { on: 'calls' | 'results'; signal: AbortSignal; live: Live; context: AgentContext },
): Promise<UserGuardsOutput> {
  await live.flushed()
  signal.throwIfAborted()
  const fact = on === 'calls' ? callsFact(context) : resultsFact(context)
  const { clock, binding } = live
  return consult(parts.guards, context.guardrails.user, fact, { signal, clock, context: binding.context })
}
