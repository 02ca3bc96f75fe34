import type { Message } from '../../machines/agent/messages.js'
import type { ModelOutput } from '../../machines/agent/model-response.js'
import { addUsage, type Usage } from '../../machines/agent/usage.js'
import { openRecord } from '../core/sessions/log/log-record.js'
import type { SessionStore } from '../core/sessions/store/store.js'

type Response = ModelOutput['response']
type AssistantMessage = Extract<Message, { role: 'assistant' }>

/**
 * The usage of each assistant message of a session, from the responses in its log; null for a message that came from
 * elsewhere. A response without a message of its own, as a part of an answer that was continued, counts for the next one.
 */
export async function listResponseUsage(
  store: SessionStore,
  sessionId: string,
  messages: readonly Message[],
): Promise<(Usage | null)[]> {
  const responses: Response[] = []
  let seq = 0
  for (const record of await store.read(sessionId)) {
    const entry = openRecord(record, seq, sessionId)
    seq = record.seq
    if (entry.type !== 'event' || !/^xstate\.done\.actor\.(model|conclusion)$/.test(entry.event.type))
      continue
    responses.push((entry.event as unknown as { output: ModelOutput }).output.response)
  }
  let next = 0
  return messages
    .filter((message): message is AssistantMessage => message.role === 'assistant')
    .map((message) => {
      const found = responses.findIndex((response, i) => i >= next && isResponseOf(response, message))
      if (found < 0) return null
      const usage = responses.slice(next, found + 1).map((response) => response.usage)
      next = found + 1
      return usage.reduce(addUsage)
    })
}

function isResponseOf(
  { toolCalls, text }: Response,
  { tool_calls: calls = [], content }: AssistantMessage,
): boolean {
  if (calls.length > 0)
    return calls.map(({ id }) => id).join('\n') === toolCalls.map(({ id }) => id).join('\n')
  return toolCalls.length === 0 && typeof content === 'string' && content.endsWith(text)
}
