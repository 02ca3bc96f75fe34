import type {
  JSONRPCMessage,
  RequestId,
  StreamableHTTPClientTransport as HttpTransport,
} from '@modelcontextprotocol/client'
import { maxTimerMs } from '../../core/base/clock.js'
import { describeError } from '../../core/base/errors.js'
import { readProperty } from '../../core/base/json.js'
import { capResponse, isEventStream } from './cap-response.js'
import { limitTime } from '../../core/base/abort.js'
import { findHttpStatus, loadClientSdk, type ServerWire, type WireEvents } from './server-wire.js'
import type { McpAddress } from './mcp-options.js'
import { quoteText } from './plain-text.js'
import { createSignInFetch } from './sign-in/sign-in-fetch.js'
import type { SignIn } from './sign-in/sign-in.js'
import { watchAnswers } from './task-wire.js'

/** How the SDK resumes a broken stream. */
const reconnectionOptions = {
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 5_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 2,
}

const shutDownMs = 1_000

/**
 * Connects to a server over HTTP. Unlike the SDK, this connection reports streams that end before their answer, and
 * limits the size of bodies.
 */
export async function createHttpWire(
  { url, headers, maxMessageBytes }: McpAddress & { maxMessageBytes: number },
  { onLost, onComplaint }: WireEvents,
  signIn?: SignIn,
): Promise<ServerWire> {
  const { StreamableHTTPClientTransport } = await loadClientSdk()
  const address = new URL(url)
  /** Pending requests. The value is true if the request's stream can be resumed. */
  const open = new Map<RequestId, boolean>()
  let failedStreams = 0

  const onExceeded = (): void => {
    onLost({
      reason: `sent a message larger than ${maxMessageBytes} bytes and was cut off`,
      transient: false,
    })
  }

  const answer = (response: Response, onEnd: () => void): Response =>
    capResponse(response, maxMessageBytes, { onExceeded, onEnd })

  const fetchForSignIn = signIn?.fetch ?? createSignInFetch(address)

  const ask = async (to: string | URL, requestInit: RequestInit = {}): Promise<Response> => {
    if (!isForServer(address, to, requestInit)) return fetchForSignIn(to, requestInit)
    const init = { ...requestInit, headers: addHeaders(requestInit.headers, headers) }
    if (init.method === 'GET') {
      const response = await fetch(to, init).catch((error: unknown) => {
        if (init.signal?.aborted !== true) countFailure()
        throw error
      })
      if (response.ok) failedStreams = 0
      // A server may answer 405, which means that it has no such stream.
      else if (response.status !== 405) countFailure()
      return answer(response, () => undefined)
    }
    const id = findRequestId(init.body)
    const response = await fetch(to, init).catch((error: unknown) => {
      if (init.signal?.aborted !== true) {
        onLost({ reason: `cannot be reached (${describeError(error)})`, transient: true })
      }
      throw error
    })
    return answer(response, () => {
      if (id !== undefined && isEventStream(response)) setTimeout(closeUnanswered, 0, id)
    })
  }

  const countFailure = (): void => {
    failedStreams += 1
    // If nothing waits for a stream, the next request reports the failure.
    const isAwaited = [...open.values()].includes(true)
    if (isAwaited && failedStreams >= reconnectionOptions.maxRetries) {
      onLost({ reason: 'can no longer be reached', transient: true })
    }
  }

  /** Closes a stream that ended without its answer, because the answer will not arrive. */
  const closeUnanswered = (id: RequestId): void => {
    if (open.get(id) !== false) return
    const error = {
      code: brokenOffCode,
      message: 'The connection was closed before the answer was complete.',
    }
    transport.onmessage?.({ jsonrpc: '2.0', id, error })
  }

  class WatchedTransport extends StreamableHTTPClientTransport {
    override async send(
      message: JSONRPCMessage,
      options?: Parameters<HttpTransport['send']>[1],
    ): Promise<void> {
      if (!('method' in message)) return super.send(message, options)
      if (!('id' in message)) {
        if (message.method === 'notifications/cancelled') open.delete(message.params?.requestId as RequestId)
        return super.send(message, options)
      }
      const { id } = message
      open.set(id, false)
      const onresumptiontoken = (): void => {
        if (open.has(id)) open.set(id, true)
      }
      try {
        await super.send(message, { ...options, onresumptiontoken })
      } catch (error) {
        open.delete(id)
        throw error
      }
    }
  }

  const transport = new WatchedTransport(address, {
    ...(signIn && { authProvider: signIn.provider }),
    fetch: ask,
    reconnectionOptions,
  })
  watchAnswers(transport, (id) => open.delete(id))
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has this only
  transport.onerror = onComplaint
  const place = `${address.origin}${address.pathname}`
  return {
    transport,
    place,
    hasHeaders: true,
    probeTimeoutMs: maxTimerMs,
    getLastOutput: () => '',
    explain: explainHttpError,
    shutDown: () => limitTime({ ms: shutDownMs }, transport.terminateSession()).catch(() => undefined),
    kill: () => undefined,
  }
}

/**
 * Whether a request belongs to the protocol instead of the sign-in. The user's headers are secrets for this server
 * only.
 */
function isForServer(address: URL, to: string | URL, { headers, body }: RequestInit): boolean {
  const { origin, href } = new URL(to)
  if (origin !== address.origin) return false
  if (href === address.href) return true
  const isStream = new Headers(headers).get('accept')?.includes('text/event-stream') === true
  return isStream || (typeof body === 'string' && readProperty(JSON.parse(body), 'jsonrpc') !== undefined)
}

/** Adds headers. The SDK's headers take precedence. */
export function addHeaders(
  headersInit: RequestInit['headers'],
  more: Readonly<Record<string, string>> = {},
): Headers {
  const headers = new Headers(headersInit)
  for (const [name, value] of Object.entries(more)) if (!headers.has(name)) headers.set(name, value)
  return headers
}

/** JSON-RPC's code for an unspecified server error. */
const brokenOffCode = -32_000

function findRequestId(body: unknown): RequestId | undefined {
  if (typeof body !== 'string') return undefined
  const { id, method } = JSON.parse(body) as { id?: RequestId; method?: string }
  return method === undefined ? undefined : id
}

function explainHttpError(error: unknown): string | undefined {
  const status = findHttpStatus(error)
  if (status === 401 || status === 403) {
    return `It returned ${status}. Pass credentials with headers: { Authorization: 'Bearer …' }, or with auth.`
  }
  if (status === 404 || status === 405) {
    return `It returned ${status}. There is no MCP endpoint at this path.`
  }
  const text = readProperty(readProperty(error, 'data'), 'text')
  const words = typeof text === 'string' && text.trim() !== '' ? `: ${quoteText(text)}` : ''
  return status === undefined ? undefined : `It returned ${status}${words}.`
}

/** Connects to a server that uses the first protocol revision, which sends all messages on one event stream. */
export async function createSseWire(
  { url, headers, maxMessageBytes }: McpAddress & { maxMessageBytes: number },
  { onLost, onComplaint }: WireEvents,
  signIn?: SignIn,
): Promise<ServerWire> {
  const { SSEClientTransport } = await loadClientSdk()
  const address = new URL(url)

  const fetchForSignIn = signIn?.fetch ?? createSignInFetch(address)

  const ask = async (to: string | URL, requestInit: RequestInit = {}): Promise<Response> => {
    if (!isForServer(address, to, requestInit)) return fetchForSignIn(to, requestInit)
    const init = { ...requestInit, headers: addHeaders(requestInit.headers, headers) }
    const response = await fetch(to, init).catch((error: unknown) => {
      onLost({ reason: `cannot be reached (${describeError(error)})`, transient: true })
      throw error
    })
    return capResponse(response, maxMessageBytes, {
      onExceeded: () => {
        const reason = `sent a message larger than ${maxMessageBytes} bytes and was cut off`
        onLost({ reason, transient: false })
      },
      // The stream is the session, so a new stream would start a new session.
      onEnd: () => {
        if (response.ok && init.method !== 'POST')
          onLost({ reason: 'closed the connection', transient: true })
      },
    })
  }

  const transport = new SSEClientTransport(address, {
    ...(signIn && { authProvider: signIn.provider }),
    fetch: ask,
  })
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has this only
  transport.onerror = onComplaint
  return {
    transport,
    place: `${address.origin}${address.pathname}`,
    hasHeaders: false,
    probeTimeoutMs: maxTimerMs,
    getLastOutput: () => '',
    explain: explainHttpError,
    shutDown: () => Promise.resolve(),
    kill: () => undefined,
  }
}
