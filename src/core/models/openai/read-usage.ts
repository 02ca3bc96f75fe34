import type { TokenUsage } from '../../../../machines/agent/usage.js'
import type { JsonObject } from '../../../../machines/agent/json.js'
import { readTokens, readUsd, asObject } from '../../base/values.js'

/**
 * A provider's `usage` object as counts. Null when it reports nothing: absent, null, or the zeros that some servers
 * put on every chunk until the last.
 */
export function readUsage(value: unknown): TokenUsage | null {
  const usage = asObject(value)
  if (usage === null) return null
  const prompt = readTokens(usage.prompt_tokens ?? usage.input_tokens ?? 0)
  const completion = readTokens(usage.completion_tokens ?? usage.output_tokens ?? 0)
  // A count that cannot be read is not free: both are estimated.
  if (prompt === null || completion === null || prompt + completion === 0) return null

  const inputDetails = asObject(usage.prompt_tokens_details ?? usage.input_tokens_details)
  const outputDetails = asObject(usage.completion_tokens_details ?? usage.output_tokens_details)
  // DeepSeek counts cache hits in a field of its own, Moonshot beside the totals.
  const cached = toCount(inputDetails?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens)
  const written = toCount(inputDetails?.cache_write_tokens ?? usage.cache_creation_input_tokens)
  const reasoningTokens = toCount(outputDetails?.reasoning_tokens ?? usage.reasoning_tokens)

  // Some leave reasoning out of completion_tokens (xAI, Gemini), or sound out of prompt_tokens (Mistral), but neither out
  // of the total nor out of the bill.
  const apart = Math.max(0, toCount(usage.total_tokens) - prompt - completion)
  const audio = toCount(inputDetails?.audio_tokens ?? usage.audio_tokens)
  const inputApart = reasoningTokens === apart ? 0 : countUnlistedInput(prompt, apart, audio, cached)
  const inputTokens = prompt + inputApart
  const outputTokens = completion + apart - inputApart
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: Math.min(cached, inputTokens),
    ...(written > 0 && { cacheWriteTokens: Math.min(written, inputTokens) }),
    reasoningTokens: Math.min(reasoningTokens, outputTokens),
    ...readProviderCost(usage),
  }
}

/** xAI counts in ticks, of which a dollar has ten billion; OpenRouter in USD. */
const ticksPerDollar = 1e10

function readProviderCost({ cost, cost_in_usd_ticks: ticks }: JsonObject): Pick<TokenUsage, 'providerCost'> {
  const dollars = readUsd(typeof ticks === 'number' ? ticks / ticksPerDollar : cost) ?? 0
  return dollars > 0 ? { providerCost: dollars } : {}
}

/** Of the tokens that are only in the total, those of the input: a detail that is all of them, or no part of the prompt. */
function countUnlistedInput(prompt: number, apart: number, ...details: number[]): number {
  return (
    details.find((tokens) => tokens > 0 && (tokens === apart || (tokens > prompt && tokens < apart))) ?? 0
  )
}

function toCount(value: unknown): number {
  return readTokens(value) ?? 0
}
