import type { AssistantMessage, Message, ToolCall, UserMessage } from '../../../machines/agent/messages.js'
import { echoed, type ReasoningEcho } from './echo-reasoning.js'

/** A message as it is sent. */
export type WireMessage = Readonly<Record<string, unknown>>

/** The message without our notes (`id`, `createdAt`, `internal`, `data`; `reasoning` where it is not wanted). */
export function toWire(message: Message, echo: ReasoningEcho): WireMessage {
  switch (message.role) {
    case 'assistant':
      return assistant(message, echo)
    case 'tool':
      return { role: 'tool', tool_call_id: message.tool_call_id, content: message.content }
    default:
      return { role: message.role, content: message.content }
  }
}

/** A user message with a text added to it as a paragraph of its own. */
export function withParagraph({ content }: UserMessage, text: string): WireMessage {
  if (typeof content !== 'string') return { role: 'user', content: [...content, { type: 'text', text }] }
  return { role: 'user', content: content === '' ? text : `${content}\n\n${text}` }
}

/** User messages in a row as one: some chat templates refuse two, and to a model it is the same. */
export function mergeUsers(messages: readonly WireMessage[]): WireMessage[] {
  const merged: WireMessage[] = []
  for (const message of messages) {
    const last = merged.at(-1)
    if (message['role'] === 'user' && last?.['role'] === 'user') {
      merged[merged.length - 1] = { role: 'user', content: joined(last['content'], message['content']) }
    } else {
      merged.push(message)
    }
  }
  return merged
}

function joined(a: unknown, b: unknown): unknown {
  if (typeof a === 'string' && typeof b === 'string') return `${a}\n\n${b}`
  return [...partsOf(a), ...partsOf(b)]
}

function partsOf(content: unknown): unknown[] {
  return Array.isArray(content) ? content : [{ type: 'text', text: content }]
}

function assistant(message: AssistantMessage, echo: ReasoningEcho): WireMessage {
  const calls = message.tool_calls ?? []
  return {
    role: 'assistant',
    // A refusal is text to every provider but one. Null is allowed beside calls only.
    ...echoed(message, message.content || message.refusal || (calls.length > 0 ? null : ''), echo),
    ...(calls.length > 0 && { tool_calls: calls.map(wireCall) }),
    ...(message.reasoning_details !== undefined && { reasoning_details: message.reasoning_details }),
  }
}

function wireCall({ id, function: { name, arguments: text }, extra_content }: ToolCall): WireMessage {
  return {
    id,
    type: 'function',
    function: { name, arguments: readable(text) },
    ...(extra_content !== undefined && { extra_content }),
  }
}

/** Many servers parse the arguments of past calls and refuse the whole request where they cannot. */
function readable(text: string): string {
  if (text.trim() === '') return '{}'
  try {
    JSON.parse(text)
    return text
  } catch {
    return JSON.stringify({ invalid_json: text })
  }
}
