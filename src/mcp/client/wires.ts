import type {
  JSONRPCMessage,
  RequestId,
  StreamableHTTPClientTransport as HttpTransport,
  Transport,
} from '@modelcontextprotocol/client'
import { valueOr } from '../../core/base/maybe-promise.js'
import { maxTimerMs } from '../../core/base/clock.js'
import { describeError } from '../../core/base/errors.js'
import { readProperty, readText } from '../../core/base/json.js'
import { capResponse } from './cap-response.js'
import { limitTime } from '../../core/base/abort.js'
import {
  findHttpStatus,
  loadClientSdk,
  type ServerLoss,
  type ServerWire,
  type WireEvents,
  loadStdioSdk,
} from './server-wire.js'
import type { McpAddress, McpCommand } from './mcp-options.js'
import { quoteText } from './plain-text.js'
import { createSignInFetch, type SignInFetch } from './sign-in/sign-in-fetch.js'
import type { SignIn } from './sign-in/sign-in.js'
import { watchAnswers } from './task-wire.js'

const reconnectionOptions = {
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 5_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 2,
}

/** Unlike the SDK, fails a request whose stream ends before its answer, and limits the size of bodies. */
export async function createHttpWire(
  options: HttpOptions,
  { onLost, onComplaint }: WireEvents,
  signIn?: SignIn,
): Promise<ServerWire> {
  const { StreamableHTTPClientTransport } = await loadClientSdk()
  const address = new URL(options.url)
  /** Pending requests. */
  const open = new Set<RequestId>()

  const ask = createFetch(options, onLost, signIn, async (to, init, cap) => {
    const response = await fetch(to, init).catch((error: unknown) => {
      // The SDK tries a GET again, or reports it by the end of a request's stream.
      if (init.method !== 'GET' && init.signal?.aborted !== true) onLost(toLoss(error))
      throw error
    })
    return cap(response)
  })

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
      // A stream of changes has no answer, so the SDK itself follows its end.
      if (options?.onRequestStreamEnd) return super.send(message, options)
      const { id } = message
      let canResume = false
      const onresumptiontoken = (): void => void (canResume = true)
      /** The answer will not arrive. */
      const onRequestStreamEnd = (): void => {
        if (!open.delete(id)) return
        if (canResume) return onLost({ reason: 'can no longer be reached', transient: true })
        const text = 'The connection was closed before the answer was complete.'
        // JSON-RPC's code for an unspecified server error.
        this.onmessage?.({ jsonrpc: '2.0', id, error: { code: -32_000, message: text } })
      }
      open.add(id)
      try {
        await super.send(message, { ...options, onresumptiontoken, onRequestStreamEnd })
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
  return {
    ...createWire(transport, address, onComplaint),
    hasHeaders: true,
    shutDown: () => limitTime({ ms: 1_000 }, transport.terminateSession()).catch(() => undefined),
  }
}

type HttpOptions = McpAddress & { maxMessageBytes: number }

/** A fetch that passes the protocol's requests to `send`, with the user's headers and a limit for bodies. */
function createFetch(
  { url, headers, maxMessageBytes }: HttpOptions,
  onLost: WireEvents['onLost'],
  signIn: SignIn | undefined,
  send: (
    to: string | URL,
    init: RequestInit,
    cap: (response: Response, onEnd?: () => void) => Response,
  ) => Promise<Response>,
): SignInFetch {
  const address = new URL(url)
  const fetchForSignIn = signIn?.fetch ?? createSignInFetch(address)
  const onExceeded = (): void => {
    const reason = `sent a message larger than ${maxMessageBytes} bytes and was cut off`
    onLost({ reason, transient: false })
  }
  return async (to, init = {}) =>
    isForServer(address, to, init)
      ? send(to, { ...init, headers: addHeaders(init.headers, headers) }, (response, onEnd) =>
          capResponse(response, maxMessageBytes, { onExceeded, onEnd }),
        )
      : fetchForSignIn(to, init)
}

const toLoss = (error: unknown): ServerLoss => ({
  reason: `cannot be reached (${describeError(error)})`,
  transient: true,
})

function createWire(
  transport: Transport,
  { origin, pathname }: URL,
  onComplaint: WireEvents['onComplaint'],
): ServerWire {
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has this only
  transport.onerror = onComplaint
  return {
    transport,
    place: `${origin}${pathname}`,
    hasHeaders: false,
    probeTimeoutMs: maxTimerMs,
    getLastOutput: () => '',
    explain: explainHttpError,
    shutDown: () => Promise.resolve(),
    kill: () => undefined,
  }
}

/** Other requests belong to the sign-in. The user's headers are secrets for this server only. */
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

function explainHttpError(error: unknown): string | undefined {
  const status = findHttpStatus(error)
  if (status === 401 || status === 403)
    return `It returned ${status}. Pass credentials with headers: { Authorization: 'Bearer …' }, or with auth.`
  if (status === 404 || status === 405) return `It returned ${status}. There is no MCP endpoint at this path.`
  const text = readText(readProperty(error, 'data'), 'text')
  const words = text.trim() === '' ? '' : `: ${quoteText(text)}`
  return status === undefined ? undefined : `It returned ${status}${words}.`
}

/** Connects to a server that uses the first protocol revision, which sends all messages on one event stream. */
export async function createSseWire(
  options: HttpOptions,
  { onLost, onComplaint }: WireEvents,
  signIn?: SignIn,
): Promise<ServerWire> {
  const { SSEClientTransport } = await loadClientSdk()
  const address = new URL(options.url)
  const ask = createFetch(options, onLost, signIn, async (to, init, cap) => {
    const response = await fetch(to, init).catch((error: unknown) => {
      onLost(toLoss(error))
      throw error
    })
    // The stream is the session, so a new stream would start a new session.
    return cap(response, () => {
      if (response.ok && init.method !== 'POST') onLost({ reason: 'closed the connection', transient: true })
    })
  })
  const authProvider = signIn && { authProvider: signIn.provider }
  return createWire(new SSEClientTransport(address, { ...authProvider, fetch: ask }), address, onComplaint)
}

const maxStderrChars = 4096

/** If the server is silent for this long, the older initialization is tried. */
const maxProbeMs = 10_000

/** Starts a server as a child process. Its stderr is buffered instead of printed. */
export async function createStdioWire(
  options: McpCommand & { maxMessageBytes: number; startTimeoutMs: number },
  { onLost, onComplaint }: WireEvents,
): Promise<ServerWire> {
  const { command, args = [], env, cwd, maxMessageBytes, startTimeoutMs } = options
  const { StdioClientTransport } = await loadStdioSdk()
  // With the SDK's own class, every server would be started twice to negotiate the protocol.
  class ChildTransport extends StdioClientTransport {}
  const transport = new ChildTransport({
    command,
    args: [...args],
    ...(env && { env: { ...env } }),
    ...(cwd !== undefined && { cwd }),
    stderr: 'pipe',
    maxBufferSize: maxMessageBytes,
  })
  watchAnswers(transport)
  const tail = createTextTail(maxStderrChars)
  transport.stderr?.on('data', tail.add)
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has these only
  transport.onerror = (error) => {
    // After this error, the SDK takes seconds to abandon the child.
    if (!error.message.startsWith('ReadBuffer exceeded')) return onComplaint(error)
    const reason = `sent a message larger than ${maxMessageBytes} bytes and was stopped`
    onLost({ reason, transient: false })
  }
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has these only
  transport.onclose = () => onLost({ reason: 'has ended', transient: true })
  return {
    transport,
    place: command,
    hasHeaders: false,
    probeTimeoutMs: Math.min(maxProbeMs, startTimeoutMs / 2),
    getLastOutput: () => {
      const words = tail.read().trim()
      return words === '' ? '' : `It last wrote to stderr: ${words}`
    },
    explain: (error) => explainStartError(error, command, cwd),
    // The transport closes stdin first, which asks the child to exit.
    shutDown: () => Promise.resolve(),
    kill: () => {
      const { pid } = transport
      if (pid === null) return
      // The child may have exited.
      valueOr(() => process.kill(pid, 'SIGKILL'), false)
    },
  }
}

function explainStartError(error: unknown, command: string, cwd: string | undefined): string | undefined {
  const code = readProperty(error, 'code')
  if (code === 'EACCES') return `This process is not allowed to execute the command '${command}'.`
  if (code === 'ENOTDIR') return `'${cwd}' (cwd) is not a folder.`
  if (code !== 'ENOENT') return undefined
  return cwd !== undefined && !isFolder(cwd)
    ? `The folder '${cwd}' (cwd) does not exist.`
    : `The command '${command}' was not found. Install it, or give its full path.`
}

function isFolder(path: string): boolean {
  // Loaded on demand, because the rest of this entry point also runs without Node.
  const { statSync } = process.getBuiltinModule('node:fs')
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

export function createTextTail(limit: number) {
  const decoder = new TextDecoder()
  let text = ''
  return {
    add: (chunk: Uint8Array): void => {
      text = (text + decoder.decode(chunk, { stream: true })).slice(-limit)
    },
    read: () => text,
  }
}
