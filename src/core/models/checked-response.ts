import type { Json } from '../../../machines/agent/json.js'
import type { MediaPart, ToolCall } from '../../../machines/agent/messages.js'
import type { FailureKind, ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import type { TokenUsage } from '../../../machines/agent/usage.js'
import { newId } from '../base/new-id.js'
import { printable } from '../base/printable.js'
import { readCitations } from './citations.js'
import { toContentPart } from './media.js'
import { plainExtra, readHostedBy, readProviderItems } from './plain-extra.js'

/**
 * An answer as the loop relies on it, whoever wrote the provider: texts are texts, call ids are unique within the
 * answer, arguments are JSON text, usage is whole and finite or null (which is estimated, never silently free), and what
 * is to be echoed is plain JSON.
 */
export function checkedResponse(response: ModelResponse): ModelResponse {
  const given: Partial<Record<keyof ModelResponse, unknown>> = response ?? {}
  const details = Array.isArray(given.reasoningDetails) ? detailsOf(given.reasoningDetails) : []
  return {
    text: textOf(given.text),
    reasoning: textOf(given.reasoning),
    refusal: typeof given.refusal === 'string' ? given.refusal : null,
    toolCalls: Array.isArray(given.toolCalls) ? uniqueCalls(given.toolCalls as Partial<ToolCall>[]) : [],
    finishReason: wordOf(given.finishReason),
    complete: given.complete !== false,
    usage: checkedUsage(given.usage),
    model: wordOf(given.model),
    ...(details.length > 0 && { reasoningDetails: details }),
    ...mediaOf(given.media),
    ...annotationsOf(given.annotations),
    ...providerItems(given.providerItems),
    ...(typeof given.by === 'string' && { by: given.by }),
  }
}

/** Whole or not at all: one that is missing may be what another stands on. */
function providerItems(given: unknown): Pick<ModelResponse, 'providerItems'> {
  const read = readProviderItems(given)
  return read === null ? {} : { providerItems: read }
}

/** What is no part of a message is left out. */
function mediaOf(given: unknown): Pick<ModelResponse, 'media'> {
  const media = (Array.isArray(given) ? given : []).flatMap((part: unknown): MediaPart[] => {
    try {
      const read = toContentPart(part, 'media')
      return read.type === 'text' ? [] : [read]
    } catch {
      return []
    }
  })
  return media.length === 0 ? {} : { media }
}

function annotationsOf(given: unknown): Pick<ModelResponse, 'annotations'> {
  const annotations = Array.isArray(given) ? readCitations(detailsOf(given)) : []
  return annotations.length === 0 ? {} : { annotations }
}

function detailsOf(given: readonly unknown[]): Json[] {
  return given.map(plainExtra).filter((detail) => detail !== undefined)
}

function uniqueCalls(calls: readonly Partial<ToolCall>[]): ToolCall[] {
  const taken = new Set<string>()
  /** A sub-agent's call is named by the call that leads to it, a slash, and its own id: no other is to be named so. */
  const led = new Set<string>()
  const isTaken = (id: string): boolean =>
    taken.has(id) || led.has(id) || leadingTo(id).some((one) => taken.has(one))
  return calls.map((call, i) => {
    const { name, arguments: input } = (call?.function ?? {}) as { name?: unknown; arguments?: unknown }
    // Unique in the session, too: people, logs and the model itself name a call by it.
    let id = textOf(call?.id) || `call_${newId().replaceAll('-', '').slice(0, 24)}`
    while (isTaken(id)) id = `${id.replaceAll('/', '_')}_${i + 1}`
    taken.add(id)
    for (const one of leadingTo(id)) led.add(one)
    const text = typeof input === 'string' ? input : (JSON.stringify(input ?? {}) ?? '{}')
    const extra = plainExtra(call?.extra_content)
    return {
      id,
      type: 'function',
      function: { name: textOf(name), arguments: text },
      ...(extra !== undefined && { extra_content: extra }),
      ...hostedBy(call?.hosted),
    }
  })
}

/** What stands before each slash of an id. */
function leadingTo(id: string): string[] {
  const parts = id.split('/').slice(0, -1)
  return parts.map((_, i) => parts.slice(0, i + 1).join('/'))
}

function hostedBy(given: unknown): Pick<ToolCall, 'hosted'> {
  const hosted = readHostedBy(given)
  return hosted === null ? {} : { hosted }
}

/** What a provider calls something: it is printed and logged as it is, so it has one line and no control characters. */
export function plainWord(text: string): string {
  return printable(text).replaceAll(/[\t\n]+/g, ' ')
}

function wordOf(value: unknown): string | null {
  return typeof value === 'string' ? plainWord(value) : null
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

const kinds: readonly FailureKind[] = ['transient', 'rate_limit', 'incomplete', 'context_overflow', 'fatal']

/** A failure as the loop relies on it, whoever wrote the provider: every field is there and is what it says. */
export function checkedFailure(failure: ModelFailure): ModelFailure {
  const given: Partial<Record<keyof ModelFailure, unknown>> = failure ?? {}
  return {
    kind: kinds.find((kind) => kind === given.kind) ?? 'fatal',
    code: textOf(given.code) || 'unknown',
    message: textOf(given.message) || 'The provider failed with an error without words.',
    status: numberOf(given.status),
    retryAfterMs: numberOf(given.retryAfterMs),
    partialText: textOf(given.partialText),
    usage: checkedUsage(given.usage),
  }
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}

/**
 * Usage as whoever wrote the provider reports it. Null, which is estimated, when the tokens of input or output are no
 * counts: what cannot be read is not free. The other fields are details, and may be left out.
 */
function checkedUsage(usage: unknown): TokenUsage | null {
  if (typeof usage !== 'object' || usage === null) return null
  const given = usage as Partial<Record<keyof TokenUsage, unknown>>
  const { inputTokens, outputTokens } = given
  if (!isCount(inputTokens) || !isCount(outputTokens)) return null
  return {
    inputTokens,
    outputTokens,
    totalTokens: Math.max(countOf(given.totalTokens), inputTokens + outputTokens),
    cachedInputTokens: Math.min(countOf(given.cachedInputTokens), inputTokens),
    ...(countOf(given.cacheWriteTokens) > 0 && {
      cacheWriteTokens: Math.min(countOf(given.cacheWriteTokens), inputTokens),
    }),
    reasoningTokens: Math.min(countOf(given.reasoningTokens), outputTokens),
    ...(countOf(given.providerCost) > 0 && { providerCost: countOf(given.providerCost) }),
  }
}

/** What was used where only the total is told, in one number; null where input and output are told, or nothing is. */
export function totalAlone(usage: unknown): number | null {
  const given = (usage ?? {}) as Partial<Record<keyof TokenUsage, unknown>>
  const total = countOf(given.totalTokens)
  return checkedUsage(usage) === null && total > 0 ? total : null
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function countOf(value: unknown): number {
  return isCount(value) ? value : 0
}
