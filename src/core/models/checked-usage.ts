import type { TokenUsage } from '../../../machines/agent/usage.js'

/**
 * Usage as whoever wrote the provider reports it. Null, which is estimated, when the tokens of input or output are no
 * counts: what cannot be read is not free. The other fields are details, and may be left out.
 */
export function checkedUsage(usage: unknown): TokenUsage | null {
  if (typeof usage !== 'object' || usage === null) return null
  const given = usage as Partial<Record<keyof TokenUsage, unknown>>
  const { inputTokens, outputTokens } = given
  if (!isCount(inputTokens) || !isCount(outputTokens)) return null
  return {
    inputTokens,
    outputTokens,
    totalTokens: Math.max(countOf(given.totalTokens), inputTokens + outputTokens),
    cachedInputTokens: Math.min(countOf(given.cachedInputTokens), inputTokens),
    reasoningTokens: Math.min(countOf(given.reasoningTokens), outputTokens),
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function countOf(value: unknown): number {
  return isCount(value) ? value : 0
}
