import { parseJsonOr } from '../../base/json.js'
import { loadOnce } from '../../base/platform.js'
import {
  getBaseURL,
  getEnvironmentVariable,
  type OpenAIOptions,
  checkCredentials,
  isAllowedInBrowser,
} from './openai-options.js'
import { type OutgoingRequest, createOutgoingRequest } from './node-transport.js'
import type * as OpenAIPackage from 'openai'
import type { ConfigError } from '../../base/errors.js'
import { ModelError } from '../provider.js'

export interface RequestClient {
  /** The key of the last request, or null before the first one if the key is a function. */
  readonly apiKey: string | null
  getOutgoing(): Promise<OutgoingRequest>
  statusError(status: number, text: string, headers: Headers): Error
}

/** The key that is sent to servers that need none. */
const placeholderKey = 'no-key-needed'

const defaultTimeoutMs = 600_000

const clientVariables = ['OPENAI_LOG', 'OPENAI_CUSTOM_HEADERS', 'OPENAI_ADMIN_KEY']

/**
 * Whether the `openai` client, whose import takes a third of the first run's time, is not needed. It is needed for
 * values that only its own options accept: headers as a list or as `Headers`, non-string values, `null`.
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

function isPlainRecord(input: unknown, fits: (value: unknown) => boolean): boolean {
  if (input === undefined) return true
  if (typeof input !== 'object' || input === null || Symbol.iterator in input) return false
  return Object.values(input).every((value) => value === undefined || fits(value))
}

/** Creates the URL and headers of the `openai` client, except for headers that describe the client and its platform. */
export function createPlainClient(options: OpenAIOptions, path: string): RequestClient {
  const { apiKey } = options
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
    getOutgoing: typeof apiKey === 'function' ? build : loadOnce(build),
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

/** Escapes all characters except letters, digits and `-._~` (RFC 3986). */
function toQueryPart(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** Creates the headers. `Headers` rejects invalid values and trims the others. */
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

/** Has the fields of the client's errors and the whole body. The client keeps only the body's `error`. */
function createStatusError(status: number, text: string, headers: Headers): Error {
  const body = parseJsonOr(text, undefined) as { error?: ErrorBody } | null | undefined
  const error = body?.error
  const message = error?.message || error || (body === undefined ? text : undefined)
  const words = typeof message === 'string' ? message : message === undefined ? '' : JSON.stringify(message)
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

export interface OwnClient extends OpenAIPackage.OpenAI, RequestClient {
  readonly apiKey: string | null
  /** Whether OPENAI_LOG enables logging, which works only for requests that the client sends. */
  readonly logsRequests: boolean
}

/** Loads the client on first use, so that importing Statewright stays cheap and bundlers can split it. */
export async function loadClient(options: OpenAIOptions, path: string): Promise<OwnClient> {
  refuseMissingCredentials(options)
  const { OpenAI: Client } = await importClient()

  // The User-Agent contains the class name.
  class OpenAI extends Client implements OwnClient {
    readonly #getStored = loadOnce(() => this.#build())

    get logsRequests(): boolean {
      return this.logLevel === 'info' || this.logLevel === 'debug'
    }

    getOutgoing(): Promise<OutgoingRequest> {
      return typeof options.apiKey === 'function' ? this.#build() : this.#getStored()
    }

    async #build(): Promise<OutgoingRequest> {
      const { timeoutMs } = options
      const request: Parameters<OpenAIPackage.OpenAI['buildRequest']>[0] = {
        method: 'post',
        path,
        headers: { 'content-type': 'application/json' },
        ...(timeoutMs !== undefined && { timeout: timeoutMs }),
        // Also set by the client's own methods.
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

    /** Keeps the whole error body. The client would keep only the body's `error`. */
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
    // The environment has no key either. If this was another error, the next call throws it again.
    return build(placeholderKey)
  }
}

/** The literal import lets bundlers include the package. Platforms report a missing package differently. */
async function importClient(): Promise<typeof OpenAIPackage> {
  try {
    return await import('openai')
  } catch (cause) {
    const message =
      'Requests need the package openai in runtimes other than Node, with a custom fetch, or with ' +
      'OPENAI_LOG. Run: npm install openai'
    throw new ModelError({ kind: 'fatal', code: 'missing_package', message }, { cause })
  }
}

export function refuseMissingCredentials(options: OpenAIOptions): void {
  try {
    checkCredentials(options)
  } catch (error) {
    throw toCredentialsError(error as ConfigError)
  }
}

function toCredentialsError({ code, message }: ConfigError): ModelError {
  return new ModelError({
    kind: 'fatal',
    code,
    message,
  })
}
