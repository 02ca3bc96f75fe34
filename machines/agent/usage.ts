/**
 * Tokens of one response, as the provider counted them. Cached input is part of input; reasoning of output.
 *
 * @example
 * const usage: TokenUsage = {
 *   inputTokens: 900, // cached ones included
 *   outputTokens: 40, // reasoning included
 *   totalTokens: 940,
 *   cachedInputTokens: 768,
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
  /** Part of the output. */
  reasoningTokens: number
}

/**
 * Tokens and what they cost, of a response, a run or a session.
 *
 * @example
 * const { totalTokens, cost, estimated } = result.usage
 * console.log(`${totalTokens} tokens, ${cost === null ? 'price unknown' : `$${cost}`}${estimated ? ', estimated' : ''}`)
 */
export interface Usage extends TokenUsage {
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
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    totalTokens: a.totalTokens + b.totalTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    cost: a.cost === null || b.cost === null ? null : a.cost + b.cost,
    estimated: a.estimated || b.estimated,
  }
}

/** What has been used between two totals of one run; null when it is nothing. */
export function usageSince(before: Usage, now: Usage): Usage | null {
  const more = (key: keyof TokenUsage): number => Math.max(0, now[key] - before[key])
  const since: Usage = {
    inputTokens: more('inputTokens'),
    outputTokens: more('outputTokens'),
    totalTokens: more('totalTokens'),
    cachedInputTokens: more('cachedInputTokens'),
    reasoningTokens: more('reasoningTokens'),
    cost: now.cost === null || before.cost === null ? null : Math.max(0, now.cost - before.cost),
    estimated: now.estimated,
  }
  return since.totalTokens > 0 || (since.cost ?? 0) > 0 ? since : null
}
