import type { AgentContext } from './context.js'
import type { UserMessage } from './messages.js'
import type { BatchCall } from './batch-calls.js'
import { unclearedInput } from './screening.js'

/** What the user has said since the model spoke last, and no shield has seen yet. */
export function listUnclearedInput({ features, messages }: AgentContext): UserMessage[] {
  if (!features.inputShields) return []
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages
    .slice(spoken + 1)
    .filter((message): message is UserMessage => message.role === 'user' && !message.internal)
    .filter((message) => message.data?.['screened'] !== true)
}

/** The transcript as it may be shown: without the words of messages that no shield has seen yet. */
export function maskMessages(context: AgentContext): AgentContext['messages'] {
  const unseen = listUnclearedInput(context)
  if (unseen.length === 0) return context.messages
  return context.messages.map((message) =>
    message.role === 'user' && unseen.includes(message) ? maskMessage(message, unclearedInput) : message,
  )
}

/** Nobody looks at such a message again: there is nothing of it left. */
export function maskMessage(message: UserMessage, content: string): UserMessage {
  return { ...message, content, data: { ...message.data, screened: true, withheld: true } }
}

/** The calls whose arguments no shield has seen. A run that was stored before they were marked: all that are open. */
export function listUnclearedCalls({ calls }: Pick<AgentContext, 'calls'>): BatchCall[] {
  const marked = calls.filter((call) => call.unchecked)
  return marked.length > 0 ? marked : calls.filter((call) => call.result === undefined)
}
