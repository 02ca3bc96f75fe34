import type { AgentContext } from '../../../machines/agent/context.js'
import { isSessionId } from './store/session-id.js'

type CallContext = Pick<AgentContext, 'sessionId' | 'runId' | 'batchNumber' | 'calls'>

/** Of a run's id, so much that two runs of one session never have the same. */
const runIdChars = 12

/**
 * The session of a call's sub-agent: `PARENT:RUN.BATCH.PLACE`. Ids of calls are unique only within a batch, and may hold
 * anything, so the index of the call is used. Chat ids contain no colon, so the id of a chat cannot collide with it. An id that
 * would be too long omits the parent's id.
 */
export function getChildSessionId(
  { sessionId, runId, batchNumber, calls }: CallContext,
  callId: string,
): string {
  const place = calls.findIndex(({ id }) => id === callId)
  const ofBatch = `${batchNumber}.${place + 1}`
  const own = `${sessionId}:${runId.replaceAll('-', '').slice(0, runIdChars)}.${ofBatch}`
  return isSessionId(own) ? own : `${runId}.${ofBatch}`
}

/** The sessions of the sub-agents that have begun to work for the calls at hand. */
export function listChildSessions(context: AgentContext): string[] {
  return context.calls
    .filter(({ name, started, questions }) => (started || questions) && context.tools[name]?.delegate)
    .map(({ id }) => getChildSessionId(context, id))
}
