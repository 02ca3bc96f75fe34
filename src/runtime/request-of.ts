import type { AgentContext } from '../../machines/agent/context.js'
import type { ModelRequest } from '../providers/provider.js'
import type { Parts } from './parts.js'

/** What the model is asked next; to conclude is to ask for a last answer, without tools. */
export function requestOf(parts: Parts, context: AgentContext, conclude: boolean): ModelRequest {
  return {
    instructions: parts.instructions,
    messages: context.messages,
    nudges: conclude ? [...context.nudges, lastAnswer] : context.nudges,
    tools: conclude ? [] : parts.specs,
    ...(parts.toolChoice !== undefined && !conclude && { toolChoice: parts.toolChoice }),
    sampling: parts.sampling,
    extraBody: parts.extraBody,
    stream: context.config.stream,
  }
}

const lastAnswer = 'This is your last answer: no more tools can be called. Answer now with what you know.'
