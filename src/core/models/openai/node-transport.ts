import type * as Http from 'node:http'
import type * as Https from 'node:https'
import type { pipeline, Readable } from 'node:stream'
import type * as Zlib from 'node:zlib'
import type { ClientRequest, IncomingHttpHeaders, RequestOptions } from 'node:http'
import type { CallAbort } from '../../base/abort.js'

/** Node's own modules, with all instrumentation and mocks. */
export interface NodeHttp {
  readonly http: typeof Http
  readonly https: typeof Https
  /** Loaded when an answer is compressed. */
  zlib(): typeof Zlib
  pipeline(): typeof pipeline
}

/** What tells one JavaScript platform from another. */
interface Platform {
  process?: Partial<Pick<NodeJS.Process, 'release' | 'versions' | 'getBuiltinModule'>> & { type?: string }
  document?: unknown
  Deno?: unknown
  EdgeRuntime?: unknown
  navigator?: { userAgent?: string }
  fetch?: unknown
}

let nodeModules: NodeHttp | null | undefined

/**
 * Node's HTTP modules, for requests that need not go through `fetch`; null on every other platform, on a Node that cannot
 * load them at run time, and where the app has put a `fetch` or a dispatcher of its own in the place of Node's, which
 * they want to be used. Asked for each request: a test or a tracer may do so later. No import names the modules, so
 * that the code bundles for browsers.
 */
export function findNodeHttp(): NodeHttp | null {
  const modules = getNodeHttp()
  return modules !== null && usesNodeFetch() ? modules : null
}

/** Node's HTTP modules, whichever `fetch` the app uses; null on every other platform. */
export function getNodeHttp(): NodeHttp | null {
  if (nodeModules === undefined) nodeModules = loadNodeHttp()
  return nodeModules
}

function loadNodeHttp(): NodeHttp | null {
  const { process, document, Deno, EdgeRuntime, navigator }: Platform = globalThis
  const isNode = process?.release?.name === 'node' && process.versions?.bun === undefined
  const isOther = [document, Deno, EdgeRuntime].some((mark) => mark !== undefined)
  if (!isNode || isOther || process.type === 'renderer') return null
  if (navigator?.userAgent === 'Cloudflare-Workers') return null
  // There since Node 20.16; older ones use fetch.
  const load = process.getBuiltinModule
  if (typeof load !== 'function') return null
  return {
    http: load('node:http'),
    https: load('node:https'),
    zlib: () => load('node:zlib'),
    pipeline: () => load('node:stream').pipeline,
  }
}

/** Node's `fetch` is a few lines around the undici that it has built in. */
const nodeFetchSource = /undici/

let knownFetch: unknown
let knownDispatcher: unknown
let isNodeFetch = false

/** Looks again when either has changed. */
function usesNodeFetch(): boolean {
  const { fetch }: Platform = globalThis
  const dispatcher: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'))
  if (!isNodeFetch || fetch !== knownFetch || dispatcher !== knownDispatcher) {
    knownFetch = fetch
    knownDispatcher = dispatcher
    isNodeFetch =
      typeof fetch === 'function' &&
      nodeFetchSource.test(Function.prototype.toString.call(fetch)) &&
      isPlainAgent(dispatcher)
  }
  return isNodeFetch
}

/** Whether it is the agent that Node makes when fetch is first used: one without any setting of its own. */
function isPlainAgent(dispatcher: unknown): boolean {
  if (dispatcher === undefined) return true
  if (typeof dispatcher !== 'object' || dispatcher === null) return false
  const prototype: unknown = Object.getPrototypeOf(dispatcher)
  const isAgent = (prototype as { constructor?: { name?: unknown } } | null)?.constructor?.name === 'Agent'
  // A composed agent is the same object with another `dispatch`.
  const isComposed = Reflect.get(dispatcher, 'dispatch') !== Reflect.get(Object(prototype), 'dispatch')
  const key = Object.getOwnPropertySymbols(dispatcher).find((symbol) => symbol.description === 'options')
  if (!isAgent || isComposed || key === undefined) return false
  const settings: unknown[] = Object.values(Object(Reflect.get(dispatcher, key)))
  return settings.every((value) => value === undefined || value === Infinity)
}

/** A request as the client would make it, but for its body. */
export interface OutgoingRequest {
  readonly url: string
  /** Scheme, host and port of it. */
  readonly origin: string
  /** Milliseconds until the headers of the answer have to be there. */
  readonly timeoutMs: number
  readonly isSecure: boolean
  readonly options: Omit<RequestOptions, 'headers'> & { headers: Record<string, string>; path: string }
}

/** An answer whose headers are there. */
export interface IncomingAnswer {
  readonly statusCode: number
  readonly headers: IncomingHttpHeaders
  readonly body: Readable
}

export function createOutgoingRequest(url: string, headers: Headers, timeoutMs: number): OutgoingRequest {
  const { protocol, origin, hostname, port, pathname, search } = new URL(url)
  return {
    url,
    origin,
    timeoutMs,
    isSecure: protocol === 'https:',
    options: {
      method: 'POST',
      // The brackets of an IPv6 address are part of the URL only.
      hostname: hostname.replace(/^\[|\]$/g, ''),
      ...(port !== '' && { port }),
      path: `${pathname}${search}`,
      headers: Object.fromEntries(headers),
    },
  }
}

/** Requests that may go out again because the connection that was kept for them had been closed meanwhile. */
const maxResends = 3

/**
 * Posts the body through Node's global agents, which keep connections and know the proxies and certificates of the
 * process. Resolves with the headers, of redirects too; nothing bounds the body: that is up to the reader. Aborting
 * closes the socket at any time. Rejects like the client does, with what happened as the cause.
 *
 * On `node:http`, not on undici, which was measured as well: 65 µs a request against 55 (the client on fetch: 600), but a
 * dependency more, and one that mocks, traces and proxies of `node:http` do not see. Option `dispatcher` is for those who want it.
 */
export function postRequest(
  { http, https }: NodeHttp,
  { isSecure, options, timeoutMs }: OutgoingRequest,
  body: Uint8Array,
  abort: CallAbort,
): Promise<IncomingAnswer> {
  return new Promise((resolve, reject) => {
    let request: ClientRequest | undefined
    let settled = false
    let resent = 0
    const settle = (): boolean => {
      if (settled) return false
      settled = true
      clearTimeout(timer)
      return true
    }
    const timer = setTimeout(() => {
      if (settle()) reject(new Error('Request timed out.'))
      request?.destroy()
    }, timeoutMs)

    function send(): void {
      // Through the module, for those who have wrapped it.
      const made = (isSecure ? https : http).request({
        ...options,
        headers: { ...options.headers, 'content-length': String(body.length) },
      })
      request = made
      made.on('response', (response) => {
        const { statusCode = 0, headers } = response
        if (settle()) resolve({ statusCode, headers, body: response })
      })
      made.on('error', (error) => {
        if (settled) return
        if (made.reusedSocket && isConnectionReset(error) && !abort.aborted && resent++ < maxResends) send()
        else fail(error)
      })
      made.end(body)
    }
    function fail(error: unknown): void {
      if (settle()) reject(new Error('Connection error.', { cause: error }))
    }

    abort.onAbort = () => {
      fail(abort.reason)
      request?.destroy()
    }
    try {
      if (abort.aborted) fail(abort.reason)
      else send()
    } catch (error) {
      // A header or an address that no request can have.
      fail(error)
    }
  })
}

function isConnectionReset(error: Error): boolean {
  const { code } = error as { code?: unknown }
  return code === 'ECONNRESET' || code === 'EPIPE'
}

/** What is used of a `Dispatcher` of the package `undici`: `new Agent()`, `new Pool(origin)`, `new ProxyAgent(url)`. */
export interface RequestDispatcher {
  request(options: {
    origin: string
    path: string
    method: 'POST'
    headers: Record<string, string>
    body: Uint8Array
    signal: AbortSignal
    headersTimeout: number
    bodyTimeout: number
  }): Promise<{ statusCode: number; headers: IncomingHttpHeaders; body: Readable }>
}

/** Posts the body through a dispatcher, as `postRequest` does through Node's agents. What failed is the cause of its error. */
export async function postByDispatcher(
  dispatcher: RequestDispatcher,
  { origin, options, timeoutMs }: OutgoingRequest,
  body: Uint8Array,
  abort: CallAbort,
): Promise<IncomingAnswer> {
  try {
    return await dispatcher.request({
      origin,
      path: options.path,
      method: 'POST',
      headers: options.headers,
      body,
      signal: abort.signal,
      headersTimeout: timeoutMs,
      // The reader of the body bounds its silence.
      bodyTimeout: 0,
    })
  } catch (error) {
    if (abort.aborted) throw abort.reason
    const isTimeout = (error as { code?: unknown } | null)?.code === 'UND_ERR_HEADERS_TIMEOUT'
    throw new Error(isTimeout ? 'Request timed out.' : 'Connection error.', { cause: error })
  }
}
