/**
 * Tokens of one response, counted by the provider. Input includes cached input, and output includes reasoning.
 * @example
 * const usage: TokenUsage = {
 *   inputTokens: 900, // including cached tokens
 *   outputTokens: 40, // including reasoning
 *   totalTokens: 940,
 *   cachedInputTokens: 768, // 85% of the input
 *   reasoningTokens: 12,
 * }
 */
export interface TokenUsage {
  /** All input, cached or not. */
  inputTokens: number
  /** All output, including reasoning. */
  outputTokens: number
  totalTokens: number
  /** Cached part of the input. */
  cachedInputTokens: number
  /** Input tokens written to the provider's cache, which some providers charge for. Absent if there were none. */
  cacheWriteTokens?: number
  /** Reasoning part of the output. */
  reasoningTokens: number
  /** USD charged, as reported by the provider. Used if no price is known, and never added to totals. */
  providerCost?: number
}

/**
 * The fraction of the input that was read from a cache, from 0 to 1.
 * @example
 * const { usage } = await agent.run('Go.').result
 * console.log(`${Math.round(getCacheHitRate(usage) * 100)}% of the input was read from a cache`)
 */
export function getCacheHitRate({
  inputTokens,
  cachedInputTokens,
}: Pick<TokenUsage, 'inputTokens' | 'cachedInputTokens'>): number {
  return inputTokens > 0 ? Math.min(1, cachedInputTokens / inputTokens) : 0
}

/** Tokens and cost of a response, a run or a session. */
export interface Usage extends Omit<TokenUsage, 'providerCost'> {
  /** The cost in USD. `null` if the price of any response is unknown. */
  cost: number | null
  /** Whether any part was estimated because the provider reported no usage. */
  estimated: boolean
}

export const noUsage: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  cost: 0,
  estimated: false,
}

export function addUsage(a: Usage, b: Usage): Usage {
  const sum: Usage = {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    totalTokens: a.totalTokens + b.totalTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    cost: a.cost === null || b.cost === null ? null : a.cost + b.cost,
    estimated: a.estimated || b.estimated,
  }
  return withCacheWrites(sum, (a.cacheWriteTokens ?? 0) + (b.cacheWriteTokens ?? 0))
}

function withCacheWrites(usage: Usage, tokens: number): Usage {
  if (tokens > 0) usage.cacheWriteTokens = tokens
  return usage
}

export function subtractUsage(before: Usage, now: Usage): Usage | null {
  const more = (key: keyof Omit<TokenUsage, 'providerCost'>): number =>
    Math.max(0, (now[key] ?? 0) - (before[key] ?? 0))
  const since: Usage = {
    inputTokens: more('inputTokens'),
    outputTokens: more('outputTokens'),
    totalTokens: more('totalTokens'),
    cachedInputTokens: more('cachedInputTokens'),
    reasoningTokens: more('reasoningTokens'),
    cost: now.cost === null || before.cost === null ? null : Math.max(0, now.cost - before.cost),
    estimated: now.estimated,
  }
  const isAny = since.totalTokens > 0 || (since.cost ?? 0) > 0
  return isAny ? withCacheWrites(since, more('cacheWriteTokens')) : null
}
