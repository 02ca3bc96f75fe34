import type { JsonObject } from '../../machines/agent/json.js'
import type { TokenUsage } from '../../machines/agent/usage.js'
import { readTokens, asList, asObject, asText } from '../core/base/values.js'

/** How an answer ended, in the words that the loop knows; `complete`: whether the provider said that it had. */
export function toFinish(given: unknown): { finishReason: string | null; complete: boolean } {
  const nested = asObject(given)
  const unified = nested === null ? asText(given) : asText(nested.unified)
  const raw = asText(nested?.raw)
  // Packages put these in where a stream closed without an end; of v2, `other` is a reason that was given.
  const missing = nested === null ? ['', 'unknown'] : ['', 'unknown', 'other', 'error', 'interrupted']
  if (missing.includes(unified) && raw === '') return { finishReason: null, complete: false }
  // A filter is not the only thing that packages call so: the model itself may have declined.
  if (raw.toLowerCase() === 'refusal') return { finishReason: 'refusal', complete: true }
  const known = finishReasons[unified]
  return { finishReason: known ?? (raw || unified), complete: true }
}

const finishReasons: Readonly<Record<string, string>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
}

interface UsageSource {
  version: string
  provider: string
  /** Of the whole answer. */
  metadata: unknown
}

/** The usage of an answer; null when nothing was counted. */
export function toUsage(given: unknown, source: UsageSource): TokenUsage | null {
  const usage = asObject(given)
  if (usage === null || [usage.inputTokens, usage.outputTokens].some(isUnreadable)) return null
  const counted = asObject(usage.inputTokens) === null ? readFlatUsage(usage, source) : readNestedUsage(usage)
  return counted.inputTokens + counted.outputTokens === 0 ? null : counted
}

/**
 * What Gemini's own tools have read in. Its packages count it as no input; where its total shows that one does, it is not
 * counted again.
 */
function countToolInput(said: readonly unknown[], input: number, output: number): number {
  const own = said.map(asObject).find((one) => one !== null)
  const read = toCount(own?.['toolUsePromptTokenCount'])
  const total = toCount(own?.['totalTokenCount'])
  return total === 0 ? read : Math.min(read, Math.max(0, total - input - output))
}

/** Whether a count is there and cannot be read. It is not free: all is estimated. */
function isUnreadable(count: unknown): boolean {
  const total = asObject(count)?.total ?? count
  return typeof total === 'number' && readTokens(total) === null
}

/** v3 and v4: cached tokens are part of the input, reasoning is part of the output. */
function readNestedUsage(usage: JsonObject): TokenUsage {
  const input = asObject(usage.inputTokens) ?? {}
  const output = asObject(usage.outputTokens) ?? {}
  const cachedInputTokens = toCount(input['cacheRead'])
  const cacheWriteTokens = toCount(input['cacheWrite'])
  const parts = toCount(input['noCache']) + cachedInputTokens + cacheWriteTokens
  const reasoningTokens = toCount(output['reasoning'])
  const total = toCount(input['total']) || parts
  const outputTokens = toCount(output['total']) || toCount(output['text']) + reasoningTokens
  const inputTokens = total + countToolInput([usage.raw], total, outputTokens)
  return completeUsage({ inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens })
}

/** v2: what is part of what was up to the package. Anthropic's and Bedrock's leave the cached tokens out, others the reasoning. */
function readFlatUsage(usage: JsonObject, { provider, metadata }: UsageSource): TokenUsage {
  const [input, output] = [toCount(usage.inputTokens), toCount(usage.outputTokens)]
  const cachedInputTokens = toCount(usage.cachedInputTokens)
  const { anthropic, bedrock, google, vertex } = asObject(metadata) ?? {}
  const isPart = includesCached(input, cachedInputTokens, asObject(anthropic)?.usage)
  const leavesOut = /anthropic|bedrock/.test(provider) && !isPart
  const written =
    asObject(anthropic)?.cacheCreationInputTokens ?? asObject(asObject(bedrock)?.usage)?.cacheWriteInputTokens
  const cacheWriteTokens = leavesOut || isPart ? toCount(written) : 0
  const inputTokens = leavesOut ? input + cachedInputTokens + cacheWriteTokens : input
  const said = [google, vertex].map((own) => asObject(own)?.usageMetadata)
  const read = countToolInput(said, input, output)
  const apart = leavesOut ? 0 : Math.max(0, toCount(usage.totalTokens) - input - output - read)
  return completeUsage({
    inputTokens: inputTokens + read,
    outputTokens: output + apart,
    cachedInputTokens,
    cacheWriteTokens,
    reasoningTokens: toCount(usage.reasoningTokens),
  })
}

/** Whether a package, or what wraps its model, has put the cached tokens in already: what the provider itself said tells. */
function includesCached(input: number, cached: number, said: unknown): boolean {
  const usage = asObject(said)
  // An answer before which it has summarized the transcript is several.
  const parts = asList(usage?.iterations).map((part) => toCount(asObject(part)?.input_tokens))
  const own = parts.length > 0 ? parts.reduce((sum, part) => sum + part, 0) : usage?.input_tokens
  return typeof own === 'number' && cached > 0 && input >= own + cached
}

function completeUsage(usage: Omit<TokenUsage, 'totalTokens'>): TokenUsage {
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

function toCount(value: unknown): number {
  return readTokens(value) ?? 0
}
