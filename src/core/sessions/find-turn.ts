import type { AgentContext } from '../../../machines/agent/context.js'
import { type TurnEnd, isActiveState } from '../../../machines/agent/run-result.js'
import type { Message, UserMessage } from '../../../machines/agent/messages.js'

/** Whether the message starts a turn. Steering messages belong to the current turn. */
export function isTurnOpening(message: Message): message is UserMessage {
  return message.role === 'user' && !message.internal && !isSteering(message)
}

export const isSteering = ({ data }: Pick<Message, 'data'>): boolean => data?.['reason'] === 'steering'

export const toAnswerId = ({ id }: Pick<Message, 'id'>): string => `${id}.answer`

/** The id that a page assigned to a message. */
export function findClientId({ data }: Pick<Message, 'data'>): string | undefined {
  const id = data?.['clientId']
  return typeof id === 'string' ? id : undefined
}

/** Index of the user message, or -1. Accepts its id, its client id, and the ids of its answer. */
export function findTurnIndex(messages: readonly Message[], id: string): number {
  const own = messages.findLastIndex(
    (message) =>
      isTurnOpening(message) &&
      (message.id === id || findClientId(message) === id || toAnswerId(message) === id),
  )
  if (own >= 0) return own
  const at = messages.findIndex((message) => message.id === id && !message.internal)
  return messages.findLastIndex((message, i) => i < at && isTurnOpening(message))
}

/** The ends of runs without a full answer. A run that waits for a person or for the next message has not ended. */
export function listTurnEnds(context: AgentContext): TurnEnd[] {
  const { messages, inbox, state, reason, error, wakeAt, turnEnds = [] } = context
  const opening = messages.findLast(isTurnOpening)
  const isOpen = isActiveState(state) || state === 'WAITING_FOR_INPUT'
  // An end belongs to a message in the transcript, which does not contain the messages in the inbox yet.
  if (isOpen || reason === null || reason === 'end_turn' || opening === undefined || inbox.length > 0)
    return [...turnEnds]
  const end: TurnEnd = {
    messageId: opening.id,
    state,
    reason,
    ...(error && { error: { code: error.code, message: error.message } }),
    ...(wakeAt !== null && { wakeAt }),
  }
  return [...turnEnds, end]
}
