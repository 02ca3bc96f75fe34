import type { OpenAI } from 'openai'
import { ConfigError } from '../../base/errors.js'
import type { MediaKind } from '../../../../machines/agent/refusals.js'
import { isMediaList } from '../media.js'
import { isLimiter, limiterPhrase, type RequestLimiter, type ModelProvider } from '../provider.js'
import type { RequestDispatcher } from './node-transport.js'
import type { AssistantMessage } from '../../../../machines/agent/messages.js'
import type { JsonObject } from '../../../../machines/agent/json.js'

/** Where a model is and how to talk to it, whichever of the APIs it speaks. */
export interface OpenAIOptions {
  /** The model, as the provider names it. With Azure, the deployment. */
  model: string
  /** Where the API is, up to and including `/v1`. Default: OPENAI_BASE_URL, else `https://api.openai.com/v1`. */
  baseURL?: string | undefined
  /**
   * The key, or a function that returns a fresh one for each request. Default: OPENAI_API_KEY. A server of one's own
   * (`baseURL`) may need none.
   */
  apiKey?: string | (() => Promise<string>) | undefined
  /** A client of one's own, `AzureOpenAI` included. It brings its own address, key and headers. */
  client?: OpenAI | undefined
  /** The provider, for people and for prices. Default: known from the base URL. */
  provider?: string | undefined
  /**
   * What the model takes besides text: a message with anything else is refused before it is sent. `[]` is a model for text
   * alone. Default: not known, and the provider's own refusal is the error.
   */
  media?: readonly MediaKind[] | undefined
  /** OpenAI's organization that requests are billed to. Default: OPENAI_ORG_ID. */
  organization?: string | undefined
  /** OpenAI's project that requests belong to. Default: OPENAI_PROJECT_ID. */
  project?: string | undefined
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
  /** Added to the URL of every request (Azure's `api-version`, for example). */
  query?: Record<string, string> | undefined
  /**
   * Milliseconds until the headers of an answer have to be there. Default: the client's own, 10 minutes. The body is up to
   * `streamIdleMs` and `contentIdleMs`. Redirects are refused.
   */
  timeoutMs?: number | undefined
  /**
   * Makes the requests. Default: Node's own HTTP with the agents of the process (`https.globalAgent`), which costs less than half;
   * the global `fetch` on every other platform, and where it or its dispatcher (`setGlobalDispatcher`) is not Node's own.
   */
  fetch?: typeof globalThis.fetch | undefined
  /**
   * Makes the requests over the connections of a `Dispatcher` of the package `undici`, such as `new Pool('https://api.openai.com')`,
   * in Node alone: a fifth less time for a server that drives hundreds of runs. Default: Node's own HTTP.
   */
  dispatcher?: RequestDispatcher | undefined
  /** Lets its requests go as fast as the provider allows: what `createLimiter` of `statewright/fleet` returns. Default: at once. */
  limiter?: RequestLimiter | undefined
  /**
   * Allows a browser to hold a key; anyone who opens the page can read it. Without a key, a page needs no permission:
   * set `baseURL` to a server of your own.
   */
  dangerouslyAllowBrowser?: boolean | undefined
}

/**
 * Where the model is and how to talk to it.
 *
 * @example openaiChat({ model: 'llama3.3', baseURL: 'http://localhost:11434/v1', apiKey: 'none' })
 */
export interface OpenAIChatOptions extends OpenAIOptions {
  /** The field that carries `sampling.maxTokens`. Default: `max_completion_tokens` at OpenAI and Azure, else `max_tokens`. */
  maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined
  /**
   * Whether assistant messages are sent back with their reasoning, and in which form: as the field `reasoning_content` or
   * `reasoning`, or as a `thinking` part of the content. True: in the provider's own form, else as `reasoning_content`
   * with tool calls. Default: where the provider refuses the request without it (DeepSeek, Moonshot) or reads it (Z.ai and
   * GPUStack: `reasoning_content`; Ollama: `reasoning`; Mistral: `thinking`).
   */
  echoReasoning?: boolean | ReasoningForm | undefined
}

const ownClientPhrase = 'The client has its own address and key'

/** @throws ConfigError for options that no request could be made with. */
export function checkChatOptions(options: OpenAIChatOptions): void {
  const invalid = createOptionError('openaiChat')
  checkSharedOptions(options, invalid)
  const { client, echoReasoning } = options
  if (client !== undefined && typeof (client as Partial<OpenAI>).chat?.completions?.create !== 'function')
    throw invalid('client', clientPhrase)
  const echoes: unknown[] = [undefined, true, false, ...reasoningForms]
  if (!echoes.includes(echoReasoning)) {
    throw invalid('echoReasoning', `must be true, false or one of ${reasoningForms.join(', ')}.`)
  }
}

export type OptionErrorFactory = (option: string, what: string) => ConfigError

/** The error for an option of this provider. */
export function createOptionError(provider: string): OptionErrorFactory {
  return (option, what) => new ConfigError('invalid_option', `${provider}: ${option} ${what}`, option)
}

export const clientPhrase = 'must be an OpenAI client, such as new OpenAI() or new AzureOpenAI().'

/** What is asked of the options that all have in common. */
export function checkSharedOptions(
  options: OpenAIOptions | null | undefined,
  invalid: OptionErrorFactory,
): void {
  const { model, client, baseURL, apiKey, media, timeoutMs, limiter, dispatcher }: Partial<OpenAIOptions> =
    options ?? {}
  if (typeof model !== 'string' || model.trim() === '') {
    throw invalid('model', "must be the provider's name of a model, such as 'gpt-5-mini'.")
  }
  if (client !== undefined && (baseURL !== undefined || apiKey !== undefined)) {
    throw invalid('client', `cannot stand beside baseURL or apiKey. ${ownClientPhrase}: set them there.`)
  }
  if (baseURL !== undefined && !isHttpUrl(baseURL)) {
    throw invalid('baseURL', "must be an http(s) URL, such as 'http://localhost:11434/v1'.")
  }
  if (baseURL !== undefined && hasUserInfo(baseURL)) throw invalid('baseURL', noUserPhrase)
  if (dispatcher !== undefined) checkDispatcher(options ?? {}, invalid)
  if (!isLimiter(limiter)) throw invalid('limiter', limiterPhrase)
  if (!isMediaList(media)) throw invalid('media', "must be a list of 'image', 'audio' and 'file'.")
  if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    throw invalid('timeoutMs', 'must be a whole number of milliseconds, from 1 to 2147483647.')
  }
}

function checkDispatcher(
  { dispatcher, client, fetch }: Partial<OpenAIOptions>,
  invalid: OptionErrorFactory,
): void {
  if (typeof (dispatcher as Partial<RequestDispatcher> | null)?.request !== 'function') {
    throw invalid('dispatcher', "must be a dispatcher of undici, such as new Pool('https://api.openai.com').")
  }
  if (client !== undefined || fetch !== undefined) {
    throw invalid('dispatcher', 'cannot stand beside client or fetch: these make the requests themselves.')
  }
}

export function isHttpUrl(url: unknown): url is string {
  return typeof url === 'string' && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
}

/** Whether it has a user or a password in it, with which no request can be made. */
export function hasUserInfo(url: string): boolean {
  const { username, password } = new URL(url)
  return username !== '' || password !== ''
}

export const noUserPhrase = 'must have no user and password in it: use apiKey, or headers.'

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

/** Where the model is and how to talk to it. */
export interface OpenAIResponsesOptions extends OpenAIOptions {
  /**
   * Tools that the provider itself runs, as its API describes them: `{ type: 'web_search' }`, `code_interpreter`,
   * `file_search`, `mcp`, … They stand behind the agent's own. Tools that want their results from you are none.
   */
  hostedTools?: readonly JsonObject[] | undefined
  /** Whether, and how long, the model sums up for people what it thinks. Default: it does not. */
  reasoningSummary?: 'auto' | 'concise' | 'detailed' | undefined
  /**
   * Whether reasoning is asked for in its encrypted form, so that it can go back. Default: yes, but for OpenAI's models that
   * do not reason (gpt-4o, gpt-4.1, …), which refuse it.
   */
  encryptedReasoning?: boolean | undefined
}

const summaryValues: unknown[] = [undefined, 'auto', 'concise', 'detailed']

/** @throws ConfigError for options that no request could be made with. */
export function checkResponsesOptions(options: OpenAIResponsesOptions): void {
  const invalid = createOptionError('openaiResponses')
  checkSharedOptions(options, invalid)
  const { client, hostedTools, reasoningSummary, encryptedReasoning } = options
  if (client !== undefined && typeof (client as Partial<OpenAI>).responses?.create !== 'function')
    throw invalid('client', `${clientPhrase.slice(0, -1)}, of a version that has responses.create.`)
  if (hostedTools !== undefined && !(Array.isArray(hostedTools) && hostedTools.every(isHostedTool)))
    throw invalid('hostedTools', "must be a list of tools with a type, such as [{ type: 'web_search' }].")
  const own = hostedTools?.find(({ type }) => type === 'function')
  if (own !== undefined)
    throw invalid('hostedTools', 'must not have functions: give these to the agent, as tools.')
  if (!summaryValues.includes(reasoningSummary))
    throw invalid('reasoningSummary', 'must be auto, concise or detailed.')
  if (encryptedReasoning !== undefined && typeof encryptedReasoning !== 'boolean')
    throw invalid('encryptedReasoning', 'must be true or false.')
}

function isHostedTool(tool: unknown): boolean {
  return typeof (tool as { type?: unknown } | null)?.type === 'string'
}

export const officialURL = 'https://api.openai.com/v1'

/**
 * Refuses what no request could be made with, before one is made: a key that is missing, or one that a page would show
 * to everybody. A client of the user's own answers for itself.
 * @throws ConfigError `missing_api_key`, `browser_key`
 */
export function checkCredentials(options: OpenAIOptions): void {
  if (options.client !== undefined) return
  if (isKeyMissing(options)) {
    throw new ConfigError(
      'missing_api_key',
      'There is no API key. Set OPENAI_API_KEY, or the option apiKey; for a server that needs none, set baseURL.',
      'apiKey',
    )
  }
  if (isBrowser() && options.dangerouslyAllowBrowser !== true && hasSecret(options)) {
    throw new ConfigError(
      'browser_key',
      'The model was given a key in a browser, where everyone who opens the page can read it. Leave it out and set ' +
        'baseURL to a server of your own that adds it, or accept the risk with dangerouslyAllowBrowser: true.',
      'dangerouslyAllowBrowser',
    )
  }
}

/** Whether a page may hold the client: it says so, or there is nothing to be stolen. */
export function isAllowedInBrowser(options: OpenAIOptions): boolean {
  return options.dangerouslyAllowBrowser ?? !hasSecret(options)
}

/** The base URL of a client that is not built yet: the option, the environment, OpenAI's. */
export function getBaseURL({ client, baseURL }: OpenAIOptions): string {
  if (client !== undefined) return isHttpUrl(client.baseURL) ? client.baseURL : officialURL
  if (baseURL !== undefined) return baseURL
  const fromEnvironment = getEnvironment().OPENAI_BASE_URL?.trim()
  if (!fromEnvironment) return officialURL
  const refuse = (what: string): never => {
    throw new ConfigError('invalid_option', `OPENAI_BASE_URL ${what}`, 'OPENAI_BASE_URL')
  }
  if (!isHttpUrl(fromEnvironment)) return refuse('must be an http(s) URL.')
  return hasUserInfo(fromEnvironment) ? refuse(noUserPhrase) : fromEnvironment
}

/** The server behind the base URL; undefined for a client that does not say where it asks. */
export function findEndpoint(options: OpenAIOptions): ModelProvider['endpoint'] {
  const { client } = options
  if (client !== undefined && !isHttpUrl(client.baseURL)) return undefined
  const { hostname, port, protocol } = new URL(getBaseURL(options))
  const usual = protocol === 'http:' ? 80 : 443
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? usual : Number(port) }
}

/** OpenAI wants a key; a server of one's own may need none. */
function isKeyMissing(options: OpenAIOptions): boolean {
  const { OPENAI_API_KEY, OPENAI_ADMIN_KEY } = getEnvironment()
  const isThere = Boolean(options.apiKey || OPENAI_API_KEY?.trim() || OPENAI_ADMIN_KEY?.trim())
  return !isThere && new URL(getBaseURL(options)).host === new URL(officialURL).host
}

function hasSecret({ apiKey, headers = {} }: OpenAIOptions): boolean {
  return Boolean(apiKey) || Object.keys(headers).some((name) => /auth|key|token|secret|cookie/i.test(name))
}

/** As the `openai` client sees it. */
function isBrowser(): boolean {
  const scope: { window?: { document?: unknown }; navigator?: unknown } = globalThis
  return scope.window?.document !== undefined && scope.navigator !== undefined
}

/** A variable without blanks around it; undefined where it is empty, or there is no environment. */
export function getEnvironmentVariable(name: string): string | undefined {
  return getEnvironment()[name]?.trim() || undefined
}

/** The environment where there is one; browsers and workers have none. */
function getEnvironment(): Record<string, string | undefined> {
  const scope: { process?: { env?: Record<string, string | undefined> } } = globalThis
  return scope.process?.env ?? {}
}
