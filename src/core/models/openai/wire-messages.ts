import { sha256 } from '../../../../guards/lib/sha256.js'
import type { AssistantMessage, ContentPart, Message, ToolCall } from '../../../../machines/agent/messages.js'
import { deepest, isDeeper } from '../plain-extra.js'
import { isWellFormed, wellFormed } from '../well-formed.js'
import { echoed, type ReasoningEcho } from './echo-reasoning.js'

/** A message as it is sent. */
export type WireMessage = Readonly<Record<string, unknown>>

export interface WireStyle {
  /** How earlier reasoning goes back. */
  echoReasoning: ReasoningEcho
  callId: CallIds
  /** Whether results may have pictures and documents in them; elsewhere they come after the batch. */
  resultParts?: true
}

/**
 * The message without our notes (`id`, `createdAt`, `internal`, `data`; `reasoning` where it is not wanted), and valid:
 * what is stored says what happened, what is sent is what every provider takes. Null for one that says nothing.
 */
export function toWire(message: Message, style: WireStyle): WireMessage | null {
  switch (message.role) {
    case 'assistant':
      return assistant(message, style)
    case 'tool': {
      const { tool_call_id: id, content, media } = message
      const text = isBlank(content) ? empty : wellFormed(content)
      return {
        role: 'tool',
        tool_call_id: style.callId(id),
        content: media && style.resultParts ? [{ type: 'text', text }, ...wellFormed(media)] : text,
      }
    }
    case 'user':
      return { role: 'user', content: wellFormed(spoken(message.content)) }
    default:
      return isBlank(message.content) ? null : { role: 'system', content: wellFormed(message.content) }
  }
}

/** What the model reads where a text has no words: several providers refuse a blank one. */
export const empty = '(empty)'

export function isBlank(text: string | null | undefined): boolean {
  return text === null || text === undefined || text.trim() === ''
}

function spoken(content: string | ContentPart[]): string | ContentPart[] {
  if (typeof content === 'string') return isBlank(content) ? empty : content
  const parts = content.filter((part) => part.type !== 'text' || !isBlank(part.text))
  return parts.length === 0 ? empty : parts
}

/** An answer may have ended before its first word, or with thoughts alone: a request with such a message is refused. */
function assistant(message: AssistantMessage, { echoReasoning, callId }: WireStyle): WireMessage | null {
  const calls = message.tool_calls ?? []
  // A refusal is text to every provider but one. Null is allowed beside calls only.
  const words = [message.content, message.refusal].find((text) => !isBlank(text)) ?? null
  if (words === null && calls.length === 0) return null
  const { reasoning_details: details } = message
  return {
    role: 'assistant',
    ...wellFormed(echoed(message, words, echoReasoning)),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => wireCall(call, callId)) }),
    ...(details !== undefined && { reasoning_details: wellFormed(details) }),
  }
}

/** What calls are told apart by on the wire. The same for the same id, so that results find their calls. */
type CallIds = (id: string) => string

/** Longest id that OpenAI takes in chats. vLLM's own, for one, are longer. */
const longestId = 40

/**
 * Ids as a model takes them. Mistral's have nine letters and digits; Kimi counts its own by what is in them, so they
 * stay as they are; everybody else's are shortened to what OpenAI takes.
 */
export function callIdsOf(model: string, isMistral: boolean, most = longestId): CallIds {
  if (isMistral) return (id) => (/^[a-zA-Z0-9]{9}$/.test(id) ? id : digest(id).slice(0, 9))
  const longest = /kimi/i.test(model) ? Infinity : most
  return (id) => (id.length <= longest && isWellFormed(id) ? id : `call_${digest(id).slice(0, 32)}`)
}

/** As JSON, where half surrogate pairs are written out: as UTF-8 they would all be one. */
function digest(id: string): string {
  return sha256(JSON.stringify(id))
}

/** A call of the past as every provider takes it. What the model really wrote stays in the transcript. */
function wireCall(call: ToolCall, callId: CallIds): WireMessage {
  const { name, arguments: text } = call.function
  return {
    id: callId(call.id),
    type: 'function',
    function: { name: validName(name), arguments: objectText(text) },
    ...(call.extra_content !== undefined && { extra_content: wellFormed(call.extra_content) }),
  }
}

/** Providers that check names take 1 to 64 of these characters. */
export function validName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed'
}

/**
 * The arguments as the text of a JSON object. Many servers parse those of past calls, expect an object, and refuse the
 * whole request where they find none.
 */
export function objectText(text: string): string {
  if (text.trim() === '') return '{}'
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return JSON.stringify({ invalid_json: wellFormed(text) })
  }
  if (value === null) return '{}'
  if (isDeeper(value, deepest)) return JSON.stringify({ nested_too_deeply: wellFormed(text) })
  if (typeof value !== 'object' || Array.isArray(value))
    return JSON.stringify({ no_object: wellFormed(value) })
  // Half a surrogate pair may be written as an escape, which the parsing server finds, too.
  const isSound = isWellFormed(text) && !/\\u[dD][89a-fA-F]/.test(text)
  return isSound ? text : JSON.stringify(wellFormed(value))
}
