import { internalsByAgent } from '../agent/agent-internals.js'
import { systemClock } from '../base/clock.js'
import { sendToStoredSession, type SendOptions } from '../run/send-to-stored-session.js'
import type { Receipt, SessionMessage } from '../sessions/inbox/session-message.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { Agents } from './define-agents.js'
import { getListedDefinition } from './stranded-sessions.js'

/** Tells a session something, as `agent.send` of its agent does. Also for a session whose agent this process does not have. */
export async function sendToSession(
  agents: Agents,
  store: SessionStore,
  session: string,
  message: SessionMessage,
  telling: SendOptions,
): Promise<Receipt> {
  const listed = await store.get(session)
  const acceptor = agents.findAgentFor(listed && getListedDefinition(listed))
  const made = acceptor && internalsByAgent.get(acceptor.agent)
  const parts = { store, clock: made?.parts.clock ?? systemClock, ...(made && { tools: made.tools }) }
  return sendToStoredSession(parts, session, message, telling)
}
