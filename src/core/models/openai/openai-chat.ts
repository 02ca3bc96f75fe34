import type { ModelProvider } from '../provider.js'
import { getReasoningEcho } from './echo-reasoning.js'
import { checkChatOptions, type OpenAIChatOptions } from './openai-options.js'
import { createWireProvider } from './wire-provider.js'

export type { OpenAIChatOptions } from './openai-options.js'

/**
 * A model behind an OpenAI-compatible Chat Completions API, reached through the `openai` client.
 *
 * @example
 * openaiChat({ model: 'gpt-5-mini' })                                              // OPENAI_API_KEY
 * openaiChat({ model: 'qwen3', baseURL: 'http://localhost:11434/v1' })             // a local server needs no key
 * openaiChat({ model: 'my-deployment', client: new AzureOpenAI({ apiVersion }) })  // a client of one's own
 *
 * @throws ConfigError for options that no request could be made with. A request rejects with a `ModelError`, or with
 * the signal's reason.
 */
export function openaiChat(options: OpenAIChatOptions): ModelProvider {
  checkChatOptions(options)
  return createWireProvider(
    options,
    async (provider) => {
      const { createChatWire } = await import('./chat-wire.js')
      return createChatWire(options, provider)
    },
    (provider) => getReasoningEcho(provider, options.echoReasoning),
  )
}
