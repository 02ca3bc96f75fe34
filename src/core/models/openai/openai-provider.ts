import type { ModelProvider, StructuredOutputSupport } from '../provider.js'
import {
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

export type { OpenAIChatOptions, OpenAIResponsesOptions } from './openai-options.js'

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
  return createWireProvider(options, options.echoReasoning, async (provider, echo) => {
    const { createChatWire } = await import('./chat-wire.js')
    return createChatWire(options, provider, echo)
  })
}

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
  const model = createWireProvider(options, false, async (provider) => {
    const { createResponsesWire } = await import('./responses-wire.js')
    return createResponsesWire(options, provider)
  })
  // Other providers of this API do not support tool search.
  return model.provider === 'openai' ? { ...model, searchesTools: true } : model
}

/** Creates a provider for one of the APIs. The provider's code is loaded with the first request. */
function createWireProvider(
  options: OpenAIOptions,
  echoReasoning: OpenAIChatOptions['echoReasoning'],
  loadWire: (provider: string, echo: ReasoningEcho) => Promise<ApiWire>,
): ModelProvider {
  const provider = options.provider ?? getProviderName(getBaseURL(options))
  const echo = getReasoningEcho(provider, echoReasoning)
  const exchange = loadOnce(async () => {
    const { createExchange } = await import('./exchange.js')
    return createExchange(options, await loadWire(provider, echo), provider)
  })
  const structuredOutput = findStructuredOutput(provider)
  const endpoint = findEndpoint(options)
  const created: ModelProvider = {
    provider,
    model: options.model,
    ...(endpoint && { endpoint }),
    ...(structuredOutput && { structuredOutput }),
    ...(fullProviders.includes(provider) && { canForbidCalls: true }),
    ...(options.media && { media: options.media }),
    ...(echo !== 'none' && { echoesReasoning: echo === 'with_calls' ? echo : ('always' as const) }),
    check: () => checkCredentials(options),
    request: (request, options) =>
      runAbortable(findCallAbort(options) ?? options.signal, async (abort) =>
        (await exchange())(request, options, abort),
      ),
  }
  return options.limiter?.limit(created) ?? created
}

const echoByProvider: Readonly<Record<string, ReasoningEcho>> = {
  deepseek: 'with_calls',
  moonshotai: 'with_calls',
  zai: 'reasoning_content',
  gpustack: 'reasoning_content',
  ollama: 'reasoning',
  mistral: 'thinking',
}

function getReasoningEcho(provider: string, wanted: OpenAIChatOptions['echoReasoning']): ReasoningEcho {
  if (wanted === false) return 'none'
  if (typeof wanted === 'string') return wanted
  const form = Object.hasOwn(echoByProvider, provider) ? echoByProvider[provider] : undefined
  return form ?? (wanted === true ? 'with_calls' : 'none')
}

/**
 * Providers that accept `json_schema` for all current models, but where it fails next to tools, or prevents calls.
 * Where only some models or none accept it (DeepSeek, Groq, OpenRouter), the final tool is safer.
 */
const aloneProviders = 'google mistral fireworks together cerebras perplexity ollama lmstudio vllm'.split(' ')

/** They accept it beside tools, honor `tool_choice: 'none'`, and their prompt caches start with the tools. */
const fullProviders: readonly string[] = ['openai', 'azure', 'x-ai']

export function findStructuredOutput(provider: string): StructuredOutputSupport | undefined {
  if (fullProviders.includes(provider)) return 'beside_tools'
  return aloneProviders.includes(provider) ? 'alone' : undefined
}

/** Host suffixes by the provider names used for prices. */
const hosts = Object.entries({
  openai: ['api.openai.com'],
  azure: ['openai.azure.com', 'services.ai.azure.com', 'cognitiveservices.azure.com', 'azure-api.net'],
  anthropic: ['api.anthropic.com'],
  google: ['googleapis.com'],
  deepseek: ['api.deepseek.com'],
  groq: ['api.groq.com'],
  mistral: ['api.mistral.ai'],
  openrouter: ['openrouter.ai'],
  'x-ai': ['api.x.ai'],
  together: ['api.together.xyz', 'api.together.ai'],
  fireworks: ['api.fireworks.ai'],
  perplexity: ['api.perplexity.ai'],
  cohere: ['api.cohere.ai', 'api.cohere.com'],
  cerebras: ['api.cerebras.ai'],
  moonshotai: ['api.moonshot.ai', 'api.moonshot.cn'],
  novita: ['api.novita.ai'],
  zai: ['api.z.ai'],
  huggingface: ['router.huggingface.co'],
})

const localPorts: Record<string, string> = { 11434: 'ollama', 1234: 'lmstudio', 8000: 'vllm' }

export function getProviderName(baseURL: string): string {
  const url = new URL(baseURL)
  const known = hosts.find(([, ends]) => ends.some((end) => `.${url.hostname}`.endsWith(`.${end}`)))
  if (known !== undefined) return known[0]
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
