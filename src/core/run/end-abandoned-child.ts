import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { loadOnce } from '../base/lazy-load.js'
import type { AgentRuntime } from '../live/runtime.js'
import { getChildSessionId } from '../sessions/child-session.js'

const loadEnding = loadOnce(() => import('./end-stored-run.js'))

/** Ends the run of a call that `findAbandonedCalls` has found, so that its log does not wait for ever. Never rejects. */
export async function endAbandonedChild(
  { binding, clock }: AgentRuntime,
  context: AgentContext,
  call: BatchCall,
): Promise<void> {
  const { store, journal } = binding
  if (!store) return
  try {
    const { endChildSession } = await loadEnding()
    await journal?.flush()
    await endChildSession({ store, clock }, getChildSessionId(context, call.id))
  } catch {
    // That the call is closed is not in the log: another process goes on with the run, and with its sub-agents.
  }
}
