import type { AgentContext } from '../../../machines/agent/context.js'
import { fitMessages } from '../context/fit-messages.js'
import type { AgentParts } from '../live/agent-parts.js'
import { formatSnippets } from '../memory/retrieved-text.js'
import type { ModelRequest } from '../models/provider.js'
import { demandOutput, canTakeFormat } from '../structured/demand-output.js'

/** The next request. `conclude` asks for a last answer, in which no tool can be called. */
export function buildRequest(parts: AgentParts, context: AgentContext, conclude: boolean): ModelRequest {
  const forbids = conclude && context.fit === null && canForbidCalls(parts)
  const toolChoice = conclude ? (forbids ? 'none' : undefined) : parts.toolChoice
  const request: ModelRequest = {
    instructions: parts.instructions,
    messages: fitMessages(context.messages, context.fit),
    nudges: [...formatRetrieved(context), ...context.nudges, ...(conclude ? [lastAnswer] : [])],
    tools: conclude && !forbids ? [] : parts.tools.specs,
    ...(toolChoice !== undefined && { toolChoice }),
    sampling: parts.sampling,
    extraBody: parts.extraBody,
    stream: context.config.stream,
  }
  return parts.output ? demandOutput(parts.output, request, parts.model, conclude) : request
}

/**
 * Tools come first in what providers keep in their caches: a request without them would be paid for in full. They stay where
 * the model is known to heed that none may be called, and where the answer itself is no call; not where the transcript had to
 * be fitted, whose room is scarce.
 */
function canForbidCalls({ model, tools: { specs: tools }, output, extraBody }: AgentParts): boolean {
  if (model.canForbidCalls !== true || tools.length === 0) return false
  if (Object.hasOwn(extraBody, 'tools') || Object.hasOwn(extraBody, 'tool_choice')) return false
  return output === undefined || canTakeFormat(output, { tools }, model)
}

/** The retrieved snippets go with the request as data; the transcript does not keep them. */
function formatRetrieved({ retrieved }: AgentContext): string[] {
  return retrieved && retrieved.length > 0 ? [formatSnippets(retrieved)] : []
}

const lastAnswer = 'This is your last answer: no more tools can be called. Answer now with what you know.'
