import type { AssistantMessage } from '../../../../machines/agent/messages.js'

/**
 * How earlier reasoning is sent back: as a field beside the content (`reasoning_content`, `reasoning`), as a part of the
 * content (`thinking`), in every answer that has some; or only with tool calls (`with_calls`), then as
 * `reasoning_content`, empty where there was none.
 */
export type ReasoningEcho = 'none' | 'with_calls' | ReasoningForm
export type ReasoningForm = (typeof reasoningForms)[number]

export const reasoningForms = ['reasoning_content', 'reasoning', 'thinking'] as const

/** Those that refuse a request without it, and those that read it and whose own clients send it. */
const echoByProvider: Readonly<Record<string, ReasoningEcho>> = {
  deepseek: 'with_calls',
  moonshotai: 'with_calls',
  zai: 'reasoning_content',
  gpustack: 'reasoning_content',
  ollama: 'reasoning',
  mistral: 'thinking',
}

/** The form in which a provider gets it, by the name that its prices have and by what the user wants. */
export function getReasoningEcho(provider: string, wanted?: boolean | ReasoningForm): ReasoningEcho {
  if (wanted === false) return 'none'
  if (typeof wanted === 'string') return wanted
  const form = Object.hasOwn(echoByProvider, provider) ? echoByProvider[provider] : undefined
  return form ?? (wanted === true ? 'with_calls' : 'none')
}

/** What the message carries of its reasoning, given the content that it would have without. */
export function toEchoFields(
  { reasoning = '', tool_calls: calls = [] }: AssistantMessage,
  content: string | null,
  echo: ReasoningEcho,
): Readonly<Record<string, unknown>> {
  if (echo === 'with_calls') return calls.length > 0 ? { content, reasoning_content: reasoning } : { content }
  if (echo === 'none' || reasoning === '') return { content }
  if (echo !== 'thinking') return { content, [echo]: reasoning }
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: reasoning }] }
  return { content: content ? [thinking, { type: 'text', text: content }] : [thinking] }
}
