import type { IncomingHttpHeaders } from 'node:http'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import type { CallAbort } from '../../base/abort.js'
import type { ModelRequestOptions } from '../provider.js'
import type { AnswerFormat } from './answer-format.js'
import type { RequestClient } from './plain-client.js'
import type { NodeHttp } from './node-http.js'
import { postByDispatcher, type RequestDispatcher } from './post-by-dispatcher.js'
import { postRequest } from './post-request.js'
import { decompressResponse, readNodeAnswer, readText } from './read-node-answer.js'

/** What one exchange is given besides its request. */
export interface ExchangeOptions extends Pick<ModelRequestOptions, 'onActivity' | 'onDelta'> {
  abort: CallAbort
  onSent: ModelRequestOptions['onSent'] | undefined
  onToolCall: ModelRequestOptions['onToolCallDelta'] | undefined
  onHosted: ModelRequestOptions['onHostedCall'] | undefined
  onWarning: ModelRequestOptions['onWarning'] | undefined
}

/** How requests leave a Node process. */
export interface NodeTransport {
  readonly node: NodeHttp
  /** In the place of Node's agents. */
  readonly dispatcher: RequestDispatcher | undefined
}

/**
 * One request over Node's HTTP, or the connections of a dispatcher, with the address and the headers that the client would send: less than half of what the client
 * costs on `fetch`, and free of the limits that Node's `fetch` has of its own (300 s for headers and between two pieces).
 * @throws what the client would throw for a status or a connection; else like `readFetchAnswer`
 */
export async function exchangeOverNode(
  { node, dispatcher }: NodeTransport,
  client: RequestClient,
  body: Uint8Array,
  format: AnswerFormat,
  { abort, ...callbacks }: ExchangeOptions,
): Promise<ModelResponse> {
  const outgoing = await client.getOutgoing()
  const sent = dispatcher
    ? postByDispatcher(dispatcher, outgoing, body, abort)
    : postRequest(node, outgoing, body, abort)
  callbacks.onSent?.()
  const { statusCode, headers, body: compressed } = await sent
  callbacks.onActivity('keep_alive')
  const stream = decompressResponse(compressed, headers, node)
  if (statusCode >= 200 && statusCode <= 299)
    return await readNodeAnswer(stream, outgoing.url, { ...callbacks, format, signal: abort })
  throw client.statusError(statusCode, await readText(stream), toHeaders(headers))
}

function toHeaders(headers: IncomingHttpHeaders): Headers {
  return new Headers(
    Object.entries(headers).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [value].flat().map((one) => [name, one]),
    ),
  )
}
