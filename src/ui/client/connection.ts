import type { Clock } from '../../core/base/clock.js'
import { ChatError, isLostError, readErrorResponse } from './chat-error.js'

/** `lost`: requests do not reach the server, and are sent again; `open`: they reach it again. */
export type ConnectionState = 'open' | 'lost'

export interface ConnectionOptions {
  fetch: typeof globalThis.fetch
  clock: Clock
  maxOutageMs: number
  onConnection: (state: ConnectionState) => void
}

/** One request; made anew for each try, so that headers may change. */
export type RequestSource = () => Promise<[url: string, init: RequestInit]>

export interface RequestHow {
  signal?: AbortSignal | undefined
  /** Whether the request may reach the server twice. Default: true. */
  repeatable?: boolean
  /** Called when a try has failed, so that it is not known whether it has reached the server. */
  onRepeat?: () => void
}

const firstDelayMs = 500
const maxDelayMs = 5000

/** Sends requests, and sends them again while the server is away. */
export class Connection {
  readonly #options: ConnectionOptions
  #state: ConnectionState = 'open'

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  /**
   * The response of the server, whose status is 2xx.
   *
   * @throws {ChatError} for a refusal; `server_away`
   */
  async request(
    source: RequestSource,
    { signal, repeatable = true, onRepeat }: RequestHow = {},
  ): Promise<Response> {
    const { clock, maxOutageMs } = this.#options
    const startedAt = clock.now()
    for (let attempt = 0; ; attempt += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one try after the other
      const sent = await this.#send(source, signal)
      if (sent instanceof Response) {
        this.report('open')
        if (sent.ok) return sent
        // oxlint-disable-next-line no-await-in-loop -- as above
        throw await readErrorResponse(sent)
      }
      if (!repeatable) throw sent
      this.report('lost')
      onRepeat?.()
      if (clock.now() - startedAt >= maxOutageMs) throw createAwayError(sent)
      // oxlint-disable-next-line no-await-in-loop -- as above
      await waitFor(clock, getDelayMs(attempt), signal)
    }
  }

  report(state: ConnectionState): void {
    if (this.#state === state) return
    this.#state = state
    this.#options.onConnection(state)
  }

  /** The response, or an error when the server is away; throws when the page has stopped. */
  async #send(source: RequestSource, signal: AbortSignal | undefined): Promise<Response | ChatError> {
    signal?.throwIfAborted()
    const [url, init] = await source()
    let response: Response
    try {
      response = await this.#options.fetch(url, { ...init, ...(signal && { signal }) })
    } catch (cause) {
      signal?.throwIfAborted()
      return new ChatError('connection_lost', 'The server cannot be reached.', { cause })
    }
    if (!awayStatuses.has(response.status)) return response
    const error = await readErrorResponse(response.clone())
    return error.code === 'http_error' || error.retryable ? error : response
  }
}

/** What a proxy answers whose server is away, and a server whose store is. */
const awayStatuses: ReadonlySet<number> = new Set([502, 503, 504])

function createAwayError(last: ChatError): ChatError {
  const { status } = last
  const message =
    isLostError(last) || last.code === 'http_error' ? 'The server cannot be reached.' : last.message
  return new ChatError('server_away', `${message} Try again later.`, { status, cause: last })
}

/** Half a second, then twice as long each time up to five seconds; half of it at random, so that pages do not come together. */
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
