import type { NewMessage } from '../../machines/agent/context.js'
import type { JsonObject } from '../../machines/agent/json.js'
import type { AssistantMessage, ContentPart, Message, ToolCall } from '../../machines/agent/messages.js'
import { UsageError } from '../errors.js'
import { plainExtra } from '../providers/plain-extra.js'
import type { SessionState } from '../sessions/session-state.js'
import { bad, plainCopy, readContent, toMessage, toMessages, type UserInput } from './input.js'

/** What a run takes: what the user says, or the conversation so far with what the user says at its end. */
export type RunInput = UserInput | readonly HistoryMessage[]

/**
 * A message of a conversation that was kept elsewhere, in the Chat Completions shape: as a provider's answer has it, as
 * `result.messages` has it, or as your own database does. Other keys are left out.
 */
export type HistoryMessage =
  | (Stamp & { role?: 'user'; content: string | ContentPart[] })
  | (Stamp & { role: 'system' | 'developer'; content: string | TextPart[] })
  | (Stamp & {
      role: 'assistant'
      content?: string | (TextPart | RefusalPart)[] | null | undefined
      tool_calls?: readonly HistoryCall[] | null | undefined
      refusal?: string | null | undefined
      /** What the model thought aloud; `reasoning_content` is read, too. */
      reasoning?: string | null | undefined
      reasoning_content?: string | null | undefined
      reasoning_details?: readonly unknown[] | null | undefined
    })
  | (Stamp & { role: 'tool'; tool_call_id: string; content: string | TextPart[] })

/** What may be given and need not: messages are numbered anew, and those without a time are of now. */
interface Stamp {
  id?: string | undefined
  /** Milliseconds since the epoch. */
  createdAt?: number | undefined
  internal?: true | undefined
  data?: JsonObject | undefined
}

interface HistoryCall {
  id: string
  type?: string | undefined
  /** `arguments` is JSON text, as the model wrote it. */
  function?: { name: string; arguments: string } | undefined
  extra_content?: unknown
}

interface TextPart {
  type: 'text'
  text: string
}

interface RefusalPart {
  type: 'refusal'
  refusal: string
}

/** A run's input, read: the conversation before it, numbered from m1, and what the user says now. */
export interface Conversation {
  history: Message[]
  said: NewMessage[]
}

/**
 * Tells the earlier turns from what the user says now, which is everything after the last message that is not the
 * user's. A UsageError `invalid_input` names the message, and says what is wrong with it.
 */
export function readConversation(input: unknown, now: number): Conversation {
  const from = Array.isArray(input) ? input.findLastIndex(isEarlier) + 1 : 0
  if (!Array.isArray(input) || from === 0) return { history: [], said: toMessages(input) }
  const history = numbered(paired(input.slice(0, from).map(readMessage)), now)
  if (from < input.length) {
    return { history, said: input.slice(from).map((message, i) => toMessage(message, `input[${from + i}]`)) }
  }
  const at = `input[${from - 1}]`
  throw bad(`${at} is the last message, and not the user's: end with what the model is to answer.`, at)
}

/** What a run of a session starts from, with the turns that its input brings. They belong to a new session only. */
export function withHistory(state: SessionState, { history }: Conversation, sessionId: string): SessionState {
  if (history.length === 0) return state
  if (state.messages.length === 0) return { ...state, messages: history }
  throw sessionNotEmpty(sessionId)
}

export function sessionNotEmpty(sessionId: string): UsageError {
  return new UsageError(
    'session_not_empty',
    `Session '${sessionId}' has a history already. Pass only what the user says now, or another session.`,
    sessionId,
  )
}

type Draft = Message extends infer Each
  ? Each extends Message
    ? Omit<Each, 'id' | 'createdAt'>
    : never
  : never
type Fields = Record<string, unknown>

/** A message as it was read; `at` is its index in the input. */
interface Read {
  draft: Draft
  at: number
  createdAt: number | undefined
}

function isEarlier(message: unknown): boolean {
  const { role, internal } = (message ?? {}) as { role?: unknown; internal?: unknown }
  return (role !== undefined && role !== 'user') || internal === true
}

function readMessage(given: unknown, index: number): Read {
  const at = `input[${index}]`
  if (typeof given !== 'object' || given === null) throw bad(`${at} must be a message object.`, at)
  const message = plainCopy(given, at) as Fields
  const { createdAt, internal, data } = message
  const notes = {
    ...(internal === true && { internal: true as const }),
    ...(typeof data === 'object' && data !== null && !Array.isArray(data) && { data: data as JsonObject }),
  }
  const isTime = typeof createdAt === 'number' && createdAt >= 0
  return {
    draft: { ...readRole(message, at), ...notes },
    at: index,
    createdAt: isTime ? createdAt : undefined,
  }
}

function readRole(message: Fields, at: string): Draft {
  const { role = 'user', content } = message
  switch (role) {
    case 'user':
      return { role, content: readContent(content, `${at}.content`) }
    case 'system':
    case 'developer':
      return { role: 'system', content: readText(content, `${at}.content`) }
    case 'assistant':
      return readAnswer(message, at)
    case 'tool': {
      const { tool_call_id: id } = message
      if (typeof id !== 'string' || id === '')
        throw bad(
          `${at}.tool_call_id must be the id of the call that this is the result of.`,
          `${at}.tool_call_id`,
        )
      return { role, tool_call_id: id, content: readText(content, `${at}.content`) }
    }
    default:
      throw bad(
        `${at}.role is ${shown(role)}: it must be user, assistant, tool, system or developer.`,
        `${at}.role`,
      )
  }
}

function readAnswer(message: Fields, at: string): Draft {
  const { content, tool_calls: given, function_call: old, reasoning_details: details } = message
  if (old != null)
    throw bad(
      `${at}.function_call is the form of old: write it as tool_calls, with an id.`,
      `${at}.function_call`,
    )
  const calls = readCalls(given ?? [], `${at}.tool_calls`)
  const parts = Array.isArray(content) ? content : []
  const refusals = parts.flatMap((part: Fields | null) =>
    part?.['type'] === 'refusal' ? [part['refusal']] : [],
  )
  const refusal = textOrNull(message['refusal'] ?? refusals[0], `${at}.refusal`)
  const reasoning = textOrNull(message['reasoning'] ?? message['reasoning_content'], `${at}.reasoning`)
  const words = Array.isArray(content)
    ? parts.filter((part: Fields | null) => part?.['type'] !== 'refusal')
    : content
  if (words == null && calls.length === 0 && refusal === null)
    throw bad(`${at} has neither content nor tool_calls.`, `${at}.content`)
  const echoed = (Array.isArray(details) ? details : [])
    .map(plainExtra)
    .filter((detail) => detail !== undefined)
  const answer: Omit<AssistantMessage, 'id' | 'createdAt'> = {
    role: 'assistant',
    content: words == null ? (calls.length > 0 ? null : '') : readText(words, `${at}.content`),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(refusal !== null && { refusal }),
    ...(reasoning !== null && { reasoning }),
    ...(echoed.length > 0 && { reasoning_details: echoed }),
  }
  return answer
}

function readCalls(given: unknown, at: string): ToolCall[] {
  if (!Array.isArray(given)) throw bad(`${at} must be a list of calls.`, at)
  const ids = new Set<string>()
  return given.map((call: Fields | null, i): ToolCall => {
    const here = `${at}[${i}]`
    const { id, type = 'function', extra_content: extra } = call ?? {}
    if (type !== 'function')
      throw bad(`${here}.type is ${shown(type)}: only calls of functions are known.`, here)
    if (typeof id !== 'string' || id === '') throw bad(`${here}.id must be a text.`, `${here}.id`)
    if (ids.has(id))
      throw bad(`${here}.id is ${shown(id)}, like that of another call of the message.`, `${here}.id`)
    ids.add(id)
    const { name, arguments: text } = (call?.['function'] ?? {}) as Fields
    if (typeof name !== 'string') throw bad(`${here}.function.name must be a text.`, `${here}.function.name`)
    if (typeof text !== 'string') {
      const where = `${here}.function.arguments`
      throw bad(`${where} must be JSON text, as the model wrote it: JSON.stringify an object.`, where)
    }
    const echoed = plainExtra(extra)
    const extras = echoed === undefined ? {} : { extra_content: echoed }
    return { id, type: 'function', function: { name, arguments: text }, ...extras }
  })
}

/** Each call with its one result right after it, in call order; databases give them in the order of arrival. */
function paired(messages: readonly Read[]): Read[] {
  const ordered: Read[] = []
  for (let i = 0; i < messages.length; ) {
    const asked = messages[i] as Read
    if (asked.draft.role === 'tool') throw orphan(asked.draft.tool_call_id, asked.at)
    let end = i + 1
    while (messages[end]?.draft.role === 'tool') end += 1
    ordered.push(asked, ...inCallOrder(asked, messages.slice(i + 1, end)))
    i = end
  }
  return ordered
}

function inCallOrder({ draft, at }: Read, results: readonly Read[]): Read[] {
  const calls = (draft.role === 'assistant' && draft.tool_calls) || []
  const byCall = new Map<string, Read>()
  for (const result of results) {
    const id = result.draft.role === 'tool' ? result.draft.tool_call_id : ''
    if (byCall.has(id) || !calls.some((call) => call.id === id)) throw orphan(id, result.at)
    byCall.set(id, result)
  }
  return calls.map((call, i) => {
    const result = byCall.get(call.id)
    if (result) return result
    const where = `input[${at}].tool_calls[${i}]`
    throw bad(
      `${where}, the call ${shown(call.id)}, has no result: a message of the role tool right after it.`,
      where,
    )
  })
}

function orphan(id: string, at: number): UsageError {
  const where = `input[${at}]`
  return bad(`${where} is a result of the call ${shown(id)}, and no such call waits for one here.`, where)
}

function numbered(messages: readonly Read[], now: number): Message[] {
  return messages.map(({ draft, createdAt = now }, i): Message => ({ id: `m${i + 1}`, createdAt, ...draft }))
}

function readText(content: unknown, at: string): string {
  if (typeof content === 'string') return content
  const parts: unknown[] = Array.isArray(content) ? content : [undefined]
  const texts = parts.map((part) => {
    const { type, text } = (part ?? {}) as Fields
    if (type !== 'text' || typeof text !== 'string')
      throw bad(`${at} must be a text, or a list of text parts.`, at)
    return text
  })
  return texts.join('\n')
}

function textOrNull(value: unknown, at: string): string | null {
  if (value === undefined || value === null || value === '') return null
  if (typeof value !== 'string') throw bad(`${at} must be a text.`, at)
  return value
}

function shown(value: unknown): string {
  return `'${String(value)}'`
}
