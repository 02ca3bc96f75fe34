import type { TokenUsage } from '../../../machines/agent/usage.js'
import { asObject } from '../as-json.js'

/**
 * A provider's `usage` object as counts. Null when it reports nothing: absent, null, or the zeros that some servers
 * put on every chunk until the last.
 */
export function readUsage(value: unknown): TokenUsage | null {
  const usage = asObject(value)
  if (usage === null) return null
  const inputTokens = count(usage.prompt_tokens ?? usage.input_tokens)
  const completion = count(usage.completion_tokens ?? usage.output_tokens)
  if (inputTokens + completion === 0) return null

  const inputDetails = asObject(usage.prompt_tokens_details ?? usage.input_tokens_details)
  const outputDetails = asObject(usage.completion_tokens_details ?? usage.output_tokens_details)
  // DeepSeek counts cache hits in a field of its own, Moonshot beside the totals.
  const cached = count(inputDetails?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens)
  const reasoningTokens = count(outputDetails?.reasoning_tokens ?? usage.reasoning_tokens)

  // xAI and Gemini leave reasoning out of completion_tokens but not out of the total, nor out of the bill.
  const apart =
    reasoningTokens > 0 && count(usage.total_tokens) === inputTokens + completion + reasoningTokens
  const outputTokens = apart ? completion + reasoningTokens : completion
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: Math.min(cached, inputTokens),
    reasoningTokens: Math.min(reasoningTokens, outputTokens),
  }
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.round(value) : 0
}
