import { createModelFailure } from '../../../machines/agent/model-response.js'
import { describeLostSpeaker } from '../sessions/session-errors.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { AgentParts } from './agent-parts.js'

/**
 * The parts of a session's agent as those of the agent that speaks. Throws a plain failure where no handoff of the agent leads to it:
 * a session can outlive the handoff.
 */
export function toSpeaker(parts: AgentParts, speaker: string | null | undefined): AgentParts {
  if (speaker == null) return parts
  const mixed = parts.tools.team?.mix(speaker, parts) as AgentParts | undefined
  if (mixed !== undefined) return mixed
  const message = describeLostSpeaker(speaker)
  throw { ...createModelFailure({ kind: 'fatal', code: 'unknown_agent', message }), usage: null, jitter: 1 }
}

/** Whether the conversation was handed to an agent to which no handoff among the tools leads any more. */
export function isLostSpeaker(tools: ToolSet, speaker: string | null | undefined): speaker is string {
  return speaker != null && !tools.team?.find(speaker)
}

/** The tools of the agent that speaks; those of the first agent where it is not known. */
export function getSpeakerTools(tools: ToolSet, speaker: string | null | undefined): ToolSet {
  const member = speaker == null ? undefined : tools.team?.find(speaker)
  return (member as Pick<AgentParts, 'tools'> | undefined)?.tools ?? tools
}
