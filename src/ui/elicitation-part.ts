import type { Json } from '../../machines/agent/json.js'
import type { Elicitation, UnansweredCall } from '../../machines/agent/run-result.js'

/** What the server of a tool asks, as the part of a message: a call of a tool `elicitation`, whose input is the question. */
export function toElicitationPart({ callId, elicitation }: UnansweredCall & { elicitation: Elicitation }) {
  return {
    toolCallId: callId,
    toolName: 'elicitation',
    title: `${elicitation.server} asks`,
    input: elicitation as unknown as Json,
  }
}
