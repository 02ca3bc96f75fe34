import type { AgentContext } from './context.js'
import type { UserMessage } from './messages.js'
import type { PendingCall } from './results.js'

/** What the user has said since the model spoke last, and no shield has seen yet. */
export function unscreenedInput({ features, messages }: AgentContext): UserMessage[] {
  if (!features.inputShields) return []
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages
    .slice(spoken + 1)
    .filter((message): message is UserMessage => message.role === 'user' && !message.internal)
    .filter((message) => message.data?.['screened'] !== true)
}

/** The calls whose arguments no shield has seen. A run that was stored before they were marked: all that are open. */
export function uncheckedCalls({ calls }: Pick<AgentContext, 'calls'>): PendingCall[] {
  const marked = calls.filter((call) => call.unchecked)
  return marked.length > 0 ? marked : calls.filter((call) => call.result === undefined)
}
