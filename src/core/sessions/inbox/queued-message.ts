import { isRecord } from '../../../../guards/lib/stored.js'
import { findClientId } from '../find-turn.js'
import type { AgentContext, NewMessage, ControlEvent } from '../../../../machines/agent/context.js'
import type { JsonObject } from '../../../../machines/agent/json.js'
import type { Principal } from '../../../../machines/agent/principal.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { UsageError } from '../../base/errors.js'
import { parsePrincipal } from '../principal.js'
import type { InboxMessage } from '../store/inbox.js'
import { toClientData, toMessage } from '../user-input.js'

/** A user message that waits in a session's inbox for its turn, as one for the current run does if no run reads it. */
export interface QueuedMessage {
  message: number
  /** The sender's id. A message that is queued twice with the same id is processed once. */
  messageId: string
  /** The time when the message was queued, in milliseconds since the epoch. */
  at: number
  messages: NewMessage[]
  by?: Principal
}

/** The maximum of a session's queue, in messages and in JSON characters. */
const maxQueued = 100
const maxQueuedChars = 10_000_000

const prefix = '{"type":"MESSAGE",'
const steeringPrefix = `${prefix}"when":"now",`

export const isQueuedText = (text: string): boolean => text.startsWith(prefix)

export const isSteeringText = (text: string): boolean => text.startsWith(steeringPrefix)

export function formatQueuedMessage(
  messageId: string,
  messages: readonly NewMessage[],
  when: 'next' | 'now',
  by: Principal | undefined,
): string {
  return JSON.stringify({ type: 'MESSAGE', ...(when === 'now' && { when }), messageId, messages, by })
}

export function parseQueuedMessage({ message, at, text }: InboxMessage): QueuedMessage | null {
  try {
    const { messageId, messages, by } = JSON.parse(text) as Record<string, unknown>
    if (typeof messageId !== 'string' || !Array.isArray(messages) || messages.length === 0) return null
    const sender = by === undefined ? null : parsePrincipal(by)
    return { message, messageId, at, messages: messages.map(readNewMessage), ...(sender && { by: sender }) }
  } catch {
    return null
  }
}

/** Accepts only valid user messages, because a store could return anything. */
function readNewMessage(value: unknown): NewMessage {
  const { content, data } = (value ?? {}) as Record<string, unknown>
  const message = toMessage({ content }, 'messages')
  if (data === undefined) return message
  if (!isRecord(data)) throw new TypeError("A queued message's data must be an object.")
  return { ...message, data: data as JsonObject }
}

/** The steering event of a message for the current run. Null for other messages and damaged text. */
export function toSteeringEvent(found: InboxMessage): Extract<ControlEvent, { type: 'STEER' }> | null {
  const parsed = isSteeringText(found.text) ? parseQueuedMessage(found) : null
  const text = parsed && joinTexts(parsed.messages)
  if (!parsed || text === null) return null
  return { type: 'STEER', text, key: parsed.messageId, ...(parsed.by && { by: parsed.by }) }
}

export function joinTexts(messages: readonly NewMessage[]): string | null {
  const texts = messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? [content]
      : content.map((part) => (part.type === 'text' ? part.text : null)),
  )
  return texts.includes(null) ? null : texts.join('\n')
}

export const listMessageIds = ({ messageId, messages }: QueuedMessage): string[] => [
  messageId,
  ...listClientIds(messages),
]

/** Adds the id by which pages and `agent.send` recognize the message. */
export function withMessageId([first, ...more]: readonly NewMessage[], messageId: string): NewMessage[] {
  if (first === undefined) return []
  const data: JsonObject = { ...first.data, ...toClientData(messageId, first.content) }
  return [{ ...first, data }, ...more]
}

export function isDelivered(messages: readonly Pick<Message, 'role' | 'data'>[], messageId: string): boolean {
  return listUserIds(messages).includes(messageId)
}

export function listClientIds(messages: readonly Pick<Message, 'data'>[]): string[] {
  return messages.map(findClientId).filter((id) => id !== undefined)
}

export const listUserIds = (messages: readonly Pick<Message, 'role' | 'data'>[]): string[] =>
  listClientIds(messages.filter(({ role }) => role === 'user'))

/** After a cancelled or poisoned run, queued messages wait until the user or the app requests another turn. */
export function isQueueStopped({ state, error }: Pick<AgentContext, 'state' | 'error'>): boolean {
  return state === 'CANCELLED' || error?.code === 'poisoned'
}

/** The position that separates queued messages from processed messages. */
export interface QueuePosition {
  /** Number of the last queued message in the log. */
  queued: number
  messages: readonly Pick<Message, 'role' | 'data'>[]
  /** Idempotency keys in the log, for messages that a run has read. */
  keys: readonly string[]
}

/** Splits off messages to remove: damaged ones, and those that were queued twice or already processed. */
export function sortQueue(
  found: readonly InboxMessage[],
  { queued, messages, keys }: QueuePosition,
  atMost = Infinity,
): { waiting: QueuedMessage[]; settled: number[] } {
  const waiting: QueuedMessage[] = []
  const settled: number[] = []
  const known = new Set([...listUserIds(messages), ...keys])
  for (const one of found) {
    if (waiting.length >= atMost) break
    if (!isQueuedText(one.text)) continue
    const parsed = one.message > queued ? parseQueuedMessage(one) : null
    if (parsed === null || known.has(parsed.messageId)) {
      settled.push(one.message)
      continue
    }
    for (const id of listMessageIds(parsed)) known.add(id)
    waiting.push(parsed)
  }
  return { waiting, settled }
}

/** @throws {UsageError} `queue_full` if the queue of the session is full */
export function checkQueueRoom(found: readonly InboxMessage[], text: string, sessionId: string): void {
  const waiting = found.filter((one) => isQueuedText(one.text))
  const chars = waiting.reduce((sum, one) => sum + one.text.length, text.length)
  if (waiting.length < maxQueued && chars <= maxQueuedChars) return
  const why =
    waiting.length < maxQueued
      ? `its messages would have ${chars} characters, and the limit is ${maxQueuedChars}`
      : `${maxQueued} messages are already waiting`
  const message = `The queue of session '${sessionId}' is full: ${why}. Wait until some are delivered, or send large files by URL.`
  throw new UsageError('queue_full', message, sessionId)
}

/** Only the keys of the latest messages are stored. */
export const maxKeys = 100

export function addKey(keys: readonly string[], key: string | undefined): readonly string[] {
  return typeof key === 'string' ? [...keys, key].slice(-maxKeys) : keys
}
