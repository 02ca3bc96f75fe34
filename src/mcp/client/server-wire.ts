import type * as ClientSdk from '@modelcontextprotocol/client'
import type * as StdioSdk from '@modelcontextprotocol/client/stdio'
import { loadPeer } from '../../core/base/platform.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import { readProperty } from '../../core/base/json.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { quoteText } from './plain-text.js'

export interface WireEvents {
  onLost: (reason: ServerLoss) => void
  onComplaint: (error: Error) => void
}

export interface ServerLoss {
  /** Completes a sentence about the server, such as 'has ended' or 'sent more than …'. */
  reason: string
  /** Whether a retry of the interrupted call may succeed. */
  transient: boolean
}

export interface ServerWire {
  readonly transport: ClientSdk.Transport
  /** The server's address for display, without secrets. */
  readonly place: string
  /** Whether schemas can specify arguments to be sent as headers too. */
  readonly hasHeaders: boolean
  readonly probeTimeoutMs: number
  /** The server's last output as a sentence, or ''. */
  getLastOutput(): string
  explain(error: unknown): string | undefined
  /** Ends the session at a server that is still connected. Never rejects. */
  shutDown(): Promise<void>
  kill(): void
}

/** @throws {StatewrightError} `missing_package` */
export function loadClientSdk(): Promise<typeof ClientSdk> {
  return loadPeer<typeof ClientSdk>('@modelcontextprotocol/client', 'Using MCP servers')
}

/** Loads the SDK's stdio module. It is loaded separately, because it needs Node. */
export function loadStdioSdk(): Promise<typeof StdioSdk> {
  return loadPeer<typeof StdioSdk>('@modelcontextprotocol/client/stdio', 'Using MCP servers')
}

export class ServerLostError extends Error {
  constructor(readonly loss: ServerLoss) {
    super(`The server ${loss.reason}.`)
  }
}

/** The error for a session that the server no longer knows. The server has not executed the call. */
export class SessionExpiredError extends Error {}

/** Converts an error to `mcp_unavailable`, or to `mcp_timeout` if the server did not answer in time. */
export function toStartError(
  error: unknown,
  wire: ServerWire,
  startTimeoutMs: number,
  complaint: string,
): StatewrightError {
  const { place } = wire
  const cause = { cause: error }
  if (readProperty(error, 'name') === 'TimeoutError') {
    const late = `The MCP server '${place}' did not answer within ${startTimeoutMs} ms (startTimeoutMs).`
    const hint = complaint === '' ? '' : `Its output was not an MCP message: ${quoteText(complaint)}.`
    const message = joinSentences(late, hint, wire.getLastOutput())
    return new StatewrightError('mcp_timeout', message, place, cause)
  }
  const isLost = error instanceof ServerLostError
  const why = isLost ? `It ${error.loss.reason}.` : (wire.explain(error) ?? describeError(error))
  const message = joinSentences(`The MCP server '${place}' cannot be used.`, why, wire.getLastOutput())
  return new StatewrightError('mcp_unavailable', message, place, cause)
}

export function createSilenceError(name: string, timeoutMs: number): ToolError {
  const silence = `The MCP server '${name}' reported no progress for ${timeoutMs} ms.`
  return new ToolError('transient', `${silence} ${doubtHint}`)
}

export function toCallError(error: unknown, name: string, wire: ServerWire): Error {
  const server = `The MCP server '${name}'`
  if (error instanceof ServerLostError) {
    const { reason, transient } = error.loss
    const message = joinSentences(`${server} ${reason} during the call. ${doubtHint}`, wire.getLastOutput())
    return new ToolError(transient ? 'transient' : 'failed', message)
  }
  // The error already names the server. A call without a sign-in has not been executed.
  if (error instanceof StatewrightError) return new ToolError('failed', error.message, { cause: error })
  const status = findHttpStatus(error)
  if (status !== undefined) {
    const why = wire.explain(error) ?? quoteText(describeError(error))
    // The status decides whether the call may be retried.
    return Object.assign(new Error(joinSentences(`${server} refused the request.`, why)), { status })
  }
  return new Error(`${server}: ${describeError(error)}`, { cause: error })
}

/** The HTTP status of a transport error, but never a number from the server's answer. */
export function findHttpStatus(error: unknown): number | undefined {
  const name = readProperty(error, 'name')
  const status = readProperty(error, name === 'SseError' ? 'code' : 'status')
  const isOfTransport = name === 'SdkHttpError' || name === 'SseError'
  return isOfTransport && typeof status === 'number' && status >= 400 && status < 600 ? status : undefined
}

export const doubtHint = 'It may still have taken effect. Check before you call it again.'

const joinSentences = (...parts: readonly string[]): string => parts.filter(Boolean).join(' ')
