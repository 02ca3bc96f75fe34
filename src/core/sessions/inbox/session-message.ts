import type { NewMessage, ControlEvent } from '../../../../machines/agent/context.js'
import type { PendingCall } from '../../../../machines/agent/run-result.js'
import { UsageError } from '../../base/errors.js'
import { readTime } from '../../base/clock.js'
import { type GrantOptions, outlivesRun, readGrant, toGrantEvent, toRevokeEvent } from '../grant-input.js'
import { readSender, type SentBy } from '../principal.js'
import type { InboxMessage } from '../store/inbox.js'
import { toMessages, type UserInput } from '../user-input.js'
import type { InboxFormat } from './inbox-reader.js'
import { isQueuedText, toSteeringEvent } from './queued-message.js'

/**
 * A message that can be sent to a session from any process. An answer must identify its call, so spread the entry
 * from `pending` or the `approval_requested` event into it. Without a `fingerprint`, the answer applies to the call
 * that waits at that moment.
 * @example
 * const stop: SessionMessage = { type: 'cancel', why: 'The user has closed the page.' }
 * const answers = (result.pending ?? []).map((call): SessionMessage => ({ type: 'approve', ...call }))
 */
export type SessionMessage = SentBy &
  /** Ends the run in CANCELLED, in any state. */
  (
    | { type: 'cancel'; why?: string }
    /** Pauses the run at the next safe point. */
    | { type: 'pause' }
    /** Continues a paused run, now or at `at` (a Date or milliseconds since the epoch), unless woken earlier. */
    | { type: 'resume'; at?: Date | number }
    /** Adds a message for the model at the next safe point. A paused run continues. */
    | { type: 'steer'; text: string }
    /** The next user message of an interactive run. */
    | { type: 'reply'; input: UserInput }
    | UserMessageToSend
    /** Approves a call. `editedInput` replaces the model's arguments. The reason `why` is stored in the log. */
    | ({
        type: 'approve'
        editedInput?: unknown
        why?: string | undefined
        /** Also approves later calls to the tool: without `when`, those with exactly these arguments. */
        grant?: GrantOptions
      } & AnswerTarget)
    /** Approves later calls to a tool. `when: {}` allows any arguments. */
    | ({ type: 'grant'; tool: string } & GrantOptions)
    /** Ends a grant. */
    | { type: 'revoke'; grant: string }
    /** Withdraws the sender's approval of a call that has not started. */
    | ({ type: 'revoke' } & AnswerTarget)
    /** Rejects a call. The model reads the reason. */
    | ({ type: 'reject'; why?: string | undefined } & AnswerTarget)
    /** The result of a call that the client executes. An Error, or `isError`, makes it an error result. */
    | ({ type: 'toolOutput'; value: unknown; isError?: boolean } & AnswerTarget)
  )

export function toTarget({ callId, fingerprint, messageId }: CallTarget): CallTarget {
  return { callId, fingerprint, ...(messageId !== undefined && { messageId }) }
}

type CallTarget = Pick<PendingCall, 'callId' | 'fingerprint' | 'messageId'>

interface AnswerTarget {
  callId: string
  fingerprint?: string | undefined
  messageId?: string | undefined
}

/**
 * A user message for a session that may be running.
 *
 * - `next` queues the message in the session's inbox, in order, until it starts a turn. `runSession`, the handlers of
 *   chat pages and the hosts start that turn after the current one. After a `cancel`, the messages wait until the
 *   user writes again.
 * - `now` passes the text to the model at the next safe point, as with `steer`. If the run ends before it reads the
 *   message, the message is queued as with `next`. If the run has read it, but ends before its model receives it, the
 *   next run starts with the text.
 *
 * `messageId` has 1 to 200 characters and defaults to a new id. A message that is sent twice with the same id is used
 * once. The id becomes the message's `data.clientId`.
 * @example
 * const next: UserMessageToSend = { type: 'message', when: 'next', input: 'And in May?' }
 */
export interface UserMessageToSend extends SentBy {
  type: 'message'
  input: UserInput
  when: 'next' | 'now'
  messageId?: string
}

/** The result of sending a message to a session. */
export interface Receipt {
  /** Number of the message in the session's inbox. */
  message: number
  /**
   * - `sent`: a process holds the session and reads the message, immediately if it is this process, otherwise within
   *   a second
   * - `waiting`: no process holds the session; the message is applied when the session resumes, or starts the next
   *   turn
   * - `applied`: already in effect, such as a `cancel` without a lease holder or a message that was processed before
   */
  status: 'sent' | 'waiting' | 'applied'
}

/** An answer to a pending call. All protocols convert their answers to this type. */
export type AnswerMessage = Extract<SessionMessage, { type: 'approve' | 'reject' | 'toolOutput' }>

/** The other keys of a pending call, which an answer may be created from by spreading. */
const callKeys = [
  'messageId',
  'name',
  'arguments',
  'needs',
  'path',
  'interrupted',
  'hosted',
  'reason',
  'approvers',
  'approvals',
  'expiresAt',
  'onExpiry',
]

const keysByType: Record<SessionMessage['type'], readonly string[]> = {
  cancel: ['why'],
  pause: [],
  resume: ['at'],
  steer: ['text'],
  reply: ['input'],
  message: ['input', 'when', 'messageId'],
  approve: ['callId', 'fingerprint', 'editedInput', 'why', 'grant', ...callKeys],
  grant: ['tool', 'when', 'until', 'uses'],
  revoke: ['grant', 'callId', 'fingerprint', ...callKeys],
  reject: ['callId', 'fingerprint', 'why', ...callKeys],
  toolOutput: ['callId', 'fingerprint', 'value', 'isError', ...callKeys],
}

export const messageTypes = Object.keys(keysByType) as SessionMessage['type'][]

/** `by` describes the receiver. */
interface MessageSource {
  by: string
  /** The subject of errors. Defaults to the key of the message. */
  subject?: string
  of: readonly SessionMessage['type'][]
}

/** @throws {UsageError} `invalid_input`, naming the key */
export function checkMessage(
  value: unknown,
  { by, subject, of }: MessageSource = { by: 'send()', of: messageTypes },
): SessionMessage {
  const invalid = (what: string, key: string) =>
    new UsageError('invalid_input', `${by}: ${what}.`, subject ?? key)
  const message = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  const type = message['type'] as SessionMessage['type']
  if (!of.includes(type)) throw invalid(`type must be one of ${of.join(', ')}`, 'type')
  const strange = Object.keys(message).find(
    (key) => key !== 'type' && key !== 'by' && !keysByType[type].includes(key),
  )
  if (strange !== undefined) throw invalid(`'${type}' has no key '${strange}'`, strange)
  for (const key of ['why', 'fingerprint', 'messageId']) {
    if (message[key] !== undefined && typeof message[key] !== 'string')
      throw invalid(`${key} must be a string`, key)
  }
  readSender(message, by)
  if (type === 'grant') toGrantEvent(pickGrant(message as never), by)
  if (type === 'approve' && message['grant'] !== undefined) readGrant(message['grant'], by)
  if (type === 'revoke' && 'grant' in message === 'callId' in message)
    throw invalid("'revoke' needs either grant or callId", 'grant')
  if (type === 'revoke' && 'grant' in message) {
    if (typeof message['grant'] !== 'string') throw invalid("grant must be a grant's id", 'grant')
  } else if (keysByType[type].includes('callId') && typeof message['callId'] !== 'string')
    throw invalid(`'${type}' needs a callId string`, 'callId')
  if (type === 'resume' && message['at'] !== undefined && readTime(message['at']) === null)
    throw invalid('at must be a Date, or milliseconds since the epoch', 'at')
  if (type === 'message') {
    const { when, messageId: id } = message
    if (when !== 'next' && when !== 'now') throw invalid("'message' needs when: 'next' or 'now'", 'when')
    if (typeof id === 'string' && (id === '' || id.length > 200))
      throw invalid('messageId must be a string of 1 to 200 characters', 'messageId')
  }
  if (type === 'steer') {
    if (typeof message['text'] !== 'string') throw invalid('text must be a string', 'text')
    readSteeringText(message['text'])
  }
  return message as unknown as SessionMessage
}

export function toPublicEvent(
  message: Exclude<SessionMessage, AnswerMessage | UserMessageToSend>,
  now?: number,
): ControlEvent {
  const sent = readSender(message, message.type)
  switch (message.type) {
    case 'cancel':
      return { type: 'CANCEL', ...(message.why !== undefined && { why: message.why }), ...sent }
    case 'pause':
      return { type: 'PAUSE', ...sent }
    case 'grant':
      return { ...toGrantEvent(pickGrant(message), 'send()', now), ...sent }
    case 'revoke':
      return { ...toRevokeEvent(message), ...sent }
    case 'resume': {
      const at = readTime(message.at)
      return { type: 'RESUME', ...(at !== null && { at }), ...sent }
    }
    case 'steer':
      return { type: 'STEER', text: readSteeringText(message.text), ...sent }
    default:
      return { type: 'REPLY', messages: toMessages(message.input), ...sent }
  }
}

export const isAnswer = (message: SessionMessage): message is AnswerMessage =>
  message.type === 'approve' || message.type === 'reject' || message.type === 'toolOutput'

function readSteeringText(text: string): string {
  const [message] = toMessages(text) as [NewMessage?]
  if (typeof message?.content === 'string') return message.content
  throw new UsageError('invalid_input', 'Steering must be a single string.', 'text')
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
  'GRANT',
  'REVOKE',
]

/** The event of an inbox message. Null for unknown text and for a message that waits for the next turn. */
export function parseInboxMessage(found: InboxMessage): ControlEvent | null {
  try {
    if (isQueuedText(found.text)) return toSteeringEvent(found)
    const event = JSON.parse(found.text) as ControlEvent | null
    return event !== null && publicEventTypes.includes(event.type) ? event : null
  } catch {
    return null
  }
}

export const agentInbox: InboxFormat<ControlEvent> = {
  outlivesRun,
  parse: parseInboxMessage,
  isQueued: isQueuedText,
}

function pickGrant({ tool, when, until, uses }: { tool: string } & GrantOptions): object {
  return { tool, when, until, uses }
}
