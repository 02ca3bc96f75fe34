import type { AssistantMessage, ContentPart, Message } from '../../../../machines/agent/messages.js'
import { wellFormed } from '../well-formed.js'
import { echoed, type ReasoningEcho } from './echo-reasoning.js'
import { type CallIds, wireCall } from './wire-calls.js'

/** A message as it is sent. */
export type WireMessage = Readonly<Record<string, unknown>>

export interface WireStyle {
  /** How earlier reasoning goes back. */
  echoReasoning: ReasoningEcho
  callId: CallIds
}

/**
 * The message without our notes (`id`, `createdAt`, `internal`, `data`; `reasoning` where it is not wanted), and valid:
 * what is stored says what happened, what is sent is what every provider takes. Null for one that says nothing.
 */
export function toWire(message: Message, style: WireStyle): WireMessage | null {
  switch (message.role) {
    case 'assistant':
      return assistant(message, style)
    case 'tool': {
      const { tool_call_id: id, content } = message
      return {
        role: 'tool',
        tool_call_id: style.callId(id),
        content: isBlank(content) ? empty : wellFormed(content),
      }
    }
    case 'user':
      return { role: 'user', content: wellFormed(spoken(message.content)) }
    default:
      return isBlank(message.content) ? null : { role: 'system', content: wellFormed(message.content) }
  }
}

/** What the model reads where a text has no words: several providers refuse a blank one. */
const empty = '(empty)'

export function isBlank(text: string | null | undefined): boolean {
  return text === null || text === undefined || text.trim() === ''
}

function spoken(content: string | ContentPart[]): string | ContentPart[] {
  if (typeof content === 'string') return isBlank(content) ? empty : content
  const parts = content.filter((part) => part.type !== 'text' || !isBlank(part.text))
  return parts.length === 0 ? empty : parts
}

/** An answer may have ended before its first word, or with thoughts alone: a request with such a message is refused. */
function assistant(message: AssistantMessage, { echoReasoning, callId }: WireStyle): WireMessage | null {
  const calls = message.tool_calls ?? []
  // A refusal is text to every provider but one. Null is allowed beside calls only.
  const words = [message.content, message.refusal].find((text) => !isBlank(text)) ?? null
  if (words === null && calls.length === 0) return null
  const { reasoning_details: details } = message
  return {
    role: 'assistant',
    ...wellFormed(echoed(message, words, echoReasoning)),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => wireCall(call, callId)) }),
    ...(details !== undefined && { reasoning_details: wellFormed(details) }),
  }
}
