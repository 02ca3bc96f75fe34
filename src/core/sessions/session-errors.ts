import { UsageError, optionError } from '../base/errors.js'
import { type AgentDefinition, type AgentLabel, describeAgent, isSubAgentName } from './agent-definition.js'
import type { FoldedSession } from './fold-session.js'

export function noStoreError(): UsageError {
  const message =
    'This agent has no store, so its sessions are not saved. Add one: createAgent({ store: fileStore({ dir }) }).'
  return new UsageError('no_store', message, 'store')
}

/** Only one run at a time may append to the log. */
export function refuseUnfinishedRun({ run }: FoldedSession, sessionId: string): void {
  if (run?.status !== 'active') return
  const message =
    `Session '${sessionId}' has a run that is ${run.context.state ?? 'RUNNING'}. ` +
    `Continue it with agent.resume('${sessionId}'), or cancel it with agent.send('${sessionId}', { type: 'cancel' }).`
  throw new UsageError('unfinished_run', message, sessionId)
}

/** The session that called a sub-agent has the ids of its calls. */
export function refuseSubAgentSession(sessionId: string, parent: string | undefined): void {
  if (parent === undefined) return
  const message =
    `Session '${sessionId}' belongs to a sub-agent and accepts no messages or answers. Send the message or the answer to ` +
    `session '${parent}', which called it. agent.fork('${sessionId}') creates an independent session.`
  throw new UsageError('sub_agent_session', message, sessionId)
}

export function lostSpeakerError(speaker: string): UsageError {
  return new UsageError('unknown_agent', describeLostSpeaker(speaker), speaker)
}

export function describeLostSpeaker(speaker: string): string {
  return `The conversation was handed over to '${speaker}', but this agent has no handoff with that name. Add handoff(agent, { name: '${speaker}' }) to tools in createAgent.`
}

export function nothingToResumeError(sessionId: string): UsageError {
  const message = `Session '${sessionId}' has no run yet. Start one with agent.run(input, { session: '${sessionId}' }).`
  return new UsageError('nothing_to_resume', message, sessionId)
}

/** Another process may have the agent, now or after the next deployment. `here` lists the agents of this process. */
export function strandedError(
  sessionId: string,
  definition: AgentDefinition | null,
  here: readonly (AgentLabel | undefined)[],
): UsageError {
  if (isSubAgentName(definition?.name)) {
    const message =
      `Session '${sessionId}' belongs to ${describeAgent(definition)}, which another run or a machine has called. Resume that ` +
      'run, or send the event to that machine.'
    return new UsageError('stranded', message, sessionId)
  }
  const present = here.map((label) =>
    label?.accepts ? `${label.name} (accepts ${label.accepts.join(', ')})` : describeAgent(label),
  )
  const { name = 'NAME', version = '…' } = definition ?? {}
  const message =
    `Session '${sessionId}' needs ${describeAgent(definition)}, but this process has ${present.join(', ')}. Deploy that ` +
    `version, or accept it: defineAgents({ ${name}: { agent, version, accepts: ['${version}'] } }).`
  return new UsageError('stranded', message, sessionId)
}

export function refuseJournalWithStore(journal: unknown): void {
  if (journal === undefined) return
  const message =
    'A run can be written to only one log. Pass a store to the agent or a journal to the run, but not both.'
  throw optionError(message, 'journal')
}

export function refuseTags(tags: unknown): void {
  if (tags === undefined) return
  const message =
    'tags need a store, because store.list() reads them. Pass a store to the agent, and start the run with agent.run().'
  throw optionError(message, 'tags')
}

/** An app's own actor does not use the store, so an existing conversation would silently restart. */
export function refuseStoredSession(sessionId: string): never {
  const message =
    `Session '${sessionId}' is in the store, which agent.createInput() does not read. Pass session: await ` +
    `agent.readSession('${sessionId}'), or call agent.run(input, { session: '${sessionId}' }).`
  throw optionError(message, 'session')
}

export function messageChangedError(clientId: string): UsageError {
  return new UsageError(
    'message_changed',
    'This message was already sent with a different text. Sent messages cannot be changed. Send the new text as a new message.',
    clientId,
  )
}
