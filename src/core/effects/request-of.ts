import type { AgentContext } from '../../../machines/agent/context.js'
import { fittedMessages } from '../context/fitted-messages.js'
import type { AgentParts } from '../live/parts.js'
import { retrievedText } from '../memory/as-data.js'
import type { ModelRequest } from '../models/provider.js'
import { demandOutput } from '../structured/demand-output.js'

/** What the model is asked next; to conclude is to ask for a last answer, without tools. */
export function requestOf(parts: AgentParts, context: AgentContext, conclude: boolean): ModelRequest {
  const request: ModelRequest = {
    instructions: parts.instructions,
    messages: fittedMessages(context.messages, context.fit),
    nudges: [...remembered(context), ...context.nudges, ...(conclude ? [lastAnswer] : [])],
    tools: conclude ? [] : parts.tools.specs,
    ...(parts.toolChoice !== undefined && !conclude && { toolChoice: parts.toolChoice }),
    sampling: parts.sampling,
    extraBody: parts.extraBody,
    stream: context.config.stream,
  }
  return parts.output ? demandOutput(parts.output, request, parts.model, conclude) : request
}

/** What memory found rides along as data; the transcript does not keep it. */
function remembered({ retrieved }: AgentContext): string[] {
  return retrieved && retrieved.length > 0 ? [retrievedText(retrieved)] : []
}

const lastAnswer = 'This is your last answer: no more tools can be called. Answer now with what you know.'
