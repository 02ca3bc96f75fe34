import type { ModelProvider } from '../provider.js'
import { reasoningEchoAt } from './echo-reasoning.js'
import { checkOptions, type OpenAIChatOptions } from './options.js'
import { providerOver } from './provider-over.js'

export type { OpenAIChatOptions } from './options.js'

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
  checkOptions(options)
  return providerOver(
    options,
    async (provider) => {
      const { chatWire } = await import('./chat-wire.js')
      return chatWire(options, provider)
    },
    (provider) => reasoningEchoAt(provider, options.echoReasoning),
  )
}
