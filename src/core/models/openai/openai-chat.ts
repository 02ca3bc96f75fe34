import { lazily } from '../../base/load.js'
import type { ModelProvider } from '../provider.js'
import { abortable } from '../../base/abort.js'
import { baseURLOf, checkCredentials } from './credentials.js'
import { checkOptions, type OpenAIChatOptions } from './options.js'
import { providerName } from './provider-name.js'
import { structuredOutputAt } from './structured-output-at.js'

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
  const provider = options.provider ?? providerName(baseURLOf(options))
  const exchange = lazily(async () => {
    const { createExchange } = await import('./exchange.js')
    return createExchange(options, provider)
  })
  const structuredOutput = structuredOutputAt(provider)
  return {
    provider,
    model: options.model,
    ...(structuredOutput && { structuredOutput }),
    check: () => checkCredentials(options),
    request: (request, options) =>
      abortable(options.signal, async (own) => {
        const answer = await exchange()
        return answer(request, { ...options, abort: own, ...(!request.stream && { onDelta: nothing }) })
      }),
  }
}

const nothing = () => undefined
