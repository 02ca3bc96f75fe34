import { isRecord } from '../../../../guards/lib/stored.js'
import type { AgentContext, NewMessage } from '../../../../machines/agent/context.js'
import type { JsonObject } from '../../../../machines/agent/json.js'
import type { ControlEvent } from '../../../../machines/agent/machine-events.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { UsageError } from '../../base/errors.js'
import type { InboxMessage } from '../store/inbox.js'
import { toClientData, toMessage } from '../user-input.js'

/**
 * A user message that waits in a session's inbox for the turn that says it. One that is for the run at work (`when: 'now'`)
 * waits, too, when that run has ended before it read the message.
 */
export interface QueuedMessage {
  /** Its number in the inbox. */
  message: number
  /** The sender's id: a message that is queued twice with it is said once. */
  messageId: string
  /** When it was queued; milliseconds since the epoch. */
  at: number
  /** What the user says. */
  messages: NewMessage[]
}

/** How many messages may wait for a session, and how many characters of JSON they may have together. */
const maxQueued = 100
const maxQueuedChars = 10_000_000

const prefix = '{"type":"MESSAGE",'
const steeringPrefix = `${prefix}"when":"now",`

/** Whether a text of an inbox is a user message. The others are events for a run. */
export const isQueuedText = (text: string): boolean => text.startsWith(prefix)

/** Whether it is for the run at work. */
export const isSteeringText = (text: string): boolean => text.startsWith(steeringPrefix)

/** A message as it lies in the inbox. */
export function formatQueuedMessage(
  messageId: string,
  messages: readonly NewMessage[],
  when: 'next' | 'now',
): string {
  return JSON.stringify({ type: 'MESSAGE', ...(when === 'now' && { when }), messageId, messages })
}

/** Null for a text that is damaged. */
export function parseQueuedMessage({ message, at, text }: InboxMessage): QueuedMessage | null {
  try {
    const { messageId, messages } = JSON.parse(text) as Record<string, unknown>
    if (typeof messageId !== 'string' || !Array.isArray(messages) || messages.length === 0) return null
    return { message, messageId, at, messages: messages.map(readNewMessage) }
  } catch {
    return null
  }
}

/** Nothing but what a user may say, whatever a store has kept. */
function readNewMessage(value: unknown): NewMessage {
  const { content, data } = (value ?? {}) as Record<string, unknown>
  const message = toMessage({ content }, 'messages')
  if (data === undefined) return message
  if (!isRecord(data)) throw new TypeError('The data of a queued message are no record.')
  return { ...message, data: data as JsonObject }
}

/** What a message says to the run at work; null where it is none, or damaged. */
export function toSteeringEvent(found: InboxMessage): Extract<ControlEvent, { type: 'STEER' }> | null {
  const parsed = isSteeringText(found.text) ? parseQueuedMessage(found) : null
  const text = parsed && joinTexts(parsed.messages)
  return parsed && text !== null ? { type: 'STEER', text, key: parsed.messageId } : null
}

/** What is said, as one text; null where it is more than text. */
export function joinTexts(messages: readonly NewMessage[]): string | null {
  const texts = messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? [content]
      : content.map((part) => (part.type === 'text' ? part.text : null)),
  )
  return texts.includes(null) ? null : texts.join('\n')
}

/** All ids that a message has in a transcript. */
export function listMessageIds({ messageId, messages }: QueuedMessage): unknown[] {
  return [messageId, ...messages.map(({ data }) => data?.['clientId'])].filter((id) => id !== undefined)
}

/** What a user says under this id: pages and `agent.send` recognise the message by it. */
export function withMessageId([first, ...more]: readonly NewMessage[], messageId: string): NewMessage[] {
  if (first === undefined) return []
  const data: JsonObject = { ...first.data, ...toClientData(messageId, first.content) }
  return [{ ...first, data }, ...more]
}

/** Whether a transcript has the message with this id. */
export function isSaid(messages: readonly Pick<Message, 'role' | 'data'>[], messageId: string): boolean {
  return messages.some((message) => findMessageId(message) === messageId)
}

/** The ids that clients have given to what a run begins with. */
export function listClientIds(messages: readonly NewMessage[]): string[] {
  return messages.map(({ data }) => data?.['clientId']).filter((id) => typeof id === 'string')
}

function findMessageId({ role, data }: Pick<Message, 'role' | 'data'>): unknown {
  return role === 'user' ? data?.['clientId'] : undefined
}

/**
 * Whether the queue waits until the user, or the app, asks for one more turn: the last run was stopped, or it has ended every process that
 * went on with it.
 */
export function isQueueStopped({ state, error }: Pick<AgentContext, 'state' | 'error'>): boolean {
  return state === 'CANCELLED' || error?.code === 'poisoned'
}

/** What tells the messages that wait from those that were said. */
export interface QueuePosition {
  /** The number of the last queued message that the log has. */
  queued: number
  /** The transcript. */
  messages: readonly Pick<Message, 'role' | 'data'>[]
  /** The idempotency keys that the log has: those of the messages that a run at work has read. */
  keys: readonly string[]
}

/**
 * The messages that wait, in order and at most so many, and those before them that can go: they are said already and a
 * process that died could not remove them, they were queued twice, or they are damaged.
 */
export function sortQueue(
  found: readonly InboxMessage[],
  { queued, messages, keys }: QueuePosition,
  atMost = Infinity,
): { waiting: QueuedMessage[]; settled: number[] } {
  const waiting: QueuedMessage[] = []
  const settled: number[] = []
  const known = new Set<unknown>([...messages.map(findMessageId), ...keys])
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

/** @throws {UsageError} `queue_full` where one more message is too much for a session */
export function checkQueueRoom(found: readonly InboxMessage[], text: string, sessionId: string): void {
  const waiting = found.filter((one) => isQueuedText(one.text))
  const chars = waiting.reduce((sum, one) => sum + one.text.length, text.length)
  if (waiting.length < maxQueued && chars <= maxQueuedChars) return
  const why =
    waiting.length < maxQueued
      ? `its messages would have ${chars} characters, and ${maxQueuedChars} may wait`
      : `${maxQueued} messages wait already`
  throw new UsageError(
    'queue_full',
    `The queue of session '${sessionId}' is full: ${why}. Wait until some are said, or send large files by their address.`,
    sessionId,
  )
}
