import type * as OpenAIPackage from 'openai'
import { parseJsonOr } from '../../base/json.js'
import { valueOr } from '../../base/maybe-promise.js'
import { loadOnce } from '../../base/platform.js'
import {
  getBaseURL,
  getEnvironmentVariable,
  type OpenAIOptions,
  checkCredentials,
  isAllowedInBrowser,
  listCustomHeaders,
} from './openai-options.js'
import { type OutgoingRequest, createOutgoingRequest } from './node-transport.js'
import type { ConfigError } from '../../base/errors.js'
import { ModelError } from '../provider.js'

/** The key that is sent to servers that need none. */
const placeholderKey = 'no-key-needed'

const defaultTimeoutMs = 600_000

/**
 * Whether the `openai` client, whose import takes a third of the first run's time, is not needed. It is needed for
 * values that only its own options accept (headers as a list or as `Headers`, non-string values, `null`), to log
 * requests, and with only an admin key.
 */
export function isPlainClientEnough(options: OpenAIOptions): boolean {
  const { client, fetch, apiKey, organization, project, headers, query } = options
  return (
    client === undefined &&
    fetch === undefined &&
    organization !== null &&
    project !== null &&
    isPlainRecord(headers, (value) => value === null || typeof value === 'string') &&
    isPlainRecord(query, (value) => typeof value === 'string') &&
    !['info', 'debug'].includes(getEnvironmentVariable('OPENAI_LOG') ?? '') &&
    Boolean(apiKey || getEnvironmentVariable('OPENAI_API_KEY') || !getEnvironmentVariable('OPENAI_ADMIN_KEY'))
  )
}

function isPlainRecord(input: unknown, fits: (value: unknown) => boolean): boolean {
  if (input === undefined) return true
  if (typeof input !== 'object' || input === null || Symbol.iterator in input) return false
  return Object.values(input).every((value) => value === undefined || fits(value))
}

/** Creates the URL and headers of the `openai` client, except for headers that describe the client and its platform. */
export function createPlainClient(options: OpenAIOptions, path: string) {
  const { apiKey } = options
  let key: string | null = null
  const build = async (): Promise<OutgoingRequest> => {
    refuseMissingCredentials(options)
    key =
      typeof apiKey === 'function'
        ? await askForKey(apiKey)
        : apiKey || (getEnvironmentVariable('OPENAI_API_KEY') ?? placeholderKey)
    const url = createRequestURL(options, path)
    return createOutgoingRequest(url, createHeaders(options, key), options.timeoutMs ?? defaultTimeoutMs)
  }
  return {
    /** The key of the last request, or null before the first one. */
    get apiKey(): string | null {
      return key
    },
    /** Rejects with a ModelError with the code from `checkCredentials`. */
    getOutgoing: typeof apiKey === 'function' ? build : loadOnce(build),
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
  const { headers: own = {} } = options
  const { organization = getEnvironmentVariable('OPENAI_ORG_ID') } = options
  const { project = getEnvironmentVariable('OPENAI_PROJECT_ID') } = options
  const headers = new Headers({ accept: 'application/json', 'user-agent': 'Statewright' })
  for (const [name, value] of [
    ['openai-organization', organization],
    ['openai-project', project],
    ['authorization', `Bearer ${key}`],
    ...listCustomHeaders(),
    ...(Symbol.iterator in own ? (own as Iterable<[string, string]>) : Object.entries(own)),
    ['content-type', 'application/json'],
  ] as [string, string | null | undefined][]) {
    if (value === null) headers.delete(name)
    else if (value !== undefined) headers.set(name, value)
  }
  return headers
}

/** Has the fields of the client's errors and the whole body. The client keeps only the body's `error`. */
export function createStatusError(status: number, text: string, headers: Headers): Error {
  type Words = Partial<Record<'message' | 'code' | 'param' | 'type', unknown>>
  const body = parseJsonOr(text, undefined) as { error?: Words } | null | undefined
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

/**
 * Loads the client on first use, so that importing Statewright stays cheap and bundlers can split it.
 *
 * @throws ModelError with the code from `checkCredentials`, or `missing_package`
 */
export async function loadClient(options: OpenAIOptions): Promise<OpenAIPackage.OpenAI> {
  refuseMissingCredentials(options)
  // A literal import, so that bundlers include the package. Platforms report a missing package in different ways.
  const { OpenAI: Client } = await import('openai').catch((cause: unknown) => {
    const message =
      'Requests need the package openai in runtimes other than Node, with a custom fetch, or with ' +
      'OPENAI_LOG. Run: npm install openai'
    throw new ModelError({ kind: 'fatal', code: 'missing_package', message }, { cause })
  })

  // The User-Agent contains the class name.
  class OpenAI extends Client {
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

  const build = (apiKey: OpenAIOptions['apiKey']): OpenAIPackage.OpenAI =>
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
  // Throws if the environment has no key either. If this was another error, the next call throws it again.
  return valueOr(() => build(undefined), null) ?? build(placeholderKey)
}

function refuseMissingCredentials(options: OpenAIOptions): void {
  try {
    checkCredentials(options)
  } catch (error) {
    const { code, message } = error as ConfigError
    throw new ModelError({ kind: 'fatal', code, message })
  }
}
