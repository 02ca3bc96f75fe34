import type { AgentContext } from './context.js'
import type { UserMessage } from './messages.js'
import type { BatchCall } from './batch-calls.js'
import { unclearedInput } from './screening.js'

/** The user messages since the last answer that shields have not screened. */
export function listUnclearedInput({ features, messages }: AgentContext): UserMessage[] {
  if (!features.inputShields) return []
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages
    .slice(spoken + 1)
    .filter((message): message is UserMessage => message.role === 'user' && !message.internal)
    .filter((message) => message.data?.['screened'] !== true)
}

/** The transcript as it may be shown: uncleared messages are masked. */
export function maskMessages(context: AgentContext): AgentContext['messages'] {
  const unseen = listUnclearedInput(context)
  if (unseen.length === 0) return context.messages
  return context.messages.map((message) =>
    message.role === 'user' && unseen.includes(message) ? maskMessage(message, unclearedInput) : message,
  )
}

/** A message whose content is replaced by a placeholder; it is marked as screened. */
export function maskMessage(message: UserMessage, content: string): UserMessage {
  return { ...message, content, data: { ...message.data, screened: true, withheld: true } }
}

/** The calls with uncleared arguments. In logs of versions that did not mark them: all open calls. */
export function listUnclearedCalls({ calls }: Pick<AgentContext, 'calls'>): BatchCall[] {
  const marked = calls.filter((call) => call.unchecked)
  return marked.length > 0 ? marked : calls.filter((call) => call.result === undefined)
}
