import type { ModelProvider } from '../../provider.js'
import { createWireProvider } from '../wire-provider.js'
import { checkResponsesOptions, type OpenAIResponsesOptions } from './responses-options.js'

export type { OpenAIResponsesOptions } from './responses-options.js'

/**
 * A model behind an OpenAI-compatible Responses API (OpenAI, Azure, xAI, DeepSeek, OpenRouter, LM Studio, Bedrock, vLLM),
 * reached through the `openai` client. Nothing is stored at the provider: reasoning comes encrypted and goes back whole.
 *
 * @example
 * openaiResponses({ model: 'gpt-5-mini' })                                           // OPENAI_API_KEY
 * openaiResponses({ model: 'gpt-5', hostedTools: [{ type: 'web_search' }] })         // with a tool that OpenAI runs
 * openaiResponses({ model: 'glm-4.7-flash', baseURL: 'http://localhost:1234/v1' })   // LM Studio
 *
 * @throws ConfigError for options that no request could be made with. A request rejects with a `ModelError`, or with
 * the signal's reason.
 */
export function openaiResponses(options: OpenAIResponsesOptions): ModelProvider {
  checkResponsesOptions(options)
  const model = createWireProvider(options, async (provider) => {
    const { createResponsesWire } = await import('./responses-wire.js')
    return createResponsesWire(options, provider)
  })
  // Others that speak this API refuse the search, or do not know it.
  return model.provider === 'openai' ? { ...model, searchesTools: true } : model
}
