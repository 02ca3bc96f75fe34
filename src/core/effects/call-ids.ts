import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentRuntime } from '../live/runtime.js'
import { nameCall } from '../models/name-call.js'

/** The call ids of a run's transcript, up to the message with this index. */
interface UsedIds {
  ids: Set<string>
  messages: number
}

const noIds: ReadonlySet<string> = new Set()
const usedByRun = new WeakMap<AgentRuntime, UsedIds>()

/** Returns the id of a call of the next message: the provider's, unless an earlier message of the session has it. */
export function createCallNamer(runtime: AgentRuntime, context: AgentContext): (id: string) => string {
  return (id) => nameCall(id, context.numbered + 1, collectUsedIds(runtime, context))
}

/** Each message is read once. A run whose transcript has no calls keeps no set. */
function collectUsedIds(runtime: AgentRuntime, { messages }: AgentContext): ReadonlySet<string> {
  let used = usedByRun.get(runtime)
  for (let i = used?.messages ?? 0; i < messages.length; i += 1) {
    const message = messages[i]
    if (message?.role !== 'assistant' || !message.tool_calls) continue
    if (used === undefined) usedByRun.set(runtime, (used = { ids: new Set(), messages: 0 }))
    for (const { id } of message.tool_calls) used.ids.add(id)
  }
  if (used === undefined) return noIds
  used.messages = messages.length
  return used.ids
}
