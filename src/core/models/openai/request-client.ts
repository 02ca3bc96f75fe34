import { parseJsonOr } from '../../base/json.js'
import {
  getBaseURL,
  getEnvironmentVariable,
  type OpenAIOptions,
  checkCredentials,
  isAllowedInBrowser,
} from './openai-options.js'
import { type OutgoingRequest, createOutgoingRequest } from './node-transport.js'
import type { OpenAI as OpenAIClient } from 'openai'
import type { ConfigError } from '../../base/errors.js'
import { ModelError } from '../provider.js'

/** What a transport of ours asks of a client: where requests go, with which headers, and what a status means. */
export interface RequestClient {
  /** The key of the last request; null before the first of a function's. */
  readonly apiKey: string | null
  /** Address and headers of the next request. Kept for all of them, unless the key comes from a function. */
  getOutgoing(): Promise<OutgoingRequest>
  /** The error for a status, by the text of its body. */
  statusError(status: number, text: string, headers: Headers): Error
}

/** What a server is sent that needs no key. */
const placeholderKey = 'no-key-needed'

/** As the `openai` client has it: ten minutes. */
const defaultTimeoutMs = 600_000

/** Variables that ask for what only the `openai` client does: it logs, and reads headers and other keys. */
const clientVariables = ['OPENAI_LOG', 'OPENAI_CUSTOM_HEADERS', 'OPENAI_ADMIN_KEY']

/**
 * Whether requests can be made without the `openai` client, which takes a third of the first run to load. It is loaded for
 * what its own options take and ours do not: headers as a list or as `Headers`, values that are no text, `null`.
 */
export function isPlainClientEnough(options: OpenAIOptions): boolean {
  const { client, fetch, organization, project, headers, query } = options
  return (
    client === undefined &&
    fetch === undefined &&
    organization !== null &&
    project !== null &&
    isPlainRecord(headers, (value) => value === null || typeof value === 'string') &&
    isPlainRecord(query, (value) => typeof value === 'string') &&
    clientVariables.every((name) => getEnvironmentVariable(name) === undefined)
  )
}

/** An object with such values, or nothing. A value may be undefined: it counts as left out. */
function isPlainRecord(given: unknown, fits: (value: unknown) => boolean): boolean {
  if (given === undefined) return true
  if (typeof given !== 'object' || given === null || Symbol.iterator in given) return false
  return Object.values(given).every((value) => value === undefined || fits(value))
}

/** The address and the headers of the `openai` client, but for those that describe the client and its platform. */
export function createPlainClient(options: OpenAIOptions, path: string): RequestClient {
  const { apiKey } = options
  let kept: Promise<OutgoingRequest> | undefined
  let key: string | null =
    typeof apiKey === 'function'
      ? null
      : apiKey || (getEnvironmentVariable('OPENAI_API_KEY') ?? placeholderKey)

  const build = async (): Promise<OutgoingRequest> => {
    if (typeof apiKey === 'function') key = await askForKey(apiKey)
    const url = createRequestURL(options, path)
    return createOutgoingRequest(url, createHeaders(options, key), options.timeoutMs ?? defaultTimeoutMs)
  }
  return {
    get apiKey() {
      return key
    },
    getOutgoing: () => {
      if (typeof apiKey === 'function') return build()
      kept ??= build().catch((error: unknown) => {
        kept = undefined
        throw error
      })
      return kept
    },
    statusError: createStatusError,
  }
}

async function askForKey(apiKey: () => Promise<string>): Promise<string> {
  let key: unknown
  try {
    key = await apiKey()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`Failed to get token from 'apiKey' function: ${reason}`, { cause: error })
  }
  if (typeof key === 'string' && key !== '') return key
  throw new Error(`Expected 'apiKey' function argument to return a string but it returned ${String(key)}`)
}

function createRequestURL(options: OpenAIOptions, path: string): string {
  const baseURL = getBaseURL(options)
  const url = new URL(baseURL.endsWith('/') ? baseURL + path.replace(/^\//, '') : baseURL + path)
  const query = { ...Object.fromEntries(url.searchParams), ...options.query }
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined)
  if (pairs.length > 0) url.search = pairs.map((pair) => pair.map(toQueryPart).join('=')).join('&')
  return url.toString()
}

/** RFC 3986: only letters, digits and `-._~` stay. */
function toQueryPart(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** `Headers` refuse values that no request can have, and trim the others. */
function createHeaders(options: OpenAIOptions, key: string | null): Headers {
  const headers = new Headers({ accept: 'application/json', 'user-agent': 'Statewright' })
  const set = (name: string, value: string | null | undefined): void => {
    if (value === null) headers.delete(name)
    else if (value !== undefined) headers.set(name, value)
  }
  set('openai-organization', options.organization ?? getEnvironmentVariable('OPENAI_ORG_ID'))
  set('openai-project', options.project ?? getEnvironmentVariable('OPENAI_PROJECT_ID'))
  set('authorization', `Bearer ${key}`)
  for (const [name, value] of Object.entries(options.headers ?? {})) set(name, value)
  set('content-type', 'application/json')
  return headers
}

/** The fields of the `openai` client's errors, with the whole body: the client drops what is not under `error`. */
function createStatusError(status: number, text: string, headers: Headers): Error {
  const body = parseJsonOr(text, undefined) as { error?: ErrorBody } | null | undefined
  const error = body?.error
  const said = error?.message || error || (body === undefined ? text : undefined)
  const words = typeof said === 'string' ? said : said === undefined ? '' : JSON.stringify(said)
  return Object.assign(new Error(`${status} ${words || 'status code (no body)'}`), {
    status,
    headers,
    body: body ?? text,
    error,
    code: error?.code,
    param: error?.param,
    type: error?.type,
    requestID: headers.get('x-request-id'),
  })
}

interface ErrorBody {
  message?: unknown
  code?: unknown
  param?: unknown
  type?: unknown
}

/** The client, with what a transport of ours asks of it. */
export interface OwnClient extends OpenAIClient, RequestClient {
  readonly apiKey: string | null
  /** Whether it was told (OPENAI_LOG) to log requests, which it can do only for those that it makes itself. */
  readonly logsRequests: boolean
}

/**
 * The client that makes the requests. The package is loaded here and not before, so that importing Statewright stays
 * cheap and bundlers can split it off.
 * @throws ModelError with the code of what `checkCredentials` refuses
 */
export async function loadClient(options: OpenAIOptions, path: string): Promise<OwnClient> {
  refuseMissingCredentials(options)
  const { OpenAI: Client } = await import('openai')

  // Under the same name, which is what the User-Agent says.
  class OpenAI extends Client implements OwnClient {
    #kept: Promise<OutgoingRequest> | undefined

    get logsRequests(): boolean {
      return this.logLevel === 'info' || this.logLevel === 'debug'
    }

    getOutgoing(): Promise<OutgoingRequest> {
      if (typeof options.apiKey === 'function') return this.#build()
      this.#kept ??= this.#build().catch((error: unknown) => {
        this.#kept = undefined
        throw error
      })
      return this.#kept
    }

    async #build(): Promise<OutgoingRequest> {
      const { timeoutMs } = options
      const request: Parameters<OpenAIClient['buildRequest']>[0] = {
        method: 'post',
        path,
        headers: { 'content-type': 'application/json' },
        ...(timeoutMs !== undefined && { timeout: timeoutMs }),
        // What the client's own method asks for.
        __security: { bearerAuth: true },
      }
      await this.prepareOptions(request)
      const { req, url, timeout } = await this.buildRequest(request)
      await this.prepareRequest(req, { url, options: request })
      return createOutgoingRequest(url, req.headers, timeout)
    }

    statusError(status: number, text: string, headers: Headers): Error {
      const body = parseJsonOr(text, undefined)
      return this.makeStatusError(status, body as object, body === undefined ? text : undefined, headers)
    }

    /** Keeps the whole body of an error: the client drops what is not under `error`. */
    protected override makeStatusError(
      status: number,
      body: object,
      text: string | undefined,
      headers: Headers,
    ) {
      return Object.assign(super.makeStatusError(status, body, text, headers), { body: body ?? text })
    }
  }

  const build = (apiKey: OpenAIOptions['apiKey']): OwnClient =>
    new OpenAI({
      apiKey,
      baseURL: options.baseURL,
      organization: options.organization,
      project: options.project,
      defaultHeaders: options.headers,
      defaultQuery: options.query,
      fetch: options.fetch,
      dangerouslyAllowBrowser: isAllowedInBrowser(options),
    })

  if (options.apiKey) return build(options.apiKey)
  try {
    return build(undefined)
  } catch {
    // No key in the environment either. If that is not what was wrong, the next line throws it again.
    return build(placeholderKey)
  }
}

/** @throws ModelError with the code of what `checkCredentials` refuses */
export function refuseMissingCredentials(options: OpenAIOptions): void {
  try {
    checkCredentials(options)
  } catch (error) {
    throw toCredentialsError(error as ConfigError)
  }
}

/** The same refusal for a request without an earlier check. */
function toCredentialsError({ code, message }: ConfigError): ModelError {
  return new ModelError({
    kind: 'fatal',
    code,
    message,
  })
}
