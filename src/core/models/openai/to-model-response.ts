import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { asList, asObject, asText } from '../../base/values.js'
import { readCitations } from '../citations.js'
import { listDistinctCalls, type SentCall } from '../calls.js'
import { describeMediaList } from '../media.js'
import { ModelError } from '../provider.js'
import {
  readCalls,
  readItemArguments,
  messageSeparator,
  toKeptItems,
  readWords,
  splitMessage,
  readPictures,
  isApprovalRequest,
} from './response-items.js'
import type { StreamedItem } from './output-items.js'

interface ResponseAnswer extends Pick<ModelResponse, 'finishReason' | 'complete' | 'usage' | 'model' | 'id'> {
  items: readonly JsonObject[]
  from: string
}

/**
 * Converts a response. The text is the final answer. Commentary (`phase: commentary`) is used as the text only if
 * there is nothing else, and stays in the items.
 *
 * @throws ModelError `unsupported_output` for items that require an output other than a function result
 */
export function toModelResponse({ items: all, from, ...answer }: ResponseAnswer): ModelResponse {
  const items = listDistinctCalls(all.map(withoutThoughts), readSentCall)
  const foreign = items.find((item) => needsOutput(item, items))
  if (foreign !== undefined && answer.complete) throw unsupportedOutputError(foreign)
  const messages = items.filter(({ type }) => type === 'message')
  const answers = messages.filter((item) => item.phase !== 'commentary' && hasWords(item))
  const visible = answers.length > 0 ? answers : messages.filter(hasWords)
  const refusal = visible.map((item) => readWords(item, 'refusal')).join('')
  const toolCalls = readCalls(items, from)
  const media = readPictures(items)
  const annotations = readCitations(visible.flatMap(listCitations))
  const isPicture = visible.length === 0 && toolCalls.length === 0
  return {
    ...answer,
    text: isPicture ? describeMediaList(media) : joinText(visible),
    reasoning: joinThoughts(all),
    refusal: refusal || null,
    toolCalls,
    ...(media.length > 0 && { media }),
    ...(annotations.length > 0 && { annotations }),
    ...(answer.complete &&
      items.length > 0 && { providerItems: { from, items: toKeptItems(items, visible) } }),
  }
}

function readSentCall(item: JsonObject): SentCall | null {
  if (item.type !== 'function_call') return null
  return { id: asText(item.call_id), name: asText(item.name), arguments: readItemArguments(item) }
}

/** All text, including commentary. */
export function joinText(items: readonly JsonObject[]): string {
  const messages = items.filter(({ type }) => type === 'message').map(withoutThoughts)
  return messages
    .map((item) => readWords(item, 'text'))
    .filter(Boolean)
    .join(messageSeparator)
}

export function joinThoughts(items: readonly JsonObject[]): string {
  return items.flatMap(listThoughts).join(messageSeparator)
}

function listCitations({ content }: JsonObject): readonly Json[] {
  return asList(content).flatMap((part) => asList(asObject(part)?.annotations))
}

function hasWords(item: JsonObject): boolean {
  return readWords(item, 'text') !== '' || readWords(item, 'refusal') !== ''
}

function listThoughts(item: JsonObject): string[] {
  const { type, summary, content } = item
  if (type === 'message') return splitMessage(item).thoughts
  if (type !== 'reasoning') return []
  return [...asList(summary), ...asList(content)]
    .map((part) => asText(asObject(part)?.text))
    .filter((text) => text !== '')
}

function withoutThoughts(item: JsonObject): JsonObject {
  return item.type === 'message' ? splitMessage(item).message : item
}

function needsOutput({ type, call_id: id }: JsonObject, items: readonly JsonObject[]): boolean {
  const kind = asText(type)
  if (!kind.endsWith('_call') || kind === 'function_call' || typeof id !== 'string') return false
  return !items.some((item) => item.call_id === id && asText(item.type).endsWith('_output'))
}

function unsupportedOutputError({ type, name, call_id: id }: JsonObject): ModelError {
  const called = [asText(name), asText(id)].filter(Boolean).join(', ')
  return new ModelError({
    kind: 'fatal',
    code: 'unsupported_output',
    message:
      `The model's ${asText(type)}${called && ` (${called})`} requires an output that only your program can provide. ` +
      'Remove its tool from hostedTools.',
  })
}

export interface Reconciliation {
  items: JsonObject[]
  /** Incomplete calls that the final list does not contain; they are not executed. */
  dropped: JsonObject[]
}

/**
 * Merges the final item list with the streamed items. The list wins. Items that it lacks are added if they ended,
 * and messages in any case, because they were visible and paid for. A call that did not end may be incomplete.
 */
export function reconcileItems(
  listed: readonly JsonObject[],
  streamed: readonly StreamedItem[],
): Reconciliation {
  const known = pairItems(listed, streamed)
  const items = listed.map((item) => {
    const match = known.get(item)
    return match !== undefined && !hasContent(item) && hasContent(match.item) ? match.item : item
  })
  const places = listed.map((item) => known.get(item)?.at ?? null)
  const dropped: JsonObject[] = []
  const paired = new Set(known.values())
  for (const one of streamed) {
    if (paired.has(one)) continue
    if (!one.isDone) {
      if (isCall(one.item)) dropped.push(one.item)
      if (one.item.type !== 'message' || !hasContent(one.item)) continue
    }
    const after = places.findIndex((place) => place !== null && place > one.at)
    const at = after < 0 ? items.length : after
    items.splice(at, 0, one.item)
    places.splice(at, 0, one.at)
  }
  return { items, dropped }
}

/** Matches by id or content first, then by type. */
function pairItems(
  listed: readonly JsonObject[],
  streamed: readonly StreamedItem[],
): Map<JsonObject, StreamedItem> {
  const known = new Map<JsonObject, StreamedItem>()
  const free = new Set(streamed)
  for (const isSame of [isSameItem, (a: JsonObject, b: JsonObject) => a.type === b.type]) {
    for (const item of listed) {
      const match = known.has(item) ? undefined : [...free].find((one) => isSame(item, one.item))
      if (match === undefined) continue
      known.set(item, match)
      free.delete(match)
    }
  }
  return known
}

function isSameItem(a: JsonObject, b: JsonObject): boolean {
  if (a.type !== b.type) return false
  if (a.type === 'function_call') return asText(a.call_id) !== '' && a.call_id === b.call_id
  return (
    (asText(a.id) !== '' && a.id === b.id) ||
    (a.type === 'message' && readText(a) !== '' && readText(a) === readText(b))
  )
}

function isCall(item: JsonObject): boolean {
  return item.type === 'function_call' || isApprovalRequest(item)
}

function hasContent(item: JsonObject): boolean {
  if (isCall(item)) return readItemArguments(item).trim() !== ''
  return item.type !== 'message' || readText(item) !== ''
}

function readText(item: JsonObject): string {
  return readWords(item, 'text') + readWords(item, 'refusal')
}
