import { isRecord } from '../../../guards/lib/stored.js'
import type { NewMessage, SessionState } from '../../../machines/agent/context.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type {
  ContentPart,
  HostedCallOrigin,
  MediaPart,
  Message,
  ProviderItems,
  ToolCall,
} from '../../../machines/agent/messages.js'
import { UsageError, inputError } from '../base/errors.js'
import { readTime } from '../base/clock.js'
import { toContentPart } from '../models/media.js'
import { nameCall } from '../models/calls.js'
import { toPlainJson, readHostedBy, readProviderItems } from '../models/plain-json.js'
import { copyAsJson, readUserContent, toMessage, toMessages, type UserInput } from './user-input.js'

/** The input of a run: a user message, or a conversation that ends with a user message. */
export type RunInput = UserInput | readonly HistoryMessage[]

/**
 * A message in a conversation from another source, in the Chat Completions format. Accepts provider responses,
 * `result.messages` and database rows. Other keys are ignored.
 * @example
 * const rows: HistoryMessage[] = [
 *   { role: 'user', content: 'How many in April?' },
 *   { role: 'assistant', content: 'Seven.' },
 * ]
 * agent.run([...rows, { role: 'user', content: 'And in May?' }])
 */
export type HistoryMessage =
  | (Stamp & { role?: 'user'; content: string | ContentPart[] })
  | (Stamp & { role: 'system' | 'developer'; content: string | TextPart[] })
  | (Stamp & {
      role: 'assistant'
      content?: string | (TextPart | RefusalPart)[] | null | undefined
      tool_calls?: readonly HistoryCall[] | null | undefined
      refusal?: string | null | undefined
      /** The model's reasoning. `reasoning_content` is accepted, too. */
      reasoning?: string | null | undefined
      reasoning_content?: string | null | undefined
      reasoning_details?: readonly unknown[] | null | undefined
      /** Data from a run's result. */
      provider_items?: ProviderItems | null | undefined
      by?: string | null | undefined
    })
  | (Stamp & {
      role: 'tool'
      tool_call_id: string
      content: string | TextPart[]
      /** Content that a tool returned in addition to text. */
      media?: readonly MediaPart[] | null | undefined
    })

/** The id, time and notes of a message. Messages are renumbered, and a missing time is set to now. */
interface Stamp {
  id?: string | undefined
  createdAt?: number | undefined
  internal?: true | undefined
  data?: JsonObject | undefined
}

interface HistoryCall {
  id: string
  type?: string | undefined
  /** `arguments` is JSON text, exactly as the model generated it. */
  function?: { name: string; arguments: string } | undefined
  extra_content?: unknown
  /** Data from a run's result. */
  hosted?: HostedCallOrigin | null | undefined
}

type TextPart = Extract<ContentPart, { type: 'text' }>

interface RefusalPart {
  type: 'refusal'
  refusal: string
}

/** The earlier conversation, numbered from m1, and the new user messages. */
export interface InputConversation {
  history: Message[]
  newMessages: NewMessage[]
}

/** The user messages at the end of the input are new. @throws {UsageError} `invalid_input`, naming the message */
export function readConversation(input: unknown, now: number): InputConversation {
  const from = Array.isArray(input) ? input.findLastIndex(isHistoryMessage) + 1 : 0
  if (!Array.isArray(input) || from === 0) return { history: [], newMessages: toMessages(input) }
  const history = arrangeHistory(input.slice(0, from).map(readMessage), now)
  const newMessages = input.slice(from).map((message, i) => toMessage(message, `input[${from + i}]`))
  if (newMessages.length > 0) return { history, newMessages }
  throw historyError(
    `input[${from - 1}]`,
    'is the last message, but it is not a user message. End with the message that the model should answer.',
  )
}

export function addHistory(
  state: SessionState,
  { history }: InputConversation,
  sessionId: string,
): SessionState {
  if (history.length === 0) return state
  if (state.messages.length === 0) return { ...state, messages: history }
  throw sessionNotEmptyError(sessionId)
}

export function sessionNotEmptyError(sessionId: string): UsageError {
  const message = `Session '${sessionId}' already has a history. Pass only the new user message, or use another session.`
  return new UsageError('session_not_empty', message, sessionId)
}

type MessageDraft = Message extends infer Each
  ? Each extends Message
    ? Omit<Each, 'id' | 'createdAt'>
    : never
  : never
type Fields = Record<string, unknown>

interface ParsedMessage {
  draft: MessageDraft
  /** The place in the input, for errors. */
  at: string
  createdAt: number | undefined
}

function isHistoryMessage(message: unknown): boolean {
  const { role, internal } = (message ?? {}) as { role?: unknown; internal?: unknown }
  return (role !== undefined && role !== 'user') || internal === true
}

function readMessage(value: unknown, index: number): ParsedMessage {
  const at = `input[${index}]`
  if (typeof value !== 'object' || value === null) throw historyError(at, 'must be a message object.')
  const message = copyAsJson(value, at) as Fields
  const { createdAt, internal, data } = message
  const notes = {
    ...(internal === true && { internal: true as const }),
    ...(isRecord(data) && { data: data as JsonObject }),
  }
  const time = readTime(createdAt)
  return {
    draft: { ...readRole(message, at), ...notes },
    at,
    createdAt: time !== null && time >= 0 ? time : undefined,
  }
}

function readRole(message: Fields, at: string): MessageDraft {
  const { role = 'user', content } = message
  switch (role) {
    case 'user':
      return { role, content: readUserContent(content, `${at}.content`) }
    case 'system':
    case 'developer':
      return { role: 'system', content: readText(content, `${at}.content`) }
    case 'assistant':
      return readAssistant(message, at)
    case 'tool':
      return {
        role,
        tool_call_id: readId(message['tool_call_id'], `${at}.tool_call_id`),
        content: readText(content, `${at}.content`),
        ...readMedia(message['media'], `${at}.media`),
      }
    default:
      throw historyError(
        `${at}.role`,
        `is '${String(role)}': it must be user, assistant, tool, system or developer.`,
      )
  }
}

function readAssistant(message: Fields, at: string): MessageDraft {
  const { content, tool_calls: toolCalls, reasoning_details: details, by } = message
  if (message['function_call'] != null)
    throw historyError(`${at}.function_call`, 'is deprecated. Use tool_calls, with an id for each call.')
  const calls = readCalls(toolCalls ?? [], `${at}.tool_calls`)
  const parts: (Fields | null)[] = Array.isArray(content) ? content : []
  const isRefusal = (part: Fields | null) => part?.['type'] === 'refusal'
  const refusal = readTextOrNull(message['refusal'] ?? parts.find(isRefusal)?.['refusal'], `${at}.refusal`)
  const reasoning = readTextOrNull(message['reasoning'] ?? message['reasoning_content'], `${at}.reasoning`)
  const words = Array.isArray(content) ? parts.filter((part) => !isRefusal(part)) : content
  if (words == null && calls.length === 0 && refusal === null)
    throw historyError(`${at}.content`, 'is missing, and there are no tool_calls.')
  const echoed = (Array.isArray(details) ? details : [])
    .map(toPlainJson)
    .filter((detail) => detail !== undefined)
  const items = readProviderItems(message['provider_items'])
  if (items === null && message['provider_items'] != null)
    throw historyError(`${at}.provider_items`, "must be { from, items }, unchanged from a run's message.")
  return {
    role: 'assistant',
    content: words == null ? (calls.length > 0 ? null : '') : readText(words, `${at}.content`),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(refusal !== null && { refusal }),
    ...(reasoning !== null && { reasoning }),
    ...(echoed.length > 0 && { reasoning_details: echoed }),
    ...(items !== null && { provider_items: items }),
    ...(typeof by === 'string' && { by }),
  }
}

function readMedia(value: unknown, at: string): { media?: MediaPart[] } {
  if (value == null) return {}
  if (!Array.isArray(value)) throw historyError(at, 'must be a list of parts.')
  const parts = value.map((part, i) => toContentPart(part, `${at}[${i}]`))
  const text = parts.findIndex(({ type }) => type === 'text')
  if (text >= 0) throw historyError(`${at}[${text}]`, 'is text, which belongs in the content.')
  return parts.length === 0 ? {} : { media: parts as MediaPart[] }
}

function readCalls(value: unknown, at: string): ToolCall[] {
  if (!Array.isArray(value)) throw historyError(at, 'must be a list of calls.')
  const ids = new Set<string>()
  return value.map((call: Fields | null, i): ToolCall => {
    const here = `${at}[${i}]`
    const { type = 'function', function: fn, extra_content: extra } = call ?? {}
    if (type !== 'function')
      throw historyError(here, `has the type '${String(type)}'. Only function calls are supported.`)
    const id = readId(call?.['id'], `${here}.id`)
    if (ids.has(id))
      throw historyError(`${here}.id`, `is '${id}', which another call of the message already uses.`)
    ids.add(id)
    const { name, arguments: text } = (fn ?? {}) as Fields
    if (typeof name !== 'string') throw historyError(`${here}.function.name`, 'must be a string.')
    if (typeof text !== 'string')
      throw historyError(
        `${here}.function.arguments`,
        'must be a JSON string, as the model wrote it. Pass objects through JSON.stringify.',
      )
    const echoed = toPlainJson(extra)
    const hosted = readHostedBy(call?.['hosted'])
    return {
      id,
      type: 'function',
      function: { name, arguments: text },
      ...(echoed !== undefined && { extra_content: echoed }),
      ...(hosted !== null && { hosted }),
    }
  })
}

/**
 * Numbers the messages and makes call ids unique in the session. Moves each result directly after its call, in call
 * order, because databases return results in order of arrival.
 */
function arrangeHistory(parsed: readonly ParsedMessage[], now: number): Message[] {
  const messages: Message[] = []
  const used = new Set<string>()
  const add = (draft: MessageDraft, createdAt = now): void => {
    messages.push({ id: `m${messages.length + 1}`, createdAt, ...draft })
  }
  for (let i = 0; i < parsed.length; ) {
    const { draft, at, createdAt } = parsed[i] as ParsedMessage
    const calls = (draft.role === 'assistant' && draft.tool_calls) || []
    const results = new Map<string, ParsedMessage>()
    if (draft.role !== 'tool') i += 1
    for (let next = parsed[i]; next?.draft.role === 'tool'; next = parsed[++i]) {
      const { tool_call_id: id } = next.draft
      if (results.has(id) || !calls.some((call) => call.id === id))
        throw historyError(next.at, `is a result for call '${id}', but no such call is waiting for one here.`)
      results.set(id, next)
    }
    const named = calls.map((call): ToolCall => {
      const id = call.hosted ? call.id : nameCall(call.id, messages.length + 1, used)
      used.add(id)
      return { ...call, id }
    })
    add(named.length > 0 ? ({ ...draft, tool_calls: named } as MessageDraft) : draft, createdAt)
    for (const [n, { id }] of calls.entries()) {
      const result = results.get(id)
      if (!result)
        throw historyError(
          `${at}.tool_calls[${n}]`,
          `is the call '${id}', which has no result. Add a message with the role tool right after it.`,
        )
      add({ ...result.draft, tool_call_id: named[n]?.id } as MessageDraft, result.createdAt)
    }
  }
  return messages
}

function readText(content: unknown, at: string): string {
  if (typeof content === 'string') return content
  const parts: unknown[] = Array.isArray(content) ? content : [undefined]
  const texts = parts.map((part) => {
    const { type, text } = (part ?? {}) as Fields
    if (type !== 'text' || typeof text !== 'string')
      throw historyError(at, 'must be a string, or a list of text parts.')
    return text
  })
  return texts.join('\n')
}

function readId(id: unknown, at: string): string {
  if (typeof id !== 'string' || id === '') throw historyError(at, "must be a call's id.")
  return id
}

function readTextOrNull(value: unknown, at: string): string | null {
  if (value == null || value === '') return null
  if (typeof value !== 'string') throw historyError(at, 'must be a string.')
  return value
}

const historyError = (at: string, what: string): UsageError => inputError(`${at} ${what}`, at)
