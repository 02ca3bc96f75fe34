import { StatewrightError } from '../core/base/errors.js'
import { describeError } from '../core/base/describe-error.js'
import { peek } from '../core/base/to-json.js'
import { ToolError } from '../core/tools/tool-error.js'
import { quoted } from './plain-text.js'
import type { Loss, Wire } from './wire.js'

/** Nothing more will come from the server. */
export class LostError extends Error {
  readonly loss: Loss

  constructor(loss: Loss) {
    super(`The server ${loss.reason}.`)
    this.loss = loss
  }
}

/** The server does not know this session any more, and has therefore not executed the call. */
export class SessionExpiredError extends Error {}

/** Why a server cannot be used, as `mcp_unavailable`, or `mcp_timeout` when it did not answer in time. */
export function startFailure(
  error: unknown,
  wire: Wire,
  startTimeoutMs: number,
  complaint: string,
): StatewrightError {
  const { place } = wire
  if (peek(error, 'name') === 'TimeoutError') {
    const hint = complaint === '' ? '' : `What came from it was no MCP message: ${quoted(complaint)}.`
    const message = sentences(
      `The MCP server '${place}' did not answer within ${startTimeoutMs} ms (startTimeoutMs).`,
      hint,
      wire.lastWords(),
    )
    return new StatewrightError('mcp_timeout', message, place, { cause: error })
  }
  const why =
    error instanceof LostError ? `It ${error.loss.reason}.` : (wire.explain(error) ?? describeError(error))
  const message = sentences(`The MCP server '${place}' cannot be used.`, why, wire.lastWords())
  return new StatewrightError('mcp_unavailable', message, place, { cause: error })
}

/** What the model reads of a call that brought no result. */
export function callFailure(error: unknown, name: string, wire: Wire, timeoutMs: number): Error {
  const server = `The MCP server '${name}'`
  if (error instanceof LostError) {
    const { reason, transient } = error.loss
    const message = sentences(`${server} ${reason} during the call. ${doubt}`, wire.lastWords())
    return new ToolError(transient ? 'transient' : 'failed', message)
  }
  const code = peek(error, 'code')
  if (code === requestTimeout && peek(peek(error, 'data'), 'timeout') !== undefined) {
    return new ToolError('transient', `${server} gave no sign of progress for ${timeoutMs} ms. ${doubt}`)
  }
  const status = httpStatus(error)
  if (status !== undefined) {
    const why = wire.explain(error) ?? quoted(describeError(error))
    // By its status it is told whether it may pass.
    return Object.assign(new Error(sentences(`${server} refused the request.`, why)), { status })
  }
  return new Error(`${server}: ${describeError(error)}`, { cause: error })
}

/** The HTTP status that the SDK's transport complains of; never a number that the server put into its answer. */
export function httpStatus(error: unknown): number | undefined {
  const code = peek(error, 'code')
  const isOfTransport = peek(error, 'name') !== 'McpError' && typeof code === 'number'
  return isOfTransport && code >= 400 && code < 600 ? code : undefined
}

const doubt = 'It may have taken effect all the same: check before you call it again.'

/** JSON-RPC error code of the SDK for a request that took too long. */
const requestTimeout = -32_001

function sentences(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ')
}
