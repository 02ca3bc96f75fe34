import type { AgentContext } from '../../../machines/agent/context.js'
import { isWorkState, type TurnEnd } from '../../../machines/agent/run-result.js'
import type { Message, UserMessage } from '../../../machines/agent/messages.js'

/** Whether the message starts a turn. Steering belongs to the turn that is under way. */
export function isTurnOpening(message: Message): message is UserMessage {
  return message.role === 'user' && !message.internal && !isSteering(message)
}

export const isSteering = ({ data }: Pick<Message, 'data'>): boolean => data?.['reason'] === 'steering'

/** The id of the page's message that answers a user message. */
export const toAnswerId = ({ id }: Pick<Message, 'id'>): string => `${id}.answer`

/** The id that a page gave a message. */
export function findClientId({ data }: Pick<Message, 'data'>): string | undefined {
  const id = data?.['clientId']
  return typeof id === 'string' ? id : undefined
}

/**
 * The index of the user message that an id means: its own, the client's, or that of its answer, as pages or the transcript call
 * it. -1: the transcript has none.
 */
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

/**
 * The ends of the runs of a session that did not answer in full, in order; the pause of a paused run is the last one. A run
 * that asks a person or waits for the next message has not ended.
 */
export function listTurnEnds(context: AgentContext): TurnEnd[] {
  const { messages, inbox, state, reason, error, wakeAt, turnEnds = [] } = context
  const opening = messages.findLast(isTurnOpening)
  const isOpen = state === null || isWorkState(state) || state === 'WAITING_FOR_INPUT'
  // A message that the transcript does not have yet cannot carry its end.
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
