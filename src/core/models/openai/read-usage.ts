import type { TokenUsage } from '../../../../machines/agent/usage.js'
import type { JsonObject } from '../../../../machines/agent/json.js'
import { readTokens, readUsd, asObject } from '../../base/values.js'

/** Returns null also for the zeros that some servers send on all chunks but the last. */
export function readUsage(value: unknown): TokenUsage | null {
  const usage = asObject(value)
  if (usage === null) return null
  const prompt = readTokens(usage.prompt_tokens ?? usage.input_tokens ?? 0)
  const completion = readTokens(usage.completion_tokens ?? usage.output_tokens ?? 0)
  // Invalid counts are estimated.
  if (prompt === null || completion === null || prompt + completion === 0) return null

  const inputDetails = asObject(usage.prompt_tokens_details ?? usage.input_tokens_details)
  const outputDetails = asObject(usage.completion_tokens_details ?? usage.output_tokens_details)
  // DeepSeek has its own field for cache hits. Moonshot reports cache hits next to the totals.
  const cached = toCount(inputDetails?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens)
  const written = toCount(inputDetails?.cache_write_tokens ?? usage.cache_creation_input_tokens)
  const reasoningTokens = toCount(outputDetails?.reasoning_tokens ?? usage.reasoning_tokens)

  // Some providers exclude reasoning from completion_tokens (xAI, Gemini) or audio from prompt_tokens (Mistral),
  // but bill it and include it in the total.
  const apart = Math.max(0, toCount(usage.total_tokens) - prompt - completion)
  const audio = toCount(inputDetails?.audio_tokens ?? usage.audio_tokens)
  const inputApart = reasoningTokens === apart ? 0 : countUnlistedInput(prompt, apart, audio, cached)
  const inputTokens = prompt + inputApart
  const outputTokens = completion + apart - inputApart
  const counts = { cachedInputTokens: cached, cacheWriteTokens: written, reasoningTokens }
  return { ...completeUsage({ inputTokens, outputTokens, ...counts }), ...readProviderCost(usage) }
}

/** Adds the total, and limits each part of a count to that count. */
export function completeUsage(usage: Omit<TokenUsage, 'totalTokens'>): TokenUsage {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens = 0, reasoningTokens } = usage
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: Math.min(cachedInputTokens, inputTokens),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens: Math.min(cacheWriteTokens, inputTokens) }),
    reasoningTokens: Math.min(reasoningTokens, outputTokens),
  }
}

/** xAI reports ticks; OpenRouter reports USD. */
const ticksPerDollar = 1e10

function readProviderCost({ cost, cost_in_usd_ticks: ticks }: JsonObject): Pick<TokenUsage, 'providerCost'> {
  const dollars = readUsd(typeof ticks === 'number' ? ticks / ticksPerDollar : cost) ?? 0
  return dollars > 0 ? { providerCost: dollars } : {}
}

function countUnlistedInput(prompt: number, apart: number, ...details: number[]): number {
  return (
    details.find((tokens) => tokens > 0 && (tokens === apart || (tokens > prompt && tokens < apart))) ?? 0
  )
}

export function toCount(value: unknown): number {
  return readTokens(value) ?? 0
}
