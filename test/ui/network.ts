import type { Handler } from './client.js'

interface SentRequest {
  method: string
  path: string
  headers: Headers
  body: Record<string, unknown> & { messages?: { role: string; parts: unknown[] }[] }
  bytes: number
}

/** A network between a page and a server: it can break, and the server can go away. */
export class Network {
  readonly requests: SentRequest[] = []
  /** The current server, which another process may replace. */
  handler: Handler
  /** Replaces the server; null uses the server. */
  isAway: () => Response | Error | null = () => null
  readonly #connections = new Set<(error: Error) => void>()

  constructor(handler: Handler) {
    this.handler = handler
  }

  readonly fetch = (async (url: string, init: RequestInit = {}) => {
    const body = typeof init.body === 'string' ? init.body : '{}'
    this.requests.push({
      method: init.method ?? 'GET',
      path: new URL(url, 'http://chat.test').pathname,
      headers: new Headers(init.headers),
      body: JSON.parse(body),
      bytes: body.length,
    })
    const instead = this.isAway()
    if (instead instanceof Error) throw instead
    if (instead) return instead
    init.signal?.throwIfAborted()
    const response = await this.handler(new Request(new URL(url, 'http://chat.test'), init))
    const { status, headers } = response
    return new Response(response.body && this.#connect(response.body, init.signal ?? null), {
      status,
      headers,
    })
  }) as typeof globalThis.fetch

  /** Breaks all open connections with a browser's error. */
  cut(): void {
    for (const fail of this.#connections) fail(new TypeError('network error'))
  }

  /** The requests to a path. */
  sentTo(path: RegExp): SentRequest[] {
    return this.requests.filter((request) => path.test(`${request.method} ${request.path}`))
  }

  #connect(body: ReadableStream<Uint8Array>, signal: AbortSignal | null): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    let fail = (_error: Error): void => undefined
    const stopReading = (): Promise<void> => reader.cancel().catch(() => undefined)
    const close = (): void => {
      this.#connections.delete(fail)
    }
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        fail = (error) => {
          close()
          void stopReading()
          controller.error(error)
        }
        this.#connections.add(fail)
        signal?.addEventListener('abort', () => this.#connections.has(fail) && fail(signal.reason as Error))
      },
      pull: async (controller) => {
        const { done, value } = await reader.read()
        if (!this.#connections.has(fail)) return
        if (value) controller.enqueue(value)
        if (!done) return
        close()
        controller.close()
      },
      cancel: () => {
        close()
        return reader.cancel()
      },
    })
  }
}
