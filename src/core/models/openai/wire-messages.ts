import { sha256 } from '../../../../guards/lib/sha256.js'
import type { AssistantMessage, ContentPart, Message, ToolCall } from '../../../../machines/agent/messages.js'
import { maxDepth, isNestedDeeper, isWellFormed, toWellFormed } from '../plain-json.js'
import { readTextFile } from '../media.js'
import { toEchoFields, type ReasoningEcho } from './openai-options.js'

/** A message as it is sent. */
export type WireMessage = Readonly<Record<string, unknown>>

export interface WireStyle {
  /** How earlier reasoning goes back. */
  echoReasoning: ReasoningEcho
  callId: CallIdMapper
  /** Whether results may have pictures and documents in them; elsewhere they come after the batch. */
  resultParts?: true
}

/**
 * The message without our notes (`id`, `createdAt`, `internal`, `data`; `reasoning` where it is not wanted), and valid:
 * what is stored says what happened, what is sent is what every provider takes. Null for one that says nothing.
 */
export function toWireMessage(message: Message, style: WireStyle): WireMessage | null {
  switch (message.role) {
    case 'assistant':
      return toWireAnswer(message, style)
    case 'tool': {
      const { tool_call_id: id, content, media } = message
      const text = isBlank(content) ? emptyText : toWellFormed(content)
      return {
        role: 'tool',
        tool_call_id: style.callId(id),
        content:
          media && style.resultParts
            ? [{ type: 'text', text }, ...toWellFormed(media.map(toReadablePart))]
            : text,
      }
    }
    case 'user':
      return { role: 'user', content: toWellFormed(toWireContent(message.content)) }
    default:
      return isBlank(message.content) ? null : { role: 'system', content: toWellFormed(message.content) }
  }
}

/** What the model reads where a text has no words: several providers refuse a blank one. */
export const emptyText = '(empty)'

export function isBlank(text: string | null | undefined): boolean {
  return text === null || text === undefined || text.trim() === ''
}

function toWireContent(content: string | ContentPart[]): string | ContentPart[] {
  if (typeof content === 'string') return isBlank(content) ? emptyText : content
  const parts = content.map(toReadablePart).filter((part) => part.type !== 'text' || !isBlank(part.text))
  return parts.length === 0 ? emptyText : parts
}

/** A file that is a text goes as words. */
function toReadablePart(part: ContentPart): ContentPart {
  const text = part.type === 'text' ? null : readTextFile(part)
  return text === null ? part : { type: 'text', text }
}

/** An answer may have ended before its first word, or with thoughts alone: a request with such a message is refused. */
function toWireAnswer(message: AssistantMessage, { echoReasoning, callId }: WireStyle): WireMessage | null {
  const calls = message.tool_calls ?? []
  // A refusal is text to every provider but one. Null is allowed beside calls only.
  const words = [message.content, message.refusal].find((text) => !isBlank(text)) ?? null
  if (words === null && calls.length === 0) return null
  const { reasoning_details: details } = message
  return {
    role: 'assistant',
    ...toWellFormed(toEchoFields(message, words, echoReasoning)),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => toWireCall(call, callId)) }),
    ...(details !== undefined && { reasoning_details: toWellFormed(details) }),
  }
}

/** What calls are told apart by on the wire. The same for the same id, so that results find their calls. */
type CallIdMapper = (id: string) => string

/** Longest id that OpenAI takes in chats. vLLM's own, for one, are longer. */
const maxCallIdLength = 40

/**
 * Ids as a model takes them. Mistral's have nine letters and digits; Kimi counts its own by what is in them, so they
 * stay as they are; everybody else's are shortened to what OpenAI takes.
 */
export function createCallIdMapper(model: string, isMistral: boolean, most = maxCallIdLength): CallIdMapper {
  if (isMistral) return (id) => (/^[a-zA-Z0-9]{9}$/.test(id) ? id : hashId(id).slice(0, 9))
  const longest = /kimi/i.test(model) ? Infinity : most
  return (id) => (id.length <= longest && isWellFormed(id) ? id : `call_${hashId(id).slice(0, 32)}`)
}

/** As JSON, where half surrogate pairs are written out: as UTF-8 they would all be one. */
function hashId(id: string): string {
  return sha256(JSON.stringify(id))
}

/** A call of the past as every provider takes it. What the model really wrote stays in the transcript. */
function toWireCall(call: ToolCall, callId: CallIdMapper): WireMessage {
  const { name, arguments: text } = call.function
  return {
    id: callId(call.id),
    type: 'function',
    function: { name: toValidName(name), arguments: toObjectText(text) },
    ...(call.extra_content !== undefined && { extra_content: toWellFormed(call.extra_content) }),
  }
}

/** Providers that check names take 1 to 64 of these characters. */
export function toValidName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed'
}

/**
 * The arguments as the text of a JSON object. Many servers parse those of past calls, expect an object, and refuse the
 * whole request where they find none.
 */
export function toObjectText(text: string): string {
  if (text.trim() === '') return '{}'
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return JSON.stringify({ invalid_json: toWellFormed(text) })
  }
  if (value === null) return '{}'
  if (isNestedDeeper(value, maxDepth)) return JSON.stringify({ nested_too_deeply: toWellFormed(text) })
  if (typeof value !== 'object' || Array.isArray(value))
    return JSON.stringify({ no_object: toWellFormed(value) })
  // Half a surrogate pair may be written as an escape, which the parsing server finds, too.
  const isSound = isWellFormed(text) && !/\\u[dD][89a-fA-F]/.test(text)
  return isSound ? text : JSON.stringify(toWellFormed(value))
}

/** Most calls that a message may have at OpenAI. */
const maxCallsPerMessage = 128

export interface Arrangement {
  /** Whether an answer goes between results and what a user says next, which Mistral's models insist on. */
  bridge: boolean
  /** Most calls in one message. Default: what OpenAI takes. */
  most?: number
}

/**
 * Messages in an order that every provider takes: what the system says first and in one, then a user's, users' and
 * answers' in turns, and no more calls in one message than may be. Messages that need no change stay the same objects.
 */
export function arrangeMessages(
  messages: readonly WireMessage[],
  { bridge, most = maxCallsPerMessage }: Arrangement,
): WireMessage[] {
  const system: WireMessage[] = []
  const turns: WireMessage[] = []
  let last: WireMessage | undefined
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at] as WireMessage
    const role = message['role']
    if (role === 'system') {
      system.push(message)
      continue
    }
    const calls = role === 'assistant' ? getCalls(message) : noCalls
    if (role === 'assistant' && last === undefined) turns.push(openingMessage)
    if (bridge && role === 'user' && last?.['role'] === 'tool') turns.push(bridgeMessage)
    if (calls.length > most) {
      turns.push(...splitBatch(message, calls, messages.slice(at + 1, at + 1 + calls.length)))
      at += calls.length
    } else if (last && canJoin(last, message)) turns[turns.length - 1] = joinMessages(last, message)
    else turns.push(message)
    last = turns.at(-1)
  }
  const [first] = system
  if (first !== undefined) turns.unshift(system.length === 1 ? first : joinSystem(system))
  return turns
}

function joinSystem(system: readonly WireMessage[]): WireMessage {
  return { role: 'system', content: system.map((message) => message['content']).join('\n\n') }
}

/** The words of the system, of the user and of guidance, as messages; none where they are blank. */
export function toTextMessages(role: 'system' | 'user', words: string | null): WireMessage[] {
  return isBlank(words) ? [] : [{ role, content: words }]
}

/** As `saying`: the same message for the words of the time before. */
export function createTextMessageCache(role: 'system' | 'user'): (words: string | null) => WireMessage[] {
  let last: WireMessage[] = []
  return (words) => {
    if (last[0]?.['content'] !== words) last = toTextMessages(role, words)
    return [...last]
  }
}

/** An app may greet its users first; most chat templates refuse that. */
const openingMessage: WireMessage = { role: 'user', content: 'Begin.' }
const bridgeMessage: WireMessage = { role: 'assistant', content: 'OK.' }

/** Some chat templates refuse two of a kind in a row, and to a model one is the same. A provider's own items stay as they are. */
function canJoin(last: WireMessage, message: WireMessage): boolean {
  if (last['role'] !== message['role']) return false
  if (last['items'] !== undefined || message['items'] !== undefined) return false
  return message['role'] === 'user' || (message['role'] === 'assistant' && last['tool_calls'] === undefined)
}

function joinMessages(last: WireMessage, message: WireMessage): WireMessage {
  const contents = [last['content'], message['content']].filter((content) => content !== null)
  const isText = contents.every((content) => typeof content === 'string')
  return { ...last, ...message, content: isText ? contents.join('\n\n') : contents.flatMap(toParts) }
}

function toParts(content: unknown): unknown[] {
  return Array.isArray(content) ? content : [{ type: 'text', text: content }]
}

/** A batch of more calls than a message may have as several, each with its results. */
function splitBatch(
  message: WireMessage,
  calls: readonly unknown[],
  results: readonly WireMessage[],
): WireMessage[] {
  return Array.from({ length: Math.ceil(calls.length / maxCallsPerMessage) }, (_, i) => {
    const [from, to] = [i * maxCallsPerMessage, (i + 1) * maxCallsPerMessage]
    const part = { ...message, ...(i > 0 && { content: null }), tool_calls: calls.slice(from, to) }
    return [part, ...results.slice(from, to)]
  }).flat()
}

const noCalls: readonly unknown[] = []

function getCalls({ tool_calls: calls }: WireMessage): readonly unknown[] {
  return Array.isArray(calls) ? calls : noCalls
}
