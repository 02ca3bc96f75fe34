import type { Transport } from '@modelcontextprotocol/client'
import type * as ClientSdk from '@modelcontextprotocol/client'
import type * as StdioSdk from '@modelcontextprotocol/client/stdio'
import { loadPeer } from '../../core/base/platform.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import { readProperty } from '../../core/base/json.js'
import { ToolError } from '../../core/tools/tool-error.js'
import { quoteText } from './plain-text.js'

/** What a transport of the SDK notices, told to the connection that uses it. */
export interface WireEvents {
  /** The server is gone, or may not go on. `reason` completes 'The MCP server … '. */
  onLost: (reason: ServerLoss) => void
  /** Something came that was no message. */
  onComplaint: (error: Error) => void
}

export interface ServerLoss {
  /** Completes a sentence that begins with the server: 'has ended', 'sent more than …'. */
  reason: string
  /** Whether a call that this ended may work when it is made again. */
  transient: boolean
}

/** A way to a server: a transport of the SDK, and what the SDK leaves to others. */
export interface ServerWire {
  readonly transport: Transport
  /** Where the server is, for people; without secrets. */
  readonly place: string
  /** Whether arguments travel as headers, too, where a tool's schema says so. */
  readonly hasHeaders: boolean
  /** How long a server may take to say whether it speaks the protocol without a greeting. */
  readonly probeTimeoutMs: number
  /** What the server last said on its own account, as a sentence; '' when it said nothing. */
  getLastOutput(): string
  /** Why it could not be started or reached, as a sentence, where an error needs explaining. */
  explain(error: unknown): string | undefined
  /** Takes leave of the server while it still listens. Never rejects. */
  shutDown(): Promise<void>
  /** Ends it at once, however it behaves. */
  kill(): void
}

/** @throws {StatewrightError} `missing_package` */
export function loadClientSdk(): Promise<typeof ClientSdk> {
  return loadPeer<typeof ClientSdk>('@modelcontextprotocol/client', 'Using MCP servers')
}

/** Apart from the other: this one needs Node. */
export function loadStdioSdk(): Promise<typeof StdioSdk> {
  return loadPeer<typeof StdioSdk>('@modelcontextprotocol/client/stdio', 'Using MCP servers')
}

/** Nothing more will come from the server. */
export class ServerLostError extends Error {
  readonly loss: ServerLoss

  constructor(loss: ServerLoss) {
    super(`The server ${loss.reason}.`)
    this.loss = loss
  }
}

/** The server does not know this session any more, and has therefore not executed the call. */
export class SessionExpiredError extends Error {}

/** Why a server cannot be used, as `mcp_unavailable`, or `mcp_timeout` when it did not answer in time. */
export function toStartError(
  error: unknown,
  wire: ServerWire,
  startTimeoutMs: number,
  complaint: string,
): StatewrightError {
  const { place } = wire
  if (readProperty(error, 'name') === 'TimeoutError') {
    const hint = complaint === '' ? '' : `What came from it was no MCP message: ${quoteText(complaint)}.`
    const message = joinSentences(
      `The MCP server '${place}' did not answer within ${startTimeoutMs} ms (startTimeoutMs).`,
      hint,
      wire.getLastOutput(),
    )
    return new StatewrightError('mcp_timeout', message, place, { cause: error })
  }
  const why =
    error instanceof ServerLostError
      ? `It ${error.loss.reason}.`
      : (wire.explain(error) ?? describeError(error))
  const message = joinSentences(`The MCP server '${place}' cannot be used.`, why, wire.getLastOutput())
  return new StatewrightError('mcp_unavailable', message, place, { cause: error })
}

/** What the model reads of a call whose server is silent. */
export function createSilenceError(name: string, timeoutMs: number): ToolError {
  const silence = `The MCP server '${name}' gave no sign of progress for ${timeoutMs} ms.`
  return new ToolError('transient', `${silence} ${doubtHint}`)
}

/** What the model reads of a call that brought no result. */
export function toCallError(error: unknown, name: string, wire: ServerWire): Error {
  const server = `The MCP server '${name}'`
  if (error instanceof ServerLostError) {
    const { reason, transient } = error.loss
    const message = joinSentences(`${server} ${reason} during the call. ${doubtHint}`, wire.getLastOutput())
    return new ToolError(transient ? 'transient' : 'failed', message)
  }
  // It names the server itself. A call that was refused for want of a sign-in has not been executed.
  if (error instanceof StatewrightError) return new ToolError('failed', error.message, { cause: error })
  const status = findHttpStatus(error)
  if (status !== undefined) {
    const why = wire.explain(error) ?? quoteText(describeError(error))
    // By its status it is told whether it may pass.
    return Object.assign(new Error(joinSentences(`${server} refused the request.`, why)), { status })
  }
  return new Error(`${server}: ${describeError(error)}`, { cause: error })
}

/** The HTTP status that the SDK's transports complain of; never a number that the server put into its answer. */
export function findHttpStatus(error: unknown): number | undefined {
  const name = readProperty(error, 'name')
  const status = readProperty(error, name === 'SseError' ? 'code' : 'status')
  const isOfTransport = name === 'SdkHttpError' || name === 'SseError'
  return isOfTransport && typeof status === 'number' && status >= 400 && status < 600 ? status : undefined
}

export const doubtHint = 'It may have taken effect all the same: check before you call it again.'

function joinSentences(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ')
}
