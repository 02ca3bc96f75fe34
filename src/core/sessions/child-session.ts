import type { AgentContext } from '../../../machines/agent/context.js'
import { isSessionId } from './store/session-id.js'

type CallContext = Pick<AgentContext, 'sessionId' | 'runId' | 'batchNumber' | 'calls' | 'tools'>

/** Of a run's id, so much that two runs of one session never have the same. */
const runIdChars = 12

/**
 * The session of a call's sub-agent: `PARENT:RUN.BATCH.PLACE`. Ids of calls are unique only within a batch, and may hold
 * anything, so the place of the call stands for it. The colon keeps it from being the id of a chat: no such id has one. Where
 * such an id would be too long, and in logs of earlier versions, it does not begin with the parent's.
 */
export function getChildSessionId(
  { sessionId, runId, batchNumber, calls, tools }: CallContext,
  callId: string,
): string {
  const place = calls.findIndex(({ id }) => id === callId)
  const ofBatch = `${batchNumber}.${place + 1}`
  const own = `${sessionId}:${runId.replaceAll('-', '').slice(0, runIdChars)}.${ofBatch}`
  const isNested = tools[calls[place]?.name ?? '']?.nested === true
  return isNested && isSessionId(own) ? own : `${runId}.${ofBatch}`
}

/** The sessions of the sub-agents that have begun to work for the calls at hand. */
export function listChildSessions(context: AgentContext): string[] {
  return context.calls
    .filter(({ name, started, questions }) => (started || questions) && context.tools[name]?.delegate)
    .map(({ id }) => getChildSessionId(context, id))
}
