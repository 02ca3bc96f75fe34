import { asObject, asText } from '../core/models/as-json.js'
import { isCompaction } from './provider-echo.js'
import type { CallOptions, PromptMessage, ProviderData } from './spec.js'

/**
 * Anthropic thinks on only where it thought before: while calls are answered, it wants the thoughts back that led to them. Where
 * another model has made the calls, or a shield or an edit has taken the thoughts away, there are none, and the whole
 * request would be refused; so it is asked not to think until the batch is answered.
 */
export function disableThinkingWithoutThoughts(call: CallOptions): CallOptions {
  const { anthropic } = call.providerOptions ?? {}
  const isOn = !['', 'disabled'].includes(asText(asObject(anthropic?.['thinking'])?.type))
  const mayThink = isOn || (call.reasoning !== undefined && call.reasoning !== 'none')
  if (!mayThink || !lacksThoughts(call.prompt)) return call
  const providerOptions: ProviderData = {
    ...call.providerOptions,
    anthropic: { ...anthropic, thinking: { type: 'disabled' } },
  }
  return { ...call, providerOptions, ...(call.reasoning !== undefined && { reasoning: 'none' }) }
}

/** Whether the calls that are being answered came without thoughts. */
function lacksThoughts(prompt: readonly PromptMessage[]): boolean {
  const last = prompt.findLastIndex(({ role }) => role === 'assistant')
  const answer = prompt[last]
  if (answer?.role !== 'assistant' || prompt[last + 1]?.role !== 'tool') return false
  const first = answer.content.find(({ providerOptions }) => !isCompaction(providerOptions))
  return first?.type !== 'reasoning'
}
