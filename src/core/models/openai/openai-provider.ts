import type { ModelProvider, StructuredOutputSupport } from '../provider.js'
import {
  getReasoningEcho,
  checkChatOptions,
  type OpenAIChatOptions,
  checkResponsesOptions,
  type OpenAIResponsesOptions,
  type ReasoningEcho,
  getBaseURL,
  checkCredentials,
  findEndpoint,
  type OpenAIOptions,
} from './openai-options.js'
import { runAbortable, findCallAbort } from '../../base/abort.js'
import { loadOnce } from '../../base/platform.js'
import type { ApiWire } from './exchange.js'

export type { OpenAIChatOptions } from './openai-options.js'

/**
 * A model behind an OpenAI-compatible Chat Completions API. Outside Node it needs the package `openai`.
 *
 * @example
 * openaiChat({ model: 'gpt-5-mini' })                                              // OPENAI_API_KEY
 * openaiChat({ model: 'qwen3', baseURL: 'http://localhost:11434/v1' })             // a local server needs no key
 * openaiChat({ model: 'my-deployment', client: new AzureOpenAI({ apiVersion }) })  // a custom client
 *
 * @throws ConfigError for invalid options. A request rejects with a `ModelError`, or with the signal's reason.
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

export type { OpenAIResponsesOptions } from './openai-options.js'

/**
 * A model behind an OpenAI-compatible Responses API (OpenAI, Azure, xAI, DeepSeek, OpenRouter, LM Studio, Bedrock,
 * vLLM). The provider stores no responses. Reasoning is encrypted and sent back in full. Outside Node it needs the
 * package `openai`.
 *
 * @example
 * openaiResponses({ model: 'gpt-5-mini' })                                           // OPENAI_API_KEY
 * openaiResponses({ model: 'gpt-5', hostedTools: [{ type: 'web_search' }] })         // with a tool that OpenAI runs
 * openaiResponses({ model: 'glm-4.7-flash', baseURL: 'http://localhost:1234/v1' })   // LM Studio
 *
 * @throws ConfigError for invalid options. A request rejects with a `ModelError`, or with the signal's reason.
 */
export function openaiResponses(options: OpenAIResponsesOptions): ModelProvider {
  checkResponsesOptions(options)
  const model = createWireProvider(options, async (provider) => {
    const { createResponsesWire } = await import('./responses-wire.js')
    return createResponsesWire(options, provider)
  })
  // Other providers of this API do not support tool search.
  return model.provider === 'openai' ? { ...model, searchesTools: true } : model
}

/** Creates a provider for one of the APIs. The provider's code is loaded with the first request. */
function createWireProvider(
  options: OpenAIOptions,
  wireAt: (provider: string) => Promise<ApiWire>,
  echoAt: (provider: string) => ReasoningEcho = () => 'none',
): ModelProvider {
  const provider = options.provider ?? getProviderName(getBaseURL(options))
  const exchange = loadOnce(async () => {
    const { createExchange } = await import('./exchange.js')
    return createExchange(options, await wireAt(provider), provider)
  })
  const structuredOutput = findStructuredOutput(provider)
  const echo = echoAt(provider)
  const endpoint = findEndpoint(options)
  const created: ModelProvider = {
    provider,
    model: options.model,
    ...(endpoint && { endpoint }),
    ...(structuredOutput && { structuredOutput }),
    ...(forbiddingProviders.includes(provider) && { canForbidCalls: true }),
    ...(options.media && { media: options.media }),
    ...(echo !== 'none' && { echoesReasoning: echo === 'with_calls' ? echo : ('always' as const) }),
    check: () => checkCredentials(options),
    request: (request, options) =>
      runAbortable(findCallAbort(options) ?? options.signal, async (abort) => {
        const { onSent, onActivity, onHostedCall: onHosted, onWarning } = options
        const onDelta = request.stream ? options.onDelta : ignoreDelta
        const onToolCall = request.stream ? options.onToolCallDelta : undefined
        const answer = await exchange()
        return answer(request, { abort, onSent, onActivity, onDelta, onToolCall, onHosted, onWarning })
      }),
  }
  return options.limiter?.limit(created) ?? created
}

const ignoreDelta = () => undefined

/**
 * Providers that accept `json_schema` for all current models: `alone` if it fails next to tools, or prevents calls.
 * Where only some models or none accept it (DeepSeek, Groq, OpenRouter), the final tool is safer.
 */
const supportByProvider: Readonly<Record<string, StructuredOutputSupport>> = {
  openai: 'beside_tools',
  azure: 'beside_tools',
  'x-ai': 'beside_tools',
  google: 'alone',
  mistral: 'alone',
  fireworks: 'alone',
  together: 'alone',
  cerebras: 'alone',
  perplexity: 'alone',
  ollama: 'alone',
  lmstudio: 'alone',
  vllm: 'alone',
}

/** Providers that honor `tool_choice: 'none'` and whose prompt caches start with the tools. */
const forbiddingProviders: readonly string[] = ['openai', 'azure', 'x-ai']

export function findStructuredOutput(provider: string): StructuredOutputSupport | undefined {
  return Object.hasOwn(supportByProvider, provider) ? supportByProvider[provider] : undefined
}

/** Host suffixes and the provider names used for prices. */
const hosts: [end: string, provider: string][] = [
  ['api.openai.com', 'openai'],
  ['openai.azure.com', 'azure'],
  ['services.ai.azure.com', 'azure'],
  ['cognitiveservices.azure.com', 'azure'],
  ['azure-api.net', 'azure'],
  ['api.anthropic.com', 'anthropic'],
  ['googleapis.com', 'google'],
  ['api.deepseek.com', 'deepseek'],
  ['api.groq.com', 'groq'],
  ['api.mistral.ai', 'mistral'],
  ['openrouter.ai', 'openrouter'],
  ['api.x.ai', 'x-ai'],
  ['api.together.xyz', 'together'],
  ['api.together.ai', 'together'],
  ['api.fireworks.ai', 'fireworks'],
  ['api.perplexity.ai', 'perplexity'],
  ['api.cohere.ai', 'cohere'],
  ['api.cohere.com', 'cohere'],
  ['api.cerebras.ai', 'cerebras'],
  ['api.moonshot.ai', 'moonshotai'],
  ['api.moonshot.cn', 'moonshotai'],
  ['api.novita.ai', 'novita'],
  ['api.z.ai', 'zai'],
  ['router.huggingface.co', 'huggingface'],
]

const localPorts: Record<string, string> = { 11434: 'ollama', 1234: 'lmstudio', 8000: 'vllm' }

export function getProviderName(baseURL: string): string {
  const url = new URL(baseURL)
  const known = hosts.find(([end]) => url.hostname === end || url.hostname.endsWith(`.${end}`))
  if (known !== undefined) return known[1]
  // Only GPUStack has this path. A GPUStack server at `/v1` cannot be recognized.
  if (url.pathname.startsWith('/v1-openai')) return 'gpustack'
  const local = localPorts[url.port]
  return local !== undefined && isPrivate(url.hostname) ? local : url.hostname
}

function isPrivate(host: string): boolean {
  return (
    /^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|0\.0\.0\.0|\[::1\])/.test(host) ||
    !host.includes('.')
  )
}
