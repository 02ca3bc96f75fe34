import type { ToolCall } from '../../machines/agent/messages.js'
import type { ModelResponse } from '../../machines/agent/response.js'
import type { TokenUsage } from '../../machines/agent/usage.js'

/**
 * An answer as the loop relies on it, whoever wrote the provider: texts are texts, call ids are unique within the
 * answer, arguments are JSON text, usage is whole and finite or null (which is estimated, never silently free).
 */
export function checkedResponse(response: ModelResponse): ModelResponse {
  const given: Partial<Record<keyof ModelResponse, unknown>> = response ?? {}
  return {
    ...response,
    text: textOf(given.text),
    reasoning: textOf(given.reasoning),
    refusal: typeof given.refusal === 'string' ? given.refusal : null,
    toolCalls: Array.isArray(given.toolCalls) ? uniqueCalls(given.toolCalls as Partial<ToolCall>[]) : [],
    finishReason: typeof given.finishReason === 'string' ? given.finishReason : null,
    complete: given.complete !== false,
    usage: checkedUsage(given.usage),
    model: typeof given.model === 'string' ? given.model : null,
  }
}

function uniqueCalls(calls: readonly Partial<ToolCall>[]): ToolCall[] {
  const taken = new Set<string>()
  return calls.map((call, i) => {
    const { name, arguments: input } = (call?.function ?? {}) as { name?: unknown; arguments?: unknown }
    let id = textOf(call?.id) || `call_${i + 1}`
    while (taken.has(id)) id = `${id}_${i + 1}`
    taken.add(id)
    const text = typeof input === 'string' ? input : (JSON.stringify(input ?? {}) ?? '{}')
    return { ...call, id, type: 'function', function: { name: textOf(name), arguments: text } }
  })
}

function checkedUsage(usage: unknown): TokenUsage | null {
  if (typeof usage !== 'object' || usage === null) return null
  const given = usage as Partial<Record<keyof TokenUsage, unknown>>
  const inputTokens = countOf(given.inputTokens)
  const outputTokens = countOf(given.outputTokens)
  return {
    inputTokens,
    outputTokens,
    totalTokens: countOf(given.totalTokens) || inputTokens + outputTokens,
    cachedInputTokens: countOf(given.cachedInputTokens),
    reasoningTokens: countOf(given.reasoningTokens),
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0
}
