import { ConfigError } from '../../base/errors.js'
import { readPath, readProperty } from '../../base/json.js'
import type { MediaKind } from '../../../../machines/agent/refusals.js'
import { isMediaList } from '../media.js'
import { isLimiter, limiterPhrase, type RequestLimiter, type ModelProvider } from '../provider.js'
import type { RequestDispatcher } from './node-transport.js'
import type { JsonObject } from '../../../../machines/agent/json.js'

export interface ClientRequestOptions {
  signal: AbortSignal
  maxRetries: number
  timeout?: number
  headers?: Record<string, string>
  fetchOptions?: { redirect: 'manual' }
}

interface ClientApi {
  create(body: never, options?: ClientRequestOptions): { asResponse(): Promise<Response> }
}

/** The used parts of `OpenAI` and `AzureOpenAI`. Declared here, so that types do not need the package. */
export interface OpenAIClient {
  baseURL: string
  apiKey: string | null
  chat: { completions: ClientApi }
  responses: ClientApi
}

/** Connection options shared by both APIs. */
export interface OpenAIOptions {
  /** The provider's name for the model. With Azure, the deployment. */
  model: string
  /** Base URL of the API, including `/v1`. Defaults to OPENAI_BASE_URL or `https://api.openai.com/v1`. */
  baseURL?: string | undefined
  /**
   * The key, or a function that returns one per request. Defaults to OPENAI_API_KEY. Optional with `baseURL`.
   */
  apiKey?: string | (() => Promise<string>) | undefined
  /** A custom client, including `AzureOpenAI`. The client uses its own URL, key and headers. */
  client?: OpenAIClient | undefined
  /** The provider name for display and prices. Defaults to a name derived from the base URL. */
  provider?: string | undefined
  /** Accepted media. Others are rejected before they are sent; `[]` means text only. Default: unknown. */
  media?: readonly MediaKind[] | undefined
  /** OpenAI organization for billing. Defaults to OPENAI_ORG_ID. */
  organization?: string | undefined
  /** OpenAI project for the requests. Defaults to OPENAI_PROJECT_ID. */
  project?: string | undefined
  /** Headers sent with every request. */
  headers?: Record<string, string> | undefined
  /** Query parameters added to the URL of every request, such as Azure's `api-version`. */
  query?: Record<string, string> | undefined
  /**
   * Milliseconds until the response headers must arrive. Defaults to 10 minutes, as in the client. The body is limited
   * by `streamIdleMs` and `contentIdleMs`. Redirects are rejected.
   */
  timeoutMs?: number | undefined
  /**
   * Custom `fetch`. Defaults to Node's HTTP with the agents of the process (`https.globalAgent`), which takes less than
   * half the CPU time. Falls back to the global `fetch` on other platforms, or if `fetch` or its dispatcher
   * (`setGlobalDispatcher`) was replaced.
   */
  fetch?: typeof globalThis.fetch | undefined
  /**
   * Sends requests through an undici `Dispatcher`, such as `new Pool('https://api.openai.com')`. Node only. Saves a
   * fifth of the time on servers with hundreds of runs. Defaults to Node's HTTP.
   */
  dispatcher?: RequestDispatcher | undefined
  /** Limits the request rate. Create it with `createLimiter` from `statewright/fleet`. No limit by default. */
  limiter?: RequestLimiter | undefined
  /** Allows a key in a browser, where anyone can read it. Not needed for a page without a key. */
  dangerouslyAllowBrowser?: boolean | undefined
}

/**
 * Options for `openaiChat`.
 *
 * @example openaiChat({ model: 'llama3.3', baseURL: 'http://localhost:11434/v1', apiKey: 'none' })
 */
export interface OpenAIChatOptions extends OpenAIOptions {
  /** Default: `max_completion_tokens` with OpenAI and Azure, otherwise `max_tokens`. */
  maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined
  /**
   * Whether assistant messages are sent back with their reasoning, and in which form: the field `reasoning_content` or
   * `reasoning`, or a `thinking` content part. True selects the provider's form, or otherwise `reasoning_content` on
   * messages with tool calls. By default, reasoning is sent to providers that require it (DeepSeek, Moonshot) or use it
   * (Z.ai and GPUStack with `reasoning_content`, Ollama with `reasoning`, Mistral with `thinking`).
   */
  echoReasoning?: boolean | ReasoningForm | undefined
}

/** @throws ConfigError for invalid options. */
export function checkChatOptions(options: OpenAIChatOptions): void {
  const invalid = checkSharedOptions('openaiChat', options, ['chat', 'completions', 'create'], '.')
  const { echoReasoning } = options
  const echoes: unknown[] = [undefined, true, false, ...reasoningForms]
  if (!echoes.includes(echoReasoning))
    throw invalid('echoReasoning', `must be true, false or one of ${reasoningForms.join(', ')}.`)
}

/** `method` is the path of the used method in a custom client, and `note` says which clients have it. */
function checkSharedOptions(name: string, options: OpenAIOptions, method: readonly string[], note: string) {
  const invalid = (option: string, what: string): ConfigError =>
    new ConfigError('invalid_option', `${name}: ${option} ${what}`, option)
  const { model, client, baseURL, apiKey, media, timeoutMs }: Partial<OpenAIOptions> = options ?? {}
  const { limiter, dispatcher, fetch }: Partial<OpenAIOptions> = options ?? {}
  if (typeof model !== 'string' || model.trim() === '')
    throw invalid('model', "must be a model name, such as 'gpt-5-mini'.")
  if (client !== undefined && (baseURL !== undefined || apiKey !== undefined))
    throw invalid(
      'client',
      'cannot be combined with baseURL or apiKey. The client has its own address and key. Set them on the client instead.',
    )
  if (baseURL !== undefined && !isHttpUrl(baseURL))
    throw invalid('baseURL', "must be an http(s) URL, such as 'http://localhost:11434/v1'.")
  if (baseURL !== undefined && hasUserInfo(baseURL)) throw invalid('baseURL', noUserPhrase)
  if (dispatcher !== undefined && typeof readProperty(dispatcher, 'request') !== 'function')
    throw invalid('dispatcher', "must be an undici dispatcher, such as new Pool('https://api.openai.com').")
  if (dispatcher !== undefined && (client !== undefined || fetch !== undefined))
    throw invalid(
      'dispatcher',
      'cannot be combined with client or fetch, which send the requests themselves.',
    )
  if (!isLimiter(limiter)) throw invalid('limiter', `must be ${limiterPhrase}.`)
  if (!isMediaList(media))
    throw invalid('media', "must be a list of zero or more of 'image', 'audio' and 'file'.")
  if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs > 0 && timeoutMs < 2 ** 31))
    throw invalid('timeoutMs', 'must be a whole number of milliseconds, from 1 to 2147483647.')
  if (client !== undefined && typeof readPath(client, method) !== 'function')
    throw invalid('client', `must be an OpenAI client, such as new OpenAI() or new AzureOpenAI()${note}`)
  return invalid
}

export function isHttpUrl(url: unknown): url is string {
  return typeof url === 'string' && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
}

export function hasUserInfo(url: string): boolean {
  const { username, password } = new URL(url)
  return username !== '' || password !== ''
}

const noUserPhrase = 'must not contain a user or password. Use apiKey or headers.'

/** How reasoning is sent back. `with_calls`: as `reasoning_content`, only on messages with tool calls. */
export type ReasoningEcho = 'none' | 'with_calls' | ReasoningForm
type ReasoningForm = (typeof reasoningForms)[number]

export const reasoningForms = ['reasoning_content', 'reasoning', 'thinking'] as const

/** Options for `openaiResponses`. */
export interface OpenAIResponsesOptions extends OpenAIOptions {
  /**
   * Tools that the provider runs, in its own format: `{ type: 'web_search' }`, `code_interpreter`, `file_search`,
   * `mcp`, … They are listed after the agent's tools. Tools that expect you to return a result are not supported.
   */
  hostedTools?: readonly JsonObject[] | undefined
  /** Whether the model summarizes its reasoning for people, and at what length. Defaults to no summary. */
  reasoningSummary?: 'auto' | 'concise' | 'detailed' | undefined
  /**
   * Whether to request encrypted reasoning so that it can be sent back. Defaults to true, except for OpenAI models
   * without reasoning (gpt-4o, gpt-4.1, …), which reject it.
   */
  encryptedReasoning?: boolean | undefined
}

export function checkResponsesOptions(options: OpenAIResponsesOptions): void {
  const note = ', from a version that has responses.create.'
  const invalid = checkSharedOptions('openaiResponses', options, ['responses', 'create'], note)
  const { hostedTools, reasoningSummary, encryptedReasoning } = options
  const isTool = (tool: unknown): boolean => typeof readProperty(tool, 'type') === 'string'
  if (hostedTools !== undefined && !(Array.isArray(hostedTools) && hostedTools.every(isTool)))
    throw invalid('hostedTools', "must be a list of tools with a type, such as [{ type: 'web_search' }].")
  const own = hostedTools?.find(({ type }) => type === 'function')
  if (own !== undefined)
    throw invalid('hostedTools', 'must not contain functions. Pass them to the agent as tools.')
  if (![undefined, 'auto', 'concise', 'detailed'].includes(reasoningSummary))
    throw invalid('reasoningSummary', 'must be auto, concise or detailed.')
  if (encryptedReasoning !== undefined && typeof encryptedReasoning !== 'boolean')
    throw invalid('encryptedReasoning', 'must be true or false.')
}

const officialURL = 'https://api.openai.com/v1'

/** Custom clients check this themselves. @throws ConfigError `missing_api_key`, `browser_key` */
export function checkCredentials(options: OpenAIOptions): void {
  if (options.client !== undefined) return
  const names = ['OPENAI_API_KEY', 'OPENAI_ADMIN_KEY']
  const hasKey = Boolean(options.apiKey) || names.some(getEnvironmentVariable)
  // Only OpenAI's own server requires a key.
  if (!hasKey && new URL(getBaseURL(options)).host === new URL(officialURL).host) {
    throw new ConfigError(
      'missing_api_key',
      'No API key. Set OPENAI_API_KEY or the option apiKey. For a server without a key, set baseURL.',
      'apiKey',
    )
  }
  if (isBrowser() && options.dangerouslyAllowBrowser !== true && hasSecret(options)) {
    throw new ConfigError(
      'browser_key',
      'The model has a key in a browser, where anyone who opens the page can read it. Remove it and set ' +
        'baseURL to your own server, which adds the key, or accept the risk with dangerouslyAllowBrowser: true.',
      'dangerouslyAllowBrowser',
    )
  }
}

/** Whether a page may use the client: the app allows it, or the options contain no secret. */
export function isAllowedInBrowser(options: OpenAIOptions): boolean {
  return options.dangerouslyAllowBrowser ?? !hasSecret(options)
}

/** The base URL from the options, the environment or OpenAI's default. */
export function getBaseURL({ client, baseURL }: OpenAIOptions): string {
  if (client !== undefined) return isHttpUrl(client.baseURL) ? client.baseURL : officialURL
  if (baseURL !== undefined) return baseURL
  const fromEnvironment = getEnvironmentVariable('OPENAI_BASE_URL')
  if (fromEnvironment === undefined) return officialURL
  const isUrl = isHttpUrl(fromEnvironment)
  if (isUrl && !hasUserInfo(fromEnvironment)) return fromEnvironment
  const problem = `OPENAI_BASE_URL ${isUrl ? noUserPhrase : 'must be an http(s) URL.'}`
  throw new ConfigError('invalid_option', problem, 'OPENAI_BASE_URL')
}

/** The server of the base URL, or undefined if a custom client does not expose it. */
export function findEndpoint(options: OpenAIOptions): ModelProvider['endpoint'] {
  const { client } = options
  if (client !== undefined && !isHttpUrl(client.baseURL)) return undefined
  const { hostname, port, protocol } = new URL(getBaseURL(options))
  const usual = protocol === 'http:' ? 80 : 443
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? usual : Number(port) }
}

function hasSecret({ apiKey, headers = {} }: OpenAIOptions): boolean {
  return Boolean(apiKey) || Object.keys(headers).some((name) => /auth|key|token|secret|cookie/i.test(name))
}

/** Whether the code runs in a browser. The check is the same as in the `openai` client. */
function isBrowser(): boolean {
  const scope: { window?: { document?: unknown }; navigator?: unknown } = globalThis
  return scope.window?.document !== undefined && scope.navigator !== undefined
}

/** The trimmed value, or undefined if it is empty. */
export function getEnvironmentVariable(name: string): string | undefined {
  const scope: { process?: { env?: Record<string, string | undefined> } } = globalThis
  return scope.process?.env?.[name]?.trim() || undefined
}

/** The headers of OPENAI_CUSTOM_HEADERS, one a line, as the `openai` client reads them. */
export function listCustomHeaders(): [name: string, value: string][] {
  const lines = (getEnvironmentVariable('OPENAI_CUSTOM_HEADERS') ?? '').matchAll(/^([^:\n]+):(.*)$/gm)
  return [...lines].map(([, name = '', value = '']) => [name.trim(), value.trim()])
}
