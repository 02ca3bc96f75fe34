import { StatewrightError } from '../../core/base/errors.js'

/**
 * Why a request of a page was refused or failed. `message` is a sentence to show, `code` is the server's, or one of these:
 *
 * - `connection_lost`: the connection broke in the middle of an answer. `chat.resumeStream()` continues it
 * - `server_away`: the server did not come back within `maxOutageMs`
 * - `http_error`: something between page and server answered, such as a proxy; see `status`
 *
 * `subject` names the place that the server refuses, such as `messages[0].parts[1].url`.
 *
 * @example
 * const explain = (error: Error) =>
 *   error instanceof ChatError && error.code === 'queue_full' ? 'Please wait for an answer.' : error.message
 */
export class ChatError extends StatewrightError {
  override readonly name = 'ChatError'
  /** The HTTP status; null without a response. */
  readonly status: number | null

  constructor(
    code: string,
    message: string,
    { status = null, subject, cause }: { status?: number | null; subject?: string; cause?: unknown } = {},
  ) {
    super(code, message, subject, cause === undefined ? undefined : { cause })
    this.status = status
  }
}

/** The error of a connection that broke in the middle of an answer. */
export function createLostError(cause?: unknown): ChatError {
  return new ChatError('connection_lost', 'The connection was lost. The answer continues on the server.', {
    cause,
  })
}

export function isLostError(error: unknown): boolean {
  return error instanceof ChatError && error.code === 'connection_lost'
}

/** Reads why a request was refused: `{ error: { code, message, key? } }`, or whatever else has answered. */
export async function readErrorResponse(response: Response): Promise<ChatError> {
  const { status } = response
  const { code, message, key } = parseError(await response.text().catch(() => ''))
  if (typeof code !== 'string' || typeof message !== 'string')
    return new ChatError('http_error', describeStatus(status), { status })
  return new ChatError(code, message, { status, ...(typeof key === 'string' && { subject: key }) })
}

function parseError(text: string): Record<string, unknown> {
  try {
    const body = JSON.parse(text) as { error?: Record<string, unknown> } | null
    return body?.error ?? {}
  } catch {
    return {}
  }
}

const sentenceByStatus: Readonly<Record<number, string>> = {
  401: 'You are not signed in, or not any more.',
  403: 'You may not use this chat.',
  404: 'There is no chat at this address.',
  413: 'The message is too large.',
  429: 'Too many requests: wait a moment, and try again.',
}

function describeStatus(status: number): string {
  const sentence = sentenceByStatus[status]
  if (sentence !== undefined) return sentence
  return status >= 500
    ? `The server failed (${status}). Try again later.`
    : `The server refused the request (${status}).`
}
