import type { AgentContext } from '../../../machines/agent/context.js'
import { isSessionId } from './store/session-id.js'

/**
 * Identifies the agent that started a run. It is stored in the log, so that another process can decide whether it may
 * resume the run.
 */
export interface AgentDefinition {
  /** The agent's name in `defineAgents`. Absent if the agent was not defined there. */
  name?: string
  /** The version set by the author. Absent if there is none. */
  version?: string
  /** A hash of the instructions, tools and models of the agent and its handoff targets, as 16 hexadecimal digits. */
  hash: string
}

/** The name and version of an agent in `defineAgents`. */
export interface AgentLabel {
  name: string
  version?: string
  /** The versions whose sessions the agent continues. Absent if it continues all versions. */
  accepts?: readonly string[]
}

/** Parses the definition in a log. Unknown values are ignored. */
export function readDefinition(stored: unknown): AgentDefinition | null {
  const { name, version, hash } = (stored ?? {}) as Partial<Record<keyof AgentDefinition, unknown>>
  if (typeof hash !== 'string') return null
  return {
    ...(typeof name === 'string' && { name }),
    ...(typeof version === 'string' && { version }),
    hash,
  }
}

/**
 * Whether an agent with this label may continue a run of this definition. Any agent may continue a run of an unnamed
 * agent. A named agent's run requires an agent with the same name that accepts its version.
 */
export function acceptsDefinition(
  label: AgentLabel | undefined,
  definition: Pick<AgentDefinition, 'name' | 'version'> | null,
): boolean {
  const { name, version } = definition ?? {}
  if (name === undefined) return true
  if (name !== label?.name) return false
  return version === undefined || label.accepts === undefined || label.accepts.includes(version)
}

/** Contains a space, which `defineAgents` does not allow in names. */
const subAgentPrefix = 'sub-agent '

/** The label of a sub-agent's session in the log. Only the run that called the sub-agent continues it. */
export const createSubAgentLabel = (tool: string): AgentLabel => ({ name: subAgentPrefix + tool })

/** Whether a session belongs to a sub-agent. */
export const isSubAgentName = (name: string | undefined): boolean => name?.startsWith(subAgentPrefix) === true

/** The name and version of an agent for display, such as `billing 3`. */
export function describeAgent(agent: Pick<AgentDefinition, 'name' | 'version'> | null | undefined): string {
  const { name = 'an agent without a name', version } = agent ?? {}
  return version === undefined ? name : `${name} ${version}`
}

type CallContext = Pick<AgentContext, 'sessionId' | 'runId' | 'batchNumber' | 'calls'>

/** Length of the run id prefix in a child id. The prefix is long enough to be unique among the runs of a session. */
const runIdChars = 12

/**
 * The session of a call's sub-agent: `PARENT:RUN.BATCH.PLACE`. Uses the index of the call, because call ids are unique
 * only within a batch and can contain any characters. Chat ids contain no colon, so they cannot collide with these ids.
 * If the id would be too long, the parent's id is omitted.
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

/** The sessions of the sub-agents that were started for the current calls. */
export function listChildSessions(context: AgentContext): string[] {
  return context.calls
    .filter(({ name, started, questions }) => (started || questions) && context.tools[name]?.delegate)
    .map(({ id }) => getChildSessionId(context, id))
}
