import { sha256 } from '../../../../guards/lib/sha256.js'
import type { AssistantMessage, ContentPart, Message, ToolCall } from '../../../../machines/agent/messages.js'
import { parseJsonOr } from '../../base/json.js'
import { maxDepth, isNestedDeeper, isWellFormed, toWellFormed } from '../plain-json.js'
import { readTextFile } from '../media.js'
import type { ModelRequest } from '../provider.js'
import type { ReasoningEcho } from './openai-options.js'

export type WireMessage = Readonly<Record<string, unknown>>

export interface WireStyle {
  echoReasoning: ReasoningEcho
  callId: CallIdMapper
  /** Whether results may contain media. If not, the media follow the batch as a separate message. */
  resultParts?: true
}

/** Null if the message has no content. */
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

/** Replaces blank text, which several providers reject. */
export const emptyText = '(empty)'

export function isBlank(text: string | null | undefined): boolean {
  return text === null || text === undefined || text.trim() === ''
}

function toWireContent(content: string | ContentPart[]): string | ContentPart[] {
  if (typeof content === 'string') return isBlank(content) ? emptyText : content
  const parts = content.map(toReadablePart).filter((part) => part.type !== 'text' || !isBlank(part.text))
  return parts.length === 0 ? emptyText : parts
}

function toReadablePart(part: ContentPart): ContentPart {
  const text = part.type === 'text' ? null : readTextFile(part)
  return text === null ? part : { type: 'text', text }
}

function toWireAnswer(message: AssistantMessage, { echoReasoning, callId }: WireStyle): WireMessage | null {
  const calls = message.tool_calls ?? []
  // A refusal is sent as text, which all providers accept. Content can be null only together with calls.
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

function toEchoFields(
  { reasoning = '', tool_calls: calls = [] }: AssistantMessage,
  content: string | null,
  echo: ReasoningEcho,
): WireMessage {
  if (echo === 'with_calls') return calls.length > 0 ? { content, reasoning_content: reasoning } : { content }
  if (echo === 'none' || reasoning === '') return { content }
  if (echo !== 'thinking') return { content, [echo]: reasoning }
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: reasoning }] }
  return { content: content ? [thinking, { type: 'text', text: content }] : [thinking] }
}

/** Maps call ids to valid ones. The mapping is deterministic, so that results match their calls. */
type CallIdMapper = (id: string) => string

/** OpenAI's maximum id length in Chat Completions. vLLM creates longer ids. */
const maxCallIdLength = 40

/** Mistral requires nine letters and digits. Kimi reads the counter in its ids, so they are kept. */
export function createCallIdMapper(model: string, isMistral: boolean, most = maxCallIdLength): CallIdMapper {
  if (isMistral) return (id) => (/^[a-zA-Z0-9]{9}$/.test(id) ? id : hashId(id).slice(0, 9))
  const longest = /kimi/i.test(model) ? Infinity : most
  return (id) => (id.length <= longest && isWellFormed(id) ? id : `call_${hashId(id).slice(0, 32)}`)
}

/** Escapes lone surrogates, because they would all be equal in UTF-8. */
function hashId(id: string): string {
  return sha256(JSON.stringify(id))
}

/** Makes a call valid for every provider. The transcript keeps the original call. */
function toWireCall(call: ToolCall, callId: CallIdMapper): WireMessage {
  const { name, arguments: text } = call.function
  return {
    id: callId(call.id),
    type: 'function',
    function: { name: toValidName(name), arguments: toObjectText(text) },
    ...(call.extra_content !== undefined && { extra_content: toWellFormed(call.extra_content) }),
  }
}

/** Makes a name valid. Providers that validate names accept 1 to 64 letters, digits, `_` and `-`. */
export function toValidName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed'
}

/** Many servers parse the arguments of past calls, and reject requests in which they are not an object. */
export function toObjectText(text: string): string {
  if (text.trim() === '') return '{}'
  const value = parseJsonOr(text, undefined)
  if (value === undefined) return JSON.stringify({ invalid_json: toWellFormed(text) })
  if (value === null) return '{}'
  if (isNestedDeeper(value, maxDepth)) return JSON.stringify({ nested_too_deeply: toWellFormed(text) })
  if (typeof value !== 'object' || Array.isArray(value))
    return JSON.stringify({ no_object: toWellFormed(value) })
  // The server would unescape an escaped lone surrogate.
  const isSound = isWellFormed(text) && !/\\u[dD][89a-fA-F]/.test(text)
  return isSound ? text : JSON.stringify(toWellFormed(value))
}

const maxCallsPerMessage = 128

interface ArrangeOptions {
  /** Whether a user message must not follow a result. */
  bridge: boolean
  /** Calls per message. Defaults to 128. */
  most?: number
}

/** Returns the messages of a request, with unchanged instructions as the same object. */
export function createArranger(options: ArrangeOptions) {
  let system: WireMessage[] = []
  return ({ instructions, nudges }: ModelRequest, messages: readonly (WireMessage | null)[]) => {
    const words = toWellFormed(instructions)
    if (system[0]?.['content'] !== words) system = toTextMessages('system', words)
    const guidance = toTextMessages('user', toWellFormed(nudges.join('\n\n')))
    const sent = messages.filter((message) => message !== null)
    return arrangeMessages([...system, ...sent, ...guidance], options)
  }
}

/**
 * Arranges messages so that every provider accepts them: one system message first, then alternating user and assistant
 * messages with a limited number of calls each. Unchanged messages stay the same objects.
 */
function arrangeMessages(
  messages: readonly WireMessage[],
  { bridge, most = maxCallsPerMessage }: ArrangeOptions,
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
  const whole = system.map((message) => message['content']).join('\n\n')
  if (system.length > 1) return [{ role: 'system', content: whole }, ...turns]
  return [...system, ...turns]
}

function toTextMessages(role: 'system' | 'user', words: string | null): WireMessage[] {
  return isBlank(words) ? [] : [{ role, content: words }]
}

/** The app may greet the user first, but most chat templates reject a conversation that starts with the assistant. */
const openingMessage: WireMessage = { role: 'user', content: 'Begin.' }
const bridgeMessage: WireMessage = { role: 'assistant', content: 'OK.' }

/** Some chat templates reject consecutive messages with the same role. Stored items stay separate. */
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

function splitBatch(message: WireMessage, calls: readonly unknown[], results: readonly WireMessage[]) {
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
