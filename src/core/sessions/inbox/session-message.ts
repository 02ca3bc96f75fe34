import type { NewMessage } from '../../../../machines/agent/context.js'
import type { ControlEvent } from '../../../../machines/agent/machine-events.js'
import { UsageError } from '../../base/errors.js'
import { readTime } from '../../base/clock.js'
import type { InboxMessage } from '../store/inbox.js'
import { toMessages, type UserInput } from '../user-input.js'
import { isQueuedText, toSteeringEvent } from './queued-message.js'

/**
 * What may be said to a session from anywhere. An answer names its call: spread the call as `pending` and
 * `approval_requested` tell of it. Without its `fingerprint`, it is for the call that waits at that moment.
 *
 * @example
 * const stop: SessionMessage = { type: 'cancel', why: 'The user has closed the page.' }
 * const answers = (result.pending ?? []).map((call): SessionMessage => ({ type: 'approve', ...call }))
 */
export type SessionMessage =
  /** Ends the run in CANCELLED, whatever it is doing. */
  | { type: 'cancel'; why?: string }
  /** Rests in PAUSED at the next safe point. */
  | { type: 'pause' }
  /** Goes on from PAUSED. `at`, a Date or milliseconds since the epoch: not before then, unless someone wakes it. */
  | { type: 'resume'; at?: Date | number }
  /** Tells the model something at the next safe point. A paused run goes on. */
  | { type: 'steer'; text: string }
  /** The next user message of an interactive run. */
  | { type: 'reply'; input: UserInput }
  | UserMessageToSend
  /** Lets a call run; `editedInput` replaces the arguments that the model gave. */
  | { type: 'approve'; callId: string; fingerprint?: string; messageId?: string; editedInput?: unknown }
  /** Refuses a call; the model reads why. */
  | { type: 'reject'; callId: string; fingerprint?: string; messageId?: string; why?: string }
  /** The result of a call that the client carries out. An Error, or `isError`, makes it an error result. */
  | {
      type: 'toolOutput'
      callId: string
      fingerprint?: string
      messageId?: string
      value: unknown
      isError?: boolean
    }

/**
 * A user message for a session that may be at work.
 *
 * - `next`: it waits in the session's inbox, in order, until a turn begins with it. `runSession`, the handlers of chat pages
 *   and the hosts begin that turn when the one before has ended. After a `cancel` they leave it until the user writes again
 * - `now`: the model reads its text at the next safe point, as with `steer`. Where the run ends before that, the message waits
 *   as with `next`
 *
 * `messageId`, 1 to 200 characters: a message that is sent twice with it is said once. It becomes `data.clientId` of the
 * message. Default: a new id.
 *
 * @example
 * const next: UserMessageToSend = { type: 'message', when: 'next', input: 'And in May?' }
 */
export interface UserMessageToSend {
  type: 'message'
  input: UserInput
  when: 'next' | 'now'
  messageId?: string
}

/** What happened to a message that a session was told. */
export interface Receipt {
  /** The number of the message in the session's inbox. */
  message: number
  /**
   * - `sent`: a process holds the session: it reads the message at once when it is this process, else within a second
   * - `waiting`: no process holds the session: the next resume applies the message first, or the next turn begins with it
   * - `applied`: it is done: a `cancel` of a session that no process held, or a message that was told before
   */
  status: 'sent' | 'waiting' | 'applied'
}

type Answer = Extract<SessionMessage, { callId: string }>

/** What a pending call has beside its id: an answer may be made of one. */
const callKeys = ['messageId', 'name', 'arguments', 'needs', 'path', 'interrupted', 'hosted']

const keysByType: Record<SessionMessage['type'], readonly string[]> = {
  cancel: ['why'],
  pause: [],
  resume: ['at'],
  steer: ['text'],
  reply: ['input'],
  message: ['input', 'when', 'messageId'],
  approve: ['callId', 'fingerprint', 'editedInput', ...callKeys],
  reject: ['callId', 'fingerprint', 'why', ...callKeys],
  toolOutput: ['callId', 'fingerprint', 'value', 'isError', ...callKeys],
}

const messageTypes = Object.keys(keysByType) as SessionMessage['type'][]

/** Where messages are given. */
interface MessageSource {
  /** In words. */
  by: string
  /** What errors name; default: the key of the message. */
  subject?: string
  /** What may be said there. */
  of: readonly SessionMessage['type'][]
}

/**
 * A message that is one, its texts looked at; what it comes to depends on the session.
 * @throws {UsageError} `invalid_input`, naming the key
 */
export function checkMessage(
  given: unknown,
  { by, subject, of }: MessageSource = { by: 'send()', of: messageTypes },
): SessionMessage {
  const invalid = (what: string, key: string) =>
    new UsageError('invalid_input', `${by}: ${what}.`, subject ?? key)
  const message = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>
  const type = message['type'] as SessionMessage['type']
  if (!of.includes(type)) throw invalid(`type must be one of ${of.join(', ')}`, 'type')
  const strange = Object.keys(message).find((key) => key !== 'type' && !keysByType[type].includes(key))
  if (strange !== undefined) throw invalid(`'${type}' has no key '${strange}'`, strange)
  for (const key of ['why', 'fingerprint', 'messageId']) {
    if (message[key] !== undefined && typeof message[key] !== 'string')
      throw invalid(`${key} must be a string`, key)
  }
  if (keysByType[type].includes('callId') && typeof message['callId'] !== 'string')
    throw invalid(`'${type}' needs callId, a string`, 'callId')
  if (type === 'resume' && message['at'] !== undefined && readTime(message['at']) === null)
    throw invalid('at must be a Date, or milliseconds since the epoch', 'at')
  if (type === 'message') checkUserMessage(message, invalid)
  if (type === 'steer') {
    if (typeof message['text'] !== 'string') throw invalid('text must be a string', 'text')
    readSteeringText(message['text'])
  }
  return message as SessionMessage
}

function checkUserMessage(
  { when, messageId }: Record<string, unknown>,
  invalid: (what: string, key: string) => UsageError,
): void {
  if (when !== 'next' && when !== 'now') throw invalid("'message' needs when: 'next' or 'now'", 'when')
  if (typeof messageId === 'string' && (messageId === '' || messageId.length > 200))
    throw invalid('messageId must be a text of 1 to 200 characters', 'messageId')
}

/** Messages for the run that are no answers, as the machine takes them. */
export function toPublicEvent(message: Exclude<SessionMessage, Answer | UserMessageToSend>): ControlEvent {
  switch (message.type) {
    case 'cancel':
      return { type: 'CANCEL', ...(message.why !== undefined && { why: message.why }) }
    case 'pause':
      return { type: 'PAUSE' }
    case 'resume': {
      const at = readTime(message.at)
      return { type: 'RESUME', ...(at !== null && { at }) }
    }
    case 'steer':
      return { type: 'STEER', text: readSteeringText(message.text) }
    default:
      return { type: 'REPLY', messages: toMessages(message.input) }
  }
}

export const isAnswer = (message: SessionMessage): message is Answer => 'callId' in message

function readSteeringText(text: string): string {
  const [message] = toMessages(text) as [NewMessage?]
  if (typeof message?.content === 'string') return message.content
  throw new UsageError('invalid_input', 'Steering is one text.', 'text')
}

const publicEventTypes: readonly ControlEvent['type'][] = [
  'CANCEL',
  'PAUSE',
  'RESUME',
  'STEER',
  'REPLY',
  'APPROVE',
  'REJECT',
  'TOOL_OUTPUT',
]

/**
 * The event that a message of an inbox makes of itself in a run, as it will be in the log. Null for one that waits for the next
 * turn, and for a text that is not one of ours.
 */
export function parseInboxMessage(found: InboxMessage): ControlEvent | null {
  try {
    if (isQueuedText(found.text)) return toSteeringEvent(found)
    const event = JSON.parse(found.text) as ControlEvent | null
    return event !== null && publicEventTypes.includes(event.type) ? event : null
  } catch {
    return null
  }
}
