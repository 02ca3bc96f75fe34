import type { OpenAI } from 'openai'
import { ConfigError } from '../../base/errors.js'
import type { MediaKind } from '../../../../machines/agent/refusals.js'
import { isMediaList } from '../media.js'
import { isLimiter, limiterPhrase, type RequestLimiter } from '../request-limiter.js'
import type { RequestDispatcher } from './post-by-dispatcher.js'
import { type ReasoningForm, reasoningForms } from './echo-reasoning.js'

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
