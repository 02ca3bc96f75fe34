import type { Json } from '../../../machines/agent/json.js'
import type { MediaKind } from '../../../machines/agent/refusals.js'
import type { MediaPart, ToolCall } from '../../../machines/agent/messages.js'
import type { FailureKind, ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import type { TokenUsage } from '../../../machines/agent/usage.js'
import { readTokens, readUsd, readWaitMs, asText } from '../base/values.js'
import { createId } from '../base/platform.js'
import { stripControls } from '../base/text.js'
import { readCitations } from './citations.js'
import { listDistinctCalls, type SentCall } from './calls.js'
import { isMediaList, toContentPart } from './media.js'
import { toPlainJson, readHostedBy, readProviderItems } from './plain-json.js'

/**
 * An answer as the loop relies on it, also from a provider of your own: texts are texts, call ids are unique within the
 * answer and pass `toCallId`, arguments are JSON text, usage is whole and finite or null (which is estimated, never silently free), and what
 * is to be echoed is plain JSON.
 */
export function normalizeResponse(response: ModelResponse, toCallId = (id: string) => id): ModelResponse {
  const given: Partial<Record<keyof ModelResponse, unknown>> = response ?? {}
  const details = Array.isArray(given.reasoningDetails) ? normalizeDetails(given.reasoningDetails) : []
  return {
    text: asText(given.text),
    reasoning: asText(given.reasoning),
    refusal: typeof given.refusal === 'string' ? given.refusal : null,
    toolCalls: Array.isArray(given.toolCalls)
      ? normalizeCalls(given.toolCalls as Partial<ToolCall>[], toCallId)
      : [],
    finishReason: toWord(given.finishReason),
    complete: given.complete !== false,
    usage: normalizeUsage(given.usage),
    model: toWord(given.model),
    ...(details.length > 0 && { reasoningDetails: details }),
    ...normalizeMedia(given.media),
    ...normalizeAnnotations(given.annotations),
    ...normalizeProviderItems(given.providerItems),
    ...(typeof given.by === 'string' && { by: given.by }),
  }
}

/** Whole or not at all: one that is missing may be what another stands on. */
function normalizeProviderItems(given: unknown): Pick<ModelResponse, 'providerItems'> {
  const read = readProviderItems(given)
  return read === null ? {} : { providerItems: read }
}

/** What is no part of a message is left out. */
function normalizeMedia(given: unknown): Pick<ModelResponse, 'media'> {
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

function normalizeAnnotations(given: unknown): Pick<ModelResponse, 'annotations'> {
  const annotations = Array.isArray(given) ? readCitations(normalizeDetails(given)) : []
  return annotations.length === 0 ? {} : { annotations }
}

function normalizeDetails(given: readonly unknown[]): Json[] {
  return given.map(toPlainJson).filter((detail) => detail !== undefined)
}

function normalizeCalls(calls: readonly Partial<ToolCall>[], toCallId: (id: string) => string): ToolCall[] {
  const ids: IdTree = new Map()
  return listDistinctCalls(calls, readCall).map((call, i) => {
    const { name, arguments: text } = readCall(call)
    const hosted = normalizeHosted(call?.hosted)
    // Unique in the session, too: people, logs and the model itself name a call by it.
    let id = asText(call?.id) || `call_${createId().replaceAll('-', '').slice(0, 24)}`
    // The provider finds the call that it runs itself by its own id.
    if (hosted.hosted === undefined) id = toCallId(id)
    while (!addId(ids, id)) id = toCallId(`${id.replaceAll('/', '_')}_${i + 1}`)
    const extra = toPlainJson(call?.extra_content)
    return {
      id,
      type: 'function',
      function: { name, arguments: text.trim() === '' ? '{}' : text },
      ...(extra !== undefined && { extra_content: extra }),
      ...hosted,
    }
  })
}

/** Arguments that are not a text are written as JSON; blank where there are none. */
function readCall(call: Partial<ToolCall>): SentCall {
  const { name, arguments: input } = (call?.function ?? {}) as { name?: unknown; arguments?: unknown }
  const text = typeof input === 'string' || input == null ? (input ?? '') : (JSON.stringify(input) ?? '')
  return { id: asText(call?.id), name: asText(name), arguments: text }
}

/** Ids by their parts between slashes. A part without further parts is the end of an id. */
interface IdTree extends Map<string, IdTree> {}

/**
 * Adds an id. False: it is there, or one of the two ids continues the other after a slash. A sub-agent's call has such an id:
 * the id of the call that leads to it, a slash, and its own id.
 */
function addId(ids: IdTree, id: string): boolean {
  const parts = id.split('/')
  let tree = ids
  for (const [i, part] of parts.entries()) {
    const next = tree.get(part)
    if (next === undefined) {
      for (const rest of parts.slice(i)) {
        const added: IdTree = new Map()
        tree.set(rest, added)
        tree = added
      }
      return true
    }
    if (next.size === 0) return false
    tree = next
  }
  return false
}

function normalizeHosted(given: unknown): Pick<ToolCall, 'hosted'> {
  const hosted = readHostedBy(given)
  return hosted === null ? {} : { hosted }
}

/** What a provider calls something: it is printed and logged as it is, so it has one line and no control characters. */
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

/** A failure as the loop relies on it, also from a provider of your own: every field is present and of its type. */
export function normalizeFailure(failure: ModelFailure): ModelFailure {
  const given: Partial<Record<keyof ModelFailure, unknown>> = failure ?? {}
  return {
    kind: failureKinds.find((kind) => kind === given.kind) ?? 'fatal',
    code: asText(given.code) || 'unknown',
    message: asText(given.message) || 'The provider failed with an error without words.',
    status: toStatus(given.status),
    retryAfterMs: readWaitMs(given.retryAfterMs),
    partialText: asText(given.partialText),
    usage: normalizeUsage(given.usage),
    ...normalizeRefused(given.refused),
  }
}

/** Of HTTP. */
function toStatus(value: unknown): number | null {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 999 ? Number(value) : null
}

function normalizeRefused(given: unknown): Pick<ModelFailure, 'refused'> {
  const { what, kinds, never } = (given ?? {}) as Partial<Record<'what' | 'kinds' | 'never', unknown>>
  const isNever = never === true ? { never: true as const } : {}
  if (what === 'messages') return { refused: { what } }
  if (what === 'reasoning') return { refused: { what, ...isNever } }
  if (what !== 'media') return {}
  const named = isMediaList(kinds) ? (kinds as MediaKind[] | undefined) : undefined
  return { refused: { what, ...(named && { kinds: named }), ...isNever } }
}

/**
 * Usage as the provider reports it. Null, which is estimated, when the tokens of input or output are no
 * counts: what cannot be read is not free. The other fields are details, and may be left out.
 */
function normalizeUsage(usage: unknown): TokenUsage | null {
  if (typeof usage !== 'object' || usage === null) return null
  const given = usage as Partial<Record<keyof TokenUsage, unknown>>
  const [inputTokens, outputTokens] = [readTokens(given.inputTokens), readTokens(given.outputTokens)]
  if (inputTokens === null || outputTokens === null) return null
  const cacheWriteTokens = readTokens(given.cacheWriteTokens) ?? 0
  const providerCost = readUsd(given.providerCost) ?? 0
  return {
    inputTokens,
    outputTokens,
    totalTokens: Math.max(readTokens(given.totalTokens) ?? 0, inputTokens + outputTokens),
    cachedInputTokens: Math.min(readTokens(given.cachedInputTokens) ?? 0, inputTokens),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens: Math.min(cacheWriteTokens, inputTokens) }),
    reasoningTokens: Math.min(readTokens(given.reasoningTokens) ?? 0, outputTokens),
    ...(providerCost > 0 && { providerCost }),
  }
}

/** All tokens that a provider reports; null where it reports none that can be read. */
export function readTotalTokens(usage: unknown): number | null {
  return normalizeUsage(usage)?.totalTokens ?? findTotalOnly(usage)
}

/** What was used where only the total is told, in one number; null where input and output are told, or nothing is. */
export function findTotalOnly(usage: unknown): number | null {
  const given = (usage ?? {}) as Partial<Record<keyof TokenUsage, unknown>>
  const total = readTokens(given.totalTokens) ?? 0
  return normalizeUsage(usage) === null && total > 0 ? total : null
}
