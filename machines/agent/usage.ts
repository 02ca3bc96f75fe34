/**
 * Tokens of one response, as the provider counted them. Cached input is part of input; reasoning of output.
 *
 * @example
 * const usage: TokenUsage = {
 *   inputTokens: 900, // cached ones included
 *   outputTokens: 40, // reasoning included
 *   totalTokens: 940,
 *   cachedInputTokens: 768, // 85 % of the input
 *   reasoningTokens: 12,
 * }
 */
export interface TokenUsage {
  /** All of the input, cached or not. */
  inputTokens: number
  /** All of the output, reasoning included. */
  outputTokens: number
  /** Input and output. */
  totalTokens: number
  /** Part of the input. */
  cachedInputTokens: number
  /** Part of the input that was put into the provider's cache, which some charge for. Left out when there was none. */
  cacheWriteTokens?: number
  /** Part of the output. */
  reasoningTokens: number
  /** USD, where the provider says itself what it charges: counts where no price is known. Never part of a total. */
  providerCost?: number
}

/**
 * The share of the input that came out of a cache, from 0 to 1.
 *
 * @example
 * const { usage } = await agent.run('Go.').result
 * console.log(`${Math.round(getCacheHitRate(usage) * 100)} % of the input came out of a cache`)
 */
export function getCacheHitRate({
  inputTokens,
  cachedInputTokens,
}: Pick<TokenUsage, 'inputTokens' | 'cachedInputTokens'>): number {
  return inputTokens > 0 ? Math.min(1, cachedInputTokens / inputTokens) : 0
}

/** Tokens and what they cost, of a response, a run or a session. */
export interface Usage extends Omit<TokenUsage, 'providerCost'> {
  /** USD. `null` as soon as one response had no known price. */
  cost: number | null
  /** True when a part of it was estimated because the provider reported no usage. */
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

/** Most providers have none: what they report looks as it did before any had. */
function withCacheWrites(usage: Usage, tokens: number): Usage {
  if (tokens > 0) usage.cacheWriteTokens = tokens
  return usage
}

/** What has been used between two totals of one run; null when it is nothing. */
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
