import { isRecord } from '../../../../guards/lib/stored.js'
import type { AgentContext, NewMessage } from '../../../../machines/agent/context.js'
import type { JsonObject } from '../../../../machines/agent/json.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { UsageError } from '../../base/errors.js'
import type { InboxMessage } from '../store/inbox.js'

/** A user message that waits in a session's inbox for the turn that says it. */
export interface QueuedMessage {
  /** Its number in the inbox. */
  message: number
  /** The sender's id: a message that is queued twice with it is said once. */
  messageId: string
  /** When it was queued; milliseconds since the epoch. */
  at: number
  /** What the user says. */
  said: NewMessage[]
}

/** How many messages may wait for a session, and how many characters of JSON they may have together. */
const maxQueued = 100
const maxQueuedChars = 10_000_000

const prefix = '{"type":"MESSAGE",'

/** Whether a text of an inbox is a queued message. The others are events for a run. */
export const isQueuedText = (text: string): boolean => text.startsWith(prefix)

/** A message as it lies in the inbox. */
export function formatQueuedMessage(messageId: string, said: readonly NewMessage[]): string {
  return JSON.stringify({ type: 'MESSAGE', messageId, said })
}

/** Null for a text that is damaged. */
export function parseQueuedMessage({ message, at, text }: InboxMessage): QueuedMessage | null {
  try {
    const { messageId, said } = JSON.parse(text) as Record<string, unknown>
    if (typeof messageId !== 'string' || !Array.isArray(said) || said.length === 0) return null
    return said.every(isNewMessage) ? { message, messageId, at, said } : null
  } catch {
    return null
  }
}

function isNewMessage(value: unknown): value is NewMessage {
  const { content, data } = (value ?? {}) as Record<string, unknown>
  const isContent = typeof content === 'string' || (Array.isArray(content) && content.every(isRecord))
  return isContent && (data === undefined || isRecord(data))
}

/** What a user says under this id: pages and `agent.tell` recognise the message by it. */
export function withMessageId([first, ...more]: readonly NewMessage[], messageId: string): NewMessage[] {
  if (first === undefined) return []
  const data: JsonObject = { ...first.data, clientId: messageId }
  return [{ ...first, data }, ...more]
}

/** Whether a transcript has the message with this id. */
export function isSaid(messages: readonly Pick<Message, 'role' | 'data'>[], messageId: string): boolean {
  return messages.some((message) => findMessageId(message) === messageId)
}

function findMessageId({ role, data }: Pick<Message, 'role' | 'data'>): unknown {
  return role === 'user' ? data?.['clientId'] : undefined
}

/**
 * Whether the queue waits until somebody asks for one more turn: the last run was stopped, or it has ended every process that
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
}

/**
 * The messages that wait, in order and at most so many, and those before them that can go: they are said already and a
 * process that died could not remove them, they were queued twice, or they are damaged.
 */
export function sortQueue(
  found: readonly InboxMessage[],
  { queued, messages }: QueuePosition,
  atMost = Infinity,
): { waiting: QueuedMessage[]; settled: number[] } {
  const waiting: QueuedMessage[] = []
  const settled: number[] = []
  const known = new Set(messages.map(findMessageId))
  for (const one of found) {
    if (waiting.length >= atMost) break
    if (!isQueuedText(one.text)) continue
    const parsed = one.message > queued ? parseQueuedMessage(one) : null
    if (parsed === null || known.has(parsed.messageId)) {
      settled.push(one.message)
      continue
    }
    known.add(parsed.messageId)
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
