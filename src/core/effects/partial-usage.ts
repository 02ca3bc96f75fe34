import type { AgentContext } from '../../../machines/agent/context.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { estimateUsage } from '../prices/estimate.js'
import type { AgentParts } from '../live/parts.js'
import { requestOf } from './request-of.js'

/** An estimate of what an answer cost that was stopped midway: nobody will be told its usage. */
export function partialUsage(parts: AgentParts, context: AgentContext, text: string): Usage {
  const answer = { text, reasoning: '', refusal: null, toolCalls: [] }
  const tokens = estimateUsage(requestOf(parts, context, false), answer)
  const { provider, model } = parts.model
  return { ...tokens, cost: parts.prices.knownPrice(provider, model, tokens), estimated: true }
}
