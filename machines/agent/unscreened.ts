import type { AgentContext } from './context.js'
import type { UserMessage } from './messages.js'

/** What the user has said since the model spoke last, and no shield has seen yet. */
export function unscreenedInput({ features, messages }: AgentContext): UserMessage[] {
  if (!features.inputShields) return []
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages
    .slice(spoken + 1)
    .filter((message): message is UserMessage => message.role === 'user' && !message.internal)
    .filter((message) => message.data?.['screened'] !== true)
}
