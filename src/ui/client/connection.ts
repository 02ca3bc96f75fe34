import type { Clock } from '../../core/base/clock.js'
import { StatewrightError } from '../../core/base/errors.js'

/**
 * Why a request was refused or failed. `message` can be shown to users. `code` is the server's code, or one of these:
 *
 * - `connection_lost`: the connection broke during an answer. `chat.resumeStream()` continues it
 * - `server_away`: the server was unreachable for `maxOutageMs`
 * - `http_error`: a proxy or another server responded; see `status`
 *
 * `subject` names the invalid part of the request, such as `messages[0].parts[1].url`.
 *
 * @example
 * const explain = (error: Error) =>
 *   error instanceof ChatError && error.code === 'queue_full' ? 'Please wait for an answer.' : error.message
 */
export class ChatError extends StatewrightError {
  override readonly name = 'ChatError'
  /** The HTTP status, or null if there was no response. */
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

export function createLostError(cause?: unknown): ChatError {
  return new ChatError('connection_lost', 'The connection was lost. The answer continues on the server.', {
    cause,
  })
}

export function isLostError(error: unknown): boolean {
  return error instanceof ChatError && error.code === 'connection_lost'
}

/** Reads `{ error: { code, message, key? } }`, or describes the status of any other response. */
async function readErrorResponse(response: Response): Promise<ChatError> {
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
  401: 'You are not signed in.',
  403: 'You do not have access to this chat.',
  404: 'No chat was found at this address.',
  413: 'The message is too large.',
  429: 'Too many requests. Wait a moment and try again.',
}

function describeStatus(status: number): string {
  if (status >= 500) return `The server failed (${status}). Try again later.`
  return sentenceByStatus[status] ?? `The server refused the request (${status}).`
}

/** `lost`: the server is unreachable and requests are retried. `open`: the server is reachable again. */
export type ConnectionState = 'open' | 'lost'

interface ConnectionOptions {
  fetch: typeof globalThis.fetch
  clock: Clock
  maxOutageMs: number
  onConnection: (state: ConnectionState) => void
}

export type RequestSource = () => Promise<[url: string, init: RequestInit]>

interface RequestSettings {
  signal?: AbortSignal | undefined
  /** Whether the request may reach the server twice. Defaults to true. */
  repeatable?: boolean
  /** Called when an attempt fails, because the server may still have received the request. */
  onRepeat?: () => void
}

const firstDelayMs = 500
const maxDelayMs = 5000

export function createConnection({ fetch, clock, maxOutageMs, onConnection }: ConnectionOptions) {
  let state: ConnectionState = 'open'
  const report = (next: ConnectionState): void => {
    if (state === next) return
    state = next
    onConnection(state)
  }
  /** Returns an error if the server is unreachable, and throws if the page has aborted. */
  const send = async (
    source: RequestSource,
    signal: AbortSignal | undefined,
  ): Promise<Response | ChatError> => {
    signal?.throwIfAborted()
    const [url, init] = await source()
    let response: Response
    try {
      response = await fetch(url, { ...init, ...(signal && { signal }) })
    } catch (cause) {
      signal?.throwIfAborted()
      return new ChatError('connection_lost', 'The server cannot be reached.', { cause })
    }
    if (!awayStatuses.has(response.status)) return response
    const error = await readErrorResponse(response.clone())
    return error.code === 'http_error' || error.retryable ? error : response
  }
  /** Returns a response with a 2xx status. @throws {ChatError} for a refusal, or `server_away` */
  const request = async (
    source: RequestSource,
    { signal, repeatable = true, onRepeat }: RequestSettings = {},
  ): Promise<Response> => {
    const startedAt = clock.now()
    for (let attempt = 0; ; attempt += 1) {
      const sent = await send(source, signal)
      if (sent instanceof Response) {
        report('open')
        if (sent.ok) return sent
        throw await readErrorResponse(sent)
      }
      if (!repeatable) throw sent
      report('lost')
      onRepeat?.()
      if (clock.now() - startedAt >= maxOutageMs) throw createAwayError(sent)
      await waitFor(clock, getDelayMs(attempt), signal)
    }
  }
  return { request, report }
}

const awayStatuses: ReadonlySet<number> = new Set([502, 503, 504])

function createAwayError(last: ChatError): ChatError {
  const { status } = last
  const message =
    isLostError(last) || last.code === 'http_error' ? 'The server cannot be reached.' : last.message
  return new ChatError('server_away', `${message} Try again later.`, { status, cause: last })
}

/** Doubles from half a second to five seconds. Half is random, so that pages do not reconnect at the same time. */
function getDelayMs(attempt: number): number {
  const delay = Math.min(maxDelayMs, firstDelayMs * 2 ** attempt)
  return delay / 2 + (Math.random() * delay) / 2
}

function waitFor(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    const stop = (): void => {
      clock.clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    signal?.addEventListener('abort', stop, { once: true })
  })
}
