import type { Json, JsonObject } from '../../../../../machines/agent/json.js'
import type { MediaPart } from '../../../../../machines/agent/messages.js'
import type { ModelResponse } from '../../../../../machines/agent/model-response.js'
import { asList, asObject, asText } from '../../../base/values.js'
import { describeMediaList } from '../../media.js'
import { isApprovalRequest, toApprovalItem } from './response-calls.js'
import { isImageCall, stripPicture, restorePicture } from './image-items.js'

/** Between two messages of one answer. */
export const messageSeparator = '\n\n'

type Call = Pick<ModelResponse['toolCalls'][number], 'id' | 'function' | 'hosted'>

/** What a message says for itself. */
export interface MessageContent {
  content: string
  refusal: string
  calls: readonly Call[]
  media: readonly MediaPart[]
}

/**
 * The items of an answer as they are kept with its message. What the message says for itself is left out of them: the words
 * of `answers` and pictures, of which only the length stays, and calls. So nothing is kept twice, and what is changed or withheld in
 * the message is so here.
 */
export function toKeptItems(items: readonly JsonObject[], answers: readonly JsonObject[]): Json[] {
  return items.map((item): JsonObject => {
    if (item.type === 'function_call') {
      const { name: _name, arguments: _arguments, call_id: _id, ...rest } = item
      return rest
    }
    if (isApprovalRequest(item)) {
      const { name: _name, arguments: _arguments, id: _id, ...rest } = item
      return rest
    }
    if (isImageCall(item)) return stripPicture(item)
    if (!answers.includes(item)) return item
    return { ...item, content: asList(item.content).map(stripWords) }
  })
}

function stripWords(value: Json): Json {
  const part = asObject(value)
  if (part === null) return value
  // Large, and nothing that a model reads.
  const { logprobs: _logprobs, ...rest } = part
  return {
    ...rest,
    ...(typeof part.text === 'string' && { text: part.text.length }),
    ...(typeof part.refusal === 'string' && { refusal: part.refusal.length }),
  }
}

/** The items as they go back; null when the message, as it is now, is no more what they were kept with. */
export function restoreItems(
  kept: readonly Json[],
  { content, refusal, calls, media }: MessageContent,
): JsonObject[] | null {
  // An answer of pictures alone has them as its words, too.
  const isPicture = media.length > 0 && content === describeMediaList(media)
  const words = { text: isPicture ? '' : content, refusal }
  const taken = { text: 0, refusal: 0 }
  const asked = [...calls]
  const pictures = [...media]
  let isBroken = false
  let isLater = false

  function take(kind: 'text' | 'refusal', length: number): string {
    const at = taken[kind]
    taken[kind] = at + length
    isBroken ||= taken[kind] > words[kind].length
    return words[kind].slice(at, at + length)
  }

  function filled(value: Json): Json {
    const part = asObject(value)
    if (typeof part?.text === 'number') return { ...part, text: take('text', part.text) }
    if (typeof part?.refusal === 'number') return { ...part, refusal: take('refusal', part.refusal) }
    return value
  }

  const items = kept.map((value): JsonObject => {
    const item = asObject(value) ?? {}
    if (item.type === 'function_call') {
      const call = asked.shift()
      isBroken ||= call === undefined || call.hosted !== undefined
      return { ...item, call_id: call?.id ?? '', ...call?.function }
    }
    if (isApprovalRequest(item)) {
      const call = asked.shift()
      isBroken ||= call?.hosted === undefined
      return call === undefined ? item : toApprovalItem(call, item)
    }
    if (isImageCall(item) && typeof item.result === 'number') {
      const whole = restorePicture(item, pictures.shift())
      isBroken ||= whole === null
      return whole ?? item
    }
    if (item.type !== 'message') return item
    if (hasText(item)) {
      if (isLater) isBroken ||= take('text', messageSeparator.length) !== messageSeparator
      isLater = true
    }
    return { ...item, content: asList(item.content).map(filled) }
  })
  const isWhole = taken.text === words.text.length && taken.refusal === refusal.length && asked.length === 0
  return isWhole && !isBroken ? items : null
}

/** Whether words of an item stand in the message that it was kept with. */
function hasText({ content }: JsonObject): boolean {
  return asList(content).some((part) => Number(asObject(part)?.text) > 0)
}

/** The words of a message item. */
export function readWords(item: JsonObject, kind: 'text' | 'refusal'): string {
  return asList(item.content)
    .map((part) => asText(asObject(part)?.[kind]))
    .join('')
}
