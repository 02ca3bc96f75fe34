import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { CallAbort } from '../../base/abort.js'
import type { IncomingAnswer, OutgoingRequest } from './post-request.js'

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
