import type { UserMessage } from '../../../machines/agent/messages.js'
import { createId } from '../base/platform.js'
import { UsageError } from '../base/errors.js'
import { notifyOwner } from '../sessions/inbox/inbox-owners.js'
import {
  checkQueueRoom,
  formatQueuedMessage,
  isDelivered,
  joinTexts,
  listMessageIds,
  sortQueue,
  withMessageId,
} from '../sessions/inbox/queued-message.js'
import { readSender } from '../sessions/principal.js'
import type { Receipt, UserMessageToSend } from '../sessions/inbox/session-message.js'
import { foldRecords } from '../sessions/fold-session.js'
import { messageChangedError, refuseSubAgentSession } from '../sessions/session-errors.js'
import type { SessionStore } from '../sessions/store/store.js'
import { unknownSessionError } from '../sessions/store/store-error.js'
import { hasSameWords, toMessages } from '../sessions/user-input.js'

/**
 * Adds a user message to the inbox of a session, for its next turn. A message with a known id is not queued twice.
 * @throws {UsageError} `queue_full`, `invalid_input`, `interactive_run`, `sub_agent_session`, `message_changed`
 */
export async function queueMessage(
  store: SessionStore,
  id: string,
  { input, messageId: givenId, ...sender }: Omit<UserMessageToSend, 'type' | 'when'>,
): Promise<Receipt> {
  const { by } = readSender(sender, 'message')
  const userMessages = toMessages(input)
  const own = userMessages[0]?.data?.['clientId']
  const messageId = givenId ?? (typeof own === 'string' ? own : createId())
  const text = formatQueuedMessage(messageId, withMessageId(userMessages, messageId), 'next', by)
  const listed = await store.get(id)
  if (listed === null) throw unknownSessionError(id)
  refuseSubAgentSession(id, listed.summary?.parent)
  const { run, queued, state, keys, inbox } = foldRecords(await store.read(id, { from: 'snapshot' }), id)
  const { messages } = run?.context ?? state
  if (run?.status === 'active' && run.context.config.interactive) throw interactiveError(id)
  const found = (await store.inbox?.read(id)) ?? []
  const known = sortQueue(found, { queued, messages, keys }).waiting.find((one) =>
    listMessageIds(one).includes(messageId),
  )
  const earlier =
    known?.messageId === messageId
      ? known.messages[0]
      : messages.find((one): one is UserMessage => isDelivered([one], messageId))
  if (userMessages[0] && earlier && !hasSameWords(userMessages[0].content, earlier))
    throw messageChangedError(messageId)
  if (known) return { message: known.message, status: listed.holder === null ? 'waiting' : 'sent' }
  if (isDelivered(messages, messageId)) return { message: queued, status: 'applied' }
  // The message was sent with `when: 'now'`.
  if (keys.includes(messageId)) return { message: inbox, status: 'applied' }
  checkQueueRoom(found, text, id)
  const put = await store.inbox?.put(id, text)
  if (put === undefined) throw unknownSessionError(id)
  if (put.holder === null) return { message: put.message, status: 'waiting' }
  notifyOwner(store, id, put.message)
  return { message: put.message, status: 'sent' }
}

/** The text of a message to be read at the next safe point, and its inbox entry until then. */
export function readSteeringInput({
  input,
  messageId: givenId,
  ...sender
}: Omit<UserMessageToSend, 'type' | 'when'>): { text: string; queued: string } {
  const userMessages = toMessages(input)
  const text = joinTexts(userMessages)
  const messageId = givenId ?? createId()
  const { by } = readSender(sender, 'message')
  if (text !== null)
    return { text, queued: formatQueuedMessage(messageId, withMessageId(userMessages, messageId), 'now', by) }
  throw new UsageError(
    'invalid_input',
    "A message with when: 'now' can only contain text. Send pictures and files with when: 'next'.",
    'input',
  )
}

function interactiveError(id: string): UsageError {
  return new UsageError(
    'interactive_run',
    `Session '${id}' has an interactive run, which has no queue. Send { type: 'reply', input } while it waits for a message.`,
    id,
  )
}
