import type { Json } from '../../../machines/agent/json.js'
import type { MediaKind } from '../../../machines/agent/refusals.js'
import type { ToolCall } from '../../../machines/agent/messages.js'
import type { FailureKind, ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import type { TokenUsage } from '../../../machines/agent/usage.js'
import { getOrCreate, readTokens, readUsd, readWaitMs, asList, asText } from '../base/values.js'
import { createId } from '../base/platform.js'
import { stripControls } from '../base/text.js'
import { readCitations } from './citations.js'
import { listDistinctCalls, type SentCall } from './calls.js'
import { isMediaList, readMediaPart } from './media.js'
import { completeUsage, toCount } from './openai/read-usage.js'
import { toPlainJson, readHostedBy, readProviderItems } from './plain-json.js'

/**
 * Validates a response, including responses from custom providers. In the result, strings are strings, call ids are
 * unique within the response and converted by `toCallId`, arguments are JSON text, usage is complete or null (to be
 * estimated), and data to be sent back is plain JSON.
 */
export function normalizeResponse(response: ModelResponse, toCallId = (id: string) => id): ModelResponse {
  const source: Partial<Record<keyof ModelResponse, unknown>> = response ?? {}
  const details = normalizeDetails(source.reasoningDetails)
  const media = asList(source.media).flatMap((part) => readMediaPart(part) ?? [])
  const annotations = readCitations(normalizeDetails(source.annotations))
  // All items or none, because items may depend on each other.
  const providerItems = readProviderItems(source.providerItems)
  return {
    text: asText(source.text),
    reasoning: asText(source.reasoning),
    refusal: typeof source.refusal === 'string' ? source.refusal : null,
    toolCalls: normalizeCalls(asList(source.toolCalls) as readonly Partial<ToolCall>[], toCallId),
    finishReason: toWord(source.finishReason),
    complete: source.complete !== false,
    usage: normalizeUsage(source.usage),
    model: toWord(source.model),
    ...(details.length > 0 && { reasoningDetails: details }),
    ...(media.length > 0 && { media }),
    ...(annotations.length > 0 && { annotations }),
    ...(providerItems && { providerItems }),
    ...(typeof source.by === 'string' && { by: source.by }),
  }
}

function normalizeDetails(source: unknown): Json[] {
  return asList(source)
    .map(toPlainJson)
    .filter((detail) => detail !== undefined)
}

function normalizeCalls(calls: readonly Partial<ToolCall>[], toCallId: (id: string) => string): ToolCall[] {
  const ids: IdTree = new Map()
  return listDistinctCalls(calls, readCall).map((call, i) => {
    const { name, arguments: text } = readCall(call)
    const hosted = readHostedBy(call?.hosted)
    // The id is also unique in the session, because people, logs and the model refer to a call by its id.
    let id = asText(call?.id) || `call_${createId().replaceAll('-', '').slice(0, 24)}`
    // The provider identifies hosted calls by its own id, so the id is kept.
    if (hosted === null) id = toCallId(id)
    while (!addId(ids, id)) id = toCallId(`${id.replaceAll('/', '_')}_${i + 1}`)
    const extra = toPlainJson(call?.extra_content)
    return {
      id,
      type: 'function',
      function: { name, arguments: text.trim() === '' ? '{}' : text },
      ...(extra !== undefined && { extra_content: extra }),
      ...(hosted && { hosted }),
    }
  })
}

function readCall(call: Partial<ToolCall>): SentCall {
  const { name, arguments: input } = (call?.function ?? {}) as { name?: unknown; arguments?: unknown }
  const text = typeof input === 'string' || input == null ? (input ?? '') : (JSON.stringify(input) ?? '')
  return { id: asText(call?.id), name: asText(name), arguments: text }
}

/** A tree of ids, split at slashes. A node without children is the end of an id. */
interface IdTree extends Map<string, IdTree> {}

/** Also returns false if one id extends another at a slash, because ids of sub-agent calls do so. */
function addId(ids: IdTree, id: string): boolean {
  let tree = ids
  let isNew = false
  for (const part of id.split('/')) {
    const next = tree.get(part)
    if (next?.size === 0) return false
    isNew ||= next === undefined
    tree = getOrCreate(tree, part, (): IdTree => new Map())
  }
  return isNew
}

/** Converts a provider's string to one line without control characters, because such strings are printed and logged. */
export function toSingleLine(text: string): string {
  return stripControls(text).replaceAll(/[\t\n]+/g, ' ')
}

function toWord(value: unknown): string | null {
  return typeof value === 'string' ? toSingleLine(value) : null
}

const failureKinds: readonly FailureKind[] = [
  'transient',
  'rate_limit',
  'incomplete',
  'context_overflow',
  'fatal',
]

export function normalizeFailure(failure: ModelFailure): ModelFailure {
  const source: Partial<Record<keyof ModelFailure, unknown>> = failure ?? {}
  return {
    kind: failureKinds.find((kind) => kind === source.kind) ?? 'fatal',
    code: asText(source.code) || 'unknown',
    message: asText(source.message) || 'The provider failed with an error without a message.',
    status: toStatus(source.status),
    retryAfterMs: readWaitMs(source.retryAfterMs),
    partialText: asText(source.partialText),
    usage: normalizeUsage(source.usage),
    ...normalizeRefused(source.refused),
  }
}

function toStatus(value: unknown): number | null {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 999 ? Number(value) : null
}

function normalizeRefused(source: unknown): Pick<ModelFailure, 'refused'> {
  const { what, kinds, never } = (source ?? {}) as Partial<Record<'what' | 'kinds' | 'never', unknown>>
  const isNever = never === true ? { never: true as const } : {}
  if (what === 'messages') return { refused: { what } }
  if (what === 'reasoning') return { refused: { what, ...isNever } }
  if (what !== 'media') return {}
  const named = isMediaList(kinds) ? (kinds as MediaKind[] | undefined) : undefined
  return { refused: { what, ...(named && { kinds: named }), ...isNever } }
}

/** Null if the input or output tokens are missing or invalid. They are then estimated. */
function normalizeUsage(usage: unknown): TokenUsage | null {
  if (typeof usage !== 'object' || usage === null) return null
  const source = usage as Partial<Record<keyof TokenUsage, unknown>>
  const [inputTokens, outputTokens] = [readTokens(source.inputTokens), readTokens(source.outputTokens)]
  if (inputTokens === null || outputTokens === null) return null
  const whole = completeUsage({
    inputTokens,
    outputTokens,
    cachedInputTokens: toCount(source.cachedInputTokens),
    cacheWriteTokens: toCount(source.cacheWriteTokens),
    reasoningTokens: toCount(source.reasoningTokens),
  })
  const totalTokens = Math.max(toCount(source.totalTokens), whole.totalTokens)
  const providerCost = readUsd(source.providerCost) ?? 0
  return { ...whole, totalTokens, ...(providerCost > 0 && { providerCost }) }
}

export function readTotalTokens(usage: unknown): number | null {
  return normalizeUsage(usage)?.totalTokens ?? readOwnTotal(usage)
}

/** The provider's own total, for usage that is otherwise unusable. Null if there is none. */
export function readOwnTotal(usage: unknown): number | null {
  const { totalTokens } = (usage ?? {}) as Partial<Record<keyof TokenUsage, unknown>>
  return readTokens(totalTokens) || null
}
