import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentRuntime } from '../live/runtime.js'
import { nameCall } from '../models/name-call.js'

/** The call ids of a run's transcript, up to the message with this index. */
interface UsedIds {
  ids: Set<string>
  messages: number
}

const usedByRun = new WeakMap<AgentRuntime, UsedIds>()

/** Returns the id of a call of the next message: the provider's, unless an earlier message of the session has it. */
export function createCallNamer(runtime: AgentRuntime, context: AgentContext): (id: string) => string {
  return (id) => nameCall(id, context.numbered + 1, collectUsedIds(runtime, context))
}

/** Each message is read once. */
function collectUsedIds(runtime: AgentRuntime, { messages }: AgentContext): ReadonlySet<string> {
  const used = usedByRun.get(runtime) ?? { ids: new Set(), messages: 0 }
  usedByRun.set(runtime, used)
  for (; used.messages < messages.length; used.messages += 1) {
    const message = messages[used.messages]
    if (message?.role === 'assistant') for (const { id } of message.tool_calls ?? []) used.ids.add(id)
  }
  return used.ids
}
