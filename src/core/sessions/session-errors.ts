import { UsageError, optionError } from '../base/errors.js'
import { type AgentDefinition, type AgentLabel, describeAgent, isSubAgentName } from './agent-definition.js'
import type { FoldedSession } from './fold-session.js'

/** Errors for operations that a session does not allow. Each states a remedy. */

export function noStoreError(): UsageError {
  return new UsageError(
    'no_store',
    'This agent has no store, so its sessions are not saved. Add one: createAgent({ store: fileStore({ dir }) }).',
    'store',
  )
}

/** Rejects a session with an unfinished run, because only one run at a time may append to the log. */
export function refuseUnfinishedRun({ run }: FoldedSession, sessionId: string): void {
  if (run?.status !== 'active') return
  throw new UsageError(
    'unfinished_run',
    `Session '${sessionId}' has a run that is ${run.context.state ?? 'RUNNING'}. ` +
      `Continue it with agent.resume('${sessionId}'), or cancel it with agent.send('${sessionId}', { type: 'cancel' }).`,
    sessionId,
  )
}

/**
 * Rejects the session of a sub-agent. Messages and answers for a sub-agent must be sent to the session that called it,
 * because that session has the ids of the sub-agent's calls.
 */
export function refuseSubAgentSession(sessionId: string, parent: string | undefined): void {
  if (parent === undefined) return
  throw new UsageError(
    'sub_agent_session',
    `Session '${sessionId}' belongs to a sub-agent and accepts no messages or answers. Send the message or the answer to ` +
      `session '${parent}', which called it. agent.fork('${sessionId}') creates an independent session.`,
    sessionId,
  )
}

/** The error if the conversation was handed to an agent that no longer exists. */
export function lostSpeakerError(speaker: string): UsageError {
  return new UsageError('unknown_agent', describeLostSpeaker(speaker), speaker)
}

/** The error text for a session whose current agent is not reachable by handoffs from its first agent. */
export function describeLostSpeaker(speaker: string): string {
  return `The conversation was handed over to '${speaker}', but this agent has no handoff with that name. Add handoff(agent, { name: '${speaker}' }) to tools in createAgent.`
}

export function nothingToResumeError(sessionId: string): UsageError {
  return new UsageError(
    'nothing_to_resume',
    `Session '${sessionId}' has no run yet. Start one with agent.run(input, { session: '${sessionId}' }).`,
    sessionId,
  )
}

/**
 * The error if this process has no agent for the session. Another process may have the agent, now or after the next
 * deployment. `here` lists the agents of this process.
 */
export function strandedError(
  sessionId: string,
  definition: AgentDefinition | null,
  here: readonly (AgentLabel | undefined)[],
): UsageError {
  if (isSubAgentName(definition?.name)) {
    return new UsageError(
      'stranded',
      `Session '${sessionId}' belongs to ${describeAgent(definition)}, which another run or a machine has called. Resume that ` +
        'run, or send the event to that machine.',
      sessionId,
    )
  }
  const present = here.map((label) =>
    label?.accepts ? `${label.name} (accepts ${label.accepts.join(', ')})` : describeAgent(label),
  )
  const { name = 'NAME', version = '…' } = definition ?? {}
  return new UsageError(
    'stranded',
    `Session '${sessionId}' needs ${describeAgent(definition)}, but this process has ${present.join(', ')}. Deploy that ` +
      `version, or accept it: defineAgents({ ${name}: { agent, version, accepts: ['${version}'] } }).`,
    sessionId,
  )
}

/** Rejects a journal that is combined with a store, because the store already writes a log. */
export function refuseJournalWithStore(journal: unknown): void {
  if (journal === undefined) return
  throw optionError(
    'A run can be written to only one log. Pass a store to the agent or a journal to the run, but not both.',
    'journal',
  )
}

/** Rejects tags, which require a store. Without a store, and in an app's own actor, there is no session list. */
export function refuseTags(tags: unknown): void {
  if (tags === undefined) return
  throw optionError(
    'tags need a store, because store.list() reads them. Pass a store to the agent, and start the run with agent.run().',
    'tags',
  )
}

/**
 * Rejects a session id. An app's own actor does not use the store, so an existing conversation would silently restart.
 */
export function refuseStoredSession(sessionId: string): never {
  throw optionError(
    `Session '${sessionId}' is in the store, which agent.createInput() does not read. Pass session: await ` +
      `agent.readSession('${sessionId}'), or call agent.run(input, { session: '${sessionId}' }).`,
    'session',
  )
}

/** The error if the id of a message was reused with different content. */
export function messageChangedError(clientId: string): UsageError {
  return new UsageError(
    'message_changed',
    'This message was already sent with a different text. Sent messages cannot be changed. Send the new text as a new message.',
    clientId,
  )
}
