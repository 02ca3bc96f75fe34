import type { AgentContext } from '../../../machines/agent/context.js'
import { loadOnce } from '../base/platform.js'
import { listOpenChildren, mayHaveLeftChildren } from '../live/abandoned-sub-agents.js'
import type { AgentRuntime } from '../live/runtime.js'
import { getChildSessionId } from '../sessions/child-session.js'
import type { FoldedSession } from '../sessions/fold-session.js'
import type { StoreParts } from './end-stored-run.js'

const loadEnding = loadOnce(() => import('./end-stored-run.js'))

/** Ends the run of a call that `findAbandonedCalls` has found, so that its log does not wait for ever. Never rejects. */
export async function endAbandonedChild(
  { binding, clock }: AgentRuntime,
  context: AgentContext,
  callId: string,
): Promise<void> {
  const { store, journal } = binding
  if (!store) return
  try {
    const { endChildSession } = await loadEnding()
    await journal?.flush()
    await endChildSession({ store, clock }, getChildSessionId(context, callId))
  } catch {
    // That the call is closed is not in the log: another process goes on with the run, and with its sub-agents.
  }
}

/**
 * Ends what earlier processes have left of sub-agents, for a process that has just taken the session of the run above. Never
 * rejects.
 */
export async function endLeftChildren(parts: StoreParts, { run }: Pick<FoldedSession, 'run'>): Promise<void> {
  if (run === null || !mayHaveLeftChildren(run.context)) return
  const { endChildrenExcept } = await loadEnding()
  const isOpen = run.status === 'active' ? listOpenChildren(run.context) : []
  await endChildrenExcept(parts, run.context.sessionId, isOpen)
}
