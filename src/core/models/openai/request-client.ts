import { parseJsonOr } from '../../base/json.js'
import { loadOnce } from '../../base/platform.js'
import {
  getBaseURL,
  getEnvironmentVariable,
  type OpenAIOptions,
  checkCredentials,
  keyVariables,
  listCustomHeaders,
} from './openai-options.js'
import { type OutgoingRequest, createOutgoingRequest } from './node-transport.js'
import type { ConfigError } from '../../base/errors.js'
import { ModelError } from '../provider.js'

/** Creates the addresses and headers of requests. */
interface RequestClient {
  /** The key of the last request, or null before the first one. */
  readonly apiKey: string | null
  /** Rejects with a ModelError with the code from `checkCredentials`. */
  getOutgoing(): Promise<OutgoingRequest>
}

/** The key that is sent to servers that need none. */
const placeholderKey = 'no-key-needed'

const defaultTimeoutMs = 600_000

/** The URL and headers equal those of the `openai` client, except for headers that describe it and its platform. */
export function createRequestClient(options: OpenAIOptions, path: string): RequestClient {
  const { apiKey } = options
  let key: string | null = null
  const build = async (): Promise<OutgoingRequest> => {
    refuseMissingCredentials(options)
    const known = typeof apiKey === 'function' ? await askForKey(apiKey) : apiKey
    key = known || (keyVariables.map(getEnvironmentVariable).find(Boolean) ?? placeholderKey)
    const url = createRequestURL(options, path)
    return createOutgoingRequest(url, createHeaders(options, key), options.timeoutMs ?? defaultTimeoutMs)
  }
  return {
    get apiKey() {
      return key
    },
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

function refuseMissingCredentials(options: OpenAIOptions): void {
  try {
    checkCredentials(options)
  } catch (error) {
    const { code, message } = error as ConfigError
    throw new ModelError({ kind: 'fatal', code, message })
  }
}
