import type { JsonObject } from '../../machines/agent/json.js'
import type { TokenUsage } from '../../machines/agent/usage.js'
import { readTokens, asList, asObject, asText } from '../core/base/values.js'
import { completeUsage, toCount } from '../core/models/openai/read-usage.js'

/** The finish reason of an answer. `complete` is whether the provider reported an end. */
export function toFinish(reason: unknown): { finishReason: string | null; complete: boolean } {
  const nested = asObject(reason)
  const unified = nested === null ? asText(reason) : asText(nested.unified)
  const raw = asText(nested?.raw)
  // Packages report these values if a stream closes without a finish reason. In v2, `other` is a real reason.
  const missing = nested === null ? ['', 'unknown'] : ['', 'unknown', 'other', 'error', 'interrupted']
  if (missing.includes(unified) && raw === '') return { finishReason: null, complete: false }
  // Packages also report a refusal by the model as a content filter.
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
  provider: string
  metadata: unknown
}

export function toUsage(value: unknown, source: UsageSource): TokenUsage | null {
  const usage = asObject(value)
  if (usage === null || [usage.inputTokens, usage.outputTokens].some(isUnreadable)) return null
  const counted = asObject(usage.inputTokens) === null ? readFlatUsage(usage, source) : readNestedUsage(usage)
  return counted.inputTokens + counted.outputTokens === 0 ? null : counted
}

/** The input tokens of Gemini's own tools, which most packages do not count. The total shows whether a package does. */
function countToolInput(metadata: readonly unknown[], input: number, output: number): number {
  const usage = metadata.map(asObject).find((entry) => entry !== null)
  const read = toCount(usage?.['toolUsePromptTokenCount'])
  const total = toCount(usage?.['totalTokenCount'])
  return total === 0 ? read : Math.min(read, Math.max(0, total - input - output))
}

/** Whether a count is present but invalid. The usage is then estimated. */
function isUnreadable(count: unknown): boolean {
  const total = asObject(count)?.total ?? count
  return typeof total === 'number' && readTokens(total) === null
}

/** v3 and v4 include cached tokens in the input, and reasoning in the output. */
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

/** In v2, the counts depend on the package: Anthropic and Bedrock exclude cached tokens, others exclude reasoning. */
function readFlatUsage(usage: JsonObject, { provider, metadata }: UsageSource): TokenUsage {
  const [input, output] = [toCount(usage.inputTokens), toCount(usage.outputTokens)]
  const cachedInputTokens = toCount(usage.cachedInputTokens)
  const { anthropic, bedrock, google, vertex } = asObject(metadata) ?? {}
  const includesAll = includesCached(input, cachedInputTokens, asObject(anthropic)?.usage)
  const excludesCached = /anthropic|bedrock/.test(provider) && !includesAll
  const written =
    asObject(anthropic)?.cacheCreationInputTokens ?? asObject(asObject(bedrock)?.usage)?.cacheWriteInputTokens
  const cacheWriteTokens = excludesCached || includesAll ? toCount(written) : 0
  const inputTokens = excludesCached ? input + cachedInputTokens + cacheWriteTokens : input
  const geminiUsage = [google, vertex].map((entry) => asObject(entry)?.usageMetadata)
  const read = countToolInput(geminiUsage, input, output)
  const separate = excludesCached ? 0 : Math.max(0, toCount(usage.totalTokens) - input - output - read)
  return completeUsage({
    inputTokens: inputTokens + read,
    outputTokens: output + separate,
    cachedInputTokens,
    cacheWriteTokens,
    reasoningTokens: toCount(usage.reasoningTokens),
  })
}

/** Compares the input with the provider's own numbers, because a wrapper may have added the cached tokens. */
function includesCached(input: number, cached: number, providerUsage: unknown): boolean {
  const usage = asObject(providerUsage)
  // A compaction before the answer is a separate iteration.
  const parts = asList(usage?.iterations).map((part) => toCount(asObject(part)?.input_tokens))
  const own = parts.length > 0 ? parts.reduce((sum, part) => sum + part, 0) : usage?.input_tokens
  return typeof own === 'number' && cached > 0 && input >= own + cached
}

/**
 * The finish reason in a raw chunk from the provider, or ''. Packages emit `finish` only when the stream closes, so a
 * connection that breaks just before that would lose a complete answer.
 */
export function readRawFinish(chunk: unknown): string {
  const raw = asObject(chunk)
  if (raw === null) return ''
  const choice = asObject(asList(raw.choices)[0])
  const candidate = asObject(asList(raw.candidates)[0])
  return (
    asText(choice?.['finish_reason']) || // Chat Completions
    asText(asObject(raw['delta'])?.['stop_reason']) || // Anthropic
    asText(candidate?.['finishReason']) || // Gemini
    asText(asObject(raw['messageStop'])?.['stopReason']) || // Bedrock
    (raw['done'] === true ? asText(raw['done_reason']) || 'stop' : '') || // Ollama
    readResponseEnd(raw)
  )
}

function readResponseEnd({ type, response }: JsonObject): string {
  if (type === 'response.completed') return 'stop'
  if (type !== 'response.incomplete') return ''
  return asText(asObject(asObject(response)?.['incomplete_details'])?.['reason']) || 'length'
}
