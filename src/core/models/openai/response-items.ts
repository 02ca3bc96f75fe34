import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import type {
  MediaPart,
  AssistantMessage,
  Message,
  ToolCall,
  ToolMessage,
} from '../../../../machines/agent/messages.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { asList, asObject, asText } from '../../base/values.js'
import { describeMediaList, toContentPart } from '../media.js'
import { toWellFormed } from '../plain-json.js'
import type { WireMessage } from './wire-messages.js'
import { noDelta } from './answer-reader.js'
import { mayHaveTag, ThinkSplitter } from './think-tags.js'

export const messageSeparator = '\n\n'

type Call = Pick<ModelResponse['toolCalls'][number], 'id' | 'function' | 'hosted'>

export interface MessageContent {
  content: string
  refusal: string
  calls: readonly Call[]
  media: readonly MediaPart[]
}

/** Stores text and images once, in the message, so that its redactions apply here too. Items keep their length. */
export function toKeptItems(items: readonly JsonObject[], answers: readonly JsonObject[]): Json[] {
  return items.map((item): JsonObject => {
    if (item.type === 'function_call' || isApprovalRequest(item)) {
      const { name: _name, arguments: _arguments, ...rest } = item
      delete rest[isApprovalRequest(item) ? 'id' : 'call_id']
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
  // `logprobs` is large, and models do not use it.
  const { logprobs: _logprobs, ...rest } = part
  return {
    ...rest,
    ...(typeof part.text === 'string' && { text: part.text.length }),
    ...(typeof part.refusal === 'string' && { refusal: part.refusal.length }),
  }
}

/** Restores the items to send back, or returns null if the message no longer matches them. */
export function restoreItems(
  stored: readonly Json[],
  { content, refusal, calls, media }: MessageContent,
): JsonObject[] | null {
  // The text of an image-only response describes its images.
  const isPicture = media.length > 0 && content === describeMediaList(media)
  const words = { text: isPicture ? '' : content, refusal }
  const used = { text: 0, refusal: 0 }
  const pending = [...calls]
  const pictures = [...media]
  let isBroken = false
  let isLater = false

  function take(kind: 'text' | 'refusal', length: number): string {
    const at = used[kind]
    used[kind] = at + length
    isBroken ||= used[kind] > words[kind].length
    return words[kind].slice(at, at + length)
  }

  function filled(value: Json): Json {
    const part = asObject(value)
    if (typeof part?.text === 'number') return { ...part, text: take('text', part.text) }
    if (typeof part?.refusal === 'number') return { ...part, refusal: take('refusal', part.refusal) }
    return value
  }

  const items = stored.map((value): JsonObject => {
    const item = asObject(value) ?? {}
    if (item.type === 'function_call') {
      const call = pending.shift()
      isBroken ||= call === undefined || call.hosted !== undefined
      return { ...item, call_id: call?.id ?? '', ...call?.function }
    }
    if (isApprovalRequest(item)) {
      const call = pending.shift()
      isBroken ||= call?.hosted === undefined
      return call === undefined ? item : toApprovalItem(call, item)
    }
    if (isImageCall(item) && typeof item.result === 'number') {
      const whole = restorePicture(item, pictures.shift())
      isBroken ||= whole === null
      return whole ?? item
    }
    if (item.type !== 'message') return item
    if (asList(item.content).some((part) => Number(asObject(part)?.text) > 0)) {
      if (isLater) isBroken ||= take('text', messageSeparator.length) !== messageSeparator
      isLater = true
    }
    return { ...item, content: asList(item.content).map(filled) }
  })
  const isWhole = used.text === words.text.length && used.refusal === refusal.length && pending.length === 0
  return isWhole && !isBroken ? items : null
}

export function readWords(item: JsonObject, kind: 'text' | 'refusal'): string {
  return asList(item.content)
    .map((part) => asText(asObject(part)?.[kind]))
    .join('')
}

export const isImageCall = ({ type }: JsonObject): boolean => type === 'image_generation_call'

export function readPictures(items: readonly JsonObject[]): MediaPart[] {
  return items.filter(isImageCall).flatMap(readPicture)
}

/** Replaces the image with the length of its base64, because the message contains the image in `media`. */
function stripPicture(item: JsonObject): JsonObject {
  // The provider rejects other fields in items that are sent back.
  const { id = '', type = '', status = 'completed' } = item
  const hasPicture = readPicture(item).length > 0
  return { id, type, status, result: hasPicture ? asText(item.result).length : null }
}

function restorePicture(item: JsonObject, picture: MediaPart | undefined): JsonObject | null {
  const url = picture?.type === 'image_url' ? picture.image_url.url : ''
  const result = url.slice(url.indexOf(',') + 1)
  return result.length === item.result ? { ...item, result } : null
}

function readPicture({ result, output_format: format }: JsonObject): MediaPart[] {
  const mediaType = asText(format) === '' ? {} : { mediaType: `image/${asText(format)}` }
  try {
    const part = toContentPart({ type: 'image', image: asText(result), ...mediaType }, 'result')
    return part.type === 'text' ? [] : [part]
  } catch {
    // There is no image, or it is unreadable.
    return []
  }
}

/** Whether the provider sent an item before it calls a tool on an MCP server. */
export const isApprovalRequest = ({ type }: Readonly<Record<string, unknown>>): boolean =>
  type === 'mcp_approval_request'

/** Names of hosted calls contain a dot, which the names of an agent's tools cannot contain. */
export function readCalls(items: readonly JsonObject[], from: string): ToolCall[] {
  return items.flatMap((item): ToolCall[] => {
    const called = { name: asText(item.name), arguments: readItemArguments(item).trim() || '{}' }
    if (item.type === 'function_call')
      return [{ id: asText(item.call_id) || asText(item.id), type: 'function', function: called }]
    if (!isApprovalRequest(item)) return []
    const server = asText(item.server_label)
    const hosted = { ...called, name: `${server || 'mcp'}.${called.name}` }
    return [{ id: asText(item.id), type: 'function', function: hosted, hosted: { from, server } }]
  })
}

/** Returns the arguments as JSON text. Some servers send parsed arguments. */
export function readItemArguments(item: JsonObject): string {
  const { type, arguments: input } = item
  if (type !== 'function_call' && !isApprovalRequest(item)) return ''
  return typeof input === 'object' && input !== null ? JSON.stringify(input) : asText(input)
}

export function toApprovalItem(
  call: Pick<ToolCall, 'id' | 'function' | 'hosted'>,
  rest: JsonObject = {},
): JsonObject {
  const { id, function: called, hosted } = call
  const { name, arguments: text } = called
  const server = hosted?.server ?? ''
  const prefix = `${server || 'mcp'}.`
  return {
    server_label: server,
    ...rest,
    type: 'mcp_approval_request',
    id,
    name: name.startsWith(prefix) ? name.slice(prefix.length) : name,
    arguments: text,
  }
}

/** The calls that this provider requested approval for. */
export function listHostedCalls(message: AssistantMessage, from: string): ToolCall[] {
  return (message.tool_calls ?? []).filter(({ hosted }) => hosted?.from === from)
}

/** Approves the call only if a person explicitly approved it. */
export function toApprovalAnswer({ tool_call_id: id, content, data }: ToolMessage): WireMessage {
  const approve = data?.['approved'] === true
  const answer = { type: 'mcp_approval_response', approval_request_id: id, approve }
  return { role: 'tool', items: [approve ? answer : { ...answer, reason: toWellFormed(content) }] }
}

/** Recognizes results that answer approval requests of this provider. Call it for each message in order. */
export function createAnswerFilter(from: string): (message: Message) => message is ToolMessage {
  let pending: readonly ToolCall[] = []
  return (message): message is ToolMessage => {
    if (message.role === 'assistant') pending = listHostedCalls(message, from)
    return message.role === 'tool' && pending.some(({ id }) => id === message.tool_call_id)
  }
}

/** Whether an item is a thought. Servers for open models put thoughts into messages. */
export function isThought({ type }: JsonObject): boolean {
  return ['reasoning_text', 'reasoning', 'thinking', 'summary_text'].includes(asText(type))
}

export const readThought = ({ text, thinking }: JsonObject): string => asText(text) || asText(thinking)

/** Separates thoughts from a message: reasoning parts, and text inside tags such as `<think>`. */
export function splitMessage(message: JsonObject): { message: JsonObject; thoughts: string[] } {
  const parts = asList(message.content).map((part) => asObject(part) ?? {})
  if (!parts.some((part) => isThought(part) || mayHaveTag(asText(part.text))))
    return { message, thoughts: [] }
  const thoughts = parts.filter(isThought).map(readThought)
  const splitter = new ThinkSplitter()
  let tagged = ''
  const words = parts.filter((part) => !isThought(part))
  const last = words.findLastIndex(({ text }) => typeof text === 'string')
  const content = words.map((part, i) => {
    if (typeof part.text !== 'string') return part
    const added = splitter.push(part.text)
    const end = i === last ? splitter.flush() : noDelta
    tagged += added.reasoning + end.reasoning
    return { ...part, text: added.text + end.text }
  })
  return {
    message: { ...message, content },
    thoughts: [...thoughts, tagged].filter((thought) => thought !== ''),
  }
}
