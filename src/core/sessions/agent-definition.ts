import type { AgentContext } from '../../../machines/agent/context.js'
import { isSessionId } from './store/session-id.js'

/** The agent that started a run, in the log, so that another process can decide whether it may resume. */
export interface AgentDefinition {
  /** The agent's name in `defineAgents`. Absent if the agent was not defined there. */
  name?: string
  /** The version set by the author. Absent if there is none. */
  version?: string
  /** A hash of the instructions, tools and models of the agent and its handoff targets, as 16 hexadecimal digits. */
  hash: string
}

export interface AgentLabel {
  name: string
  version?: string
  /** The versions whose sessions the agent continues. Absent if it continues all versions. */
  accepts?: readonly string[]
}

/** Ignores unknown values. */
export function readDefinition(stored: unknown): AgentDefinition | null {
  const { name, version, hash } = (stored ?? {}) as Partial<Record<keyof AgentDefinition, unknown>>
  if (typeof hash !== 'string') return null
  return {
    ...(typeof name === 'string' && { name }),
    ...(typeof version === 'string' && { version }),
    hash,
  }
}

/** The agent that started a run, as lists and alarms name it. Null if unknown. */
export function getListedDefinition(
  listed: { agent?: string; version?: string } | null,
): AgentDefinition | null {
  const { agent: name, version } = listed ?? {}
  return name === undefined ? null : { hash: '', name, ...(version !== undefined && { version }) }
}

/** Any agent continues a run of an unnamed agent. A named agent's run needs the same name and an accepted version. */
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

export const isSubAgentName = (name: string | undefined): boolean => name?.startsWith(subAgentPrefix) === true

/** The name and version of an agent for display, such as `billing 3`. */
export function describeAgent(agent: Pick<AgentDefinition, 'name' | 'version'> | null | undefined): string {
  const { name = 'an agent without a name', version } = agent ?? {}
  return version === undefined ? name : `${name} ${version}`
}

type CallContext = Pick<AgentContext, 'sessionId' | 'runId' | 'batchNumber' | 'calls'>

/** Unique among the runs of a session. */
const runIdChars = 12

/**
 * `PARENT:RUN.BATCH.PLACE`, or without the parent if that would be too long. Uses the place, because call ids are
 * unique only within a batch and can contain any character. Chat ids contain no colon, so none can equal such an id.
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
