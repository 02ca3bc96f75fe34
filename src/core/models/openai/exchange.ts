import { type ModelRequest, ModelError, type ModelRequestOptions } from '../provider.js'
import type { AnswerFormat } from './answer-reader.js'
import type { RequestBody } from './encode-body.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { describeError } from '../../base/errors.js'
import { findSchemaFamily, fitTools } from '../fit-tools.js'
import { toModelFailure } from '../to-model-failure.js'
import {
  loadClient,
  type OwnClient,
  refuseMissingCredentials,
  createPlainClient,
  isPlainClientEnough,
  type RequestClient,
} from './request-client.js'
import {
  findNodeHttp,
  getNodeHttp,
  type NodeHttp,
  postByDispatcher,
  type RequestDispatcher,
  postRequest,
} from './node-transport.js'
import type { ClientRequestOptions, OpenAIClient, OpenAIOptions } from './openai-options.js'
import { readFetchAnswer, decompressResponse, readNodeAnswer, readText } from './read-answer.js'
import { SentSecrets } from './sent-secrets.js'
import type { IncomingHttpHeaders } from 'node:http'
import type { CallAbort } from '../../base/abort.js'

/** An API on top of the shared transport. */
export interface ApiWire {
  readonly path: string
  readonly format: AnswerFormat
  readonly bodies: {
    body(request: ModelRequest): RequestBody
    encode(body: RequestBody): Uint8Array<ArrayBuffer>
  }
  /** Sends the request with the `openai` client. */
  send(client: OpenAIClient, body: RequestBody, options: ClientRequestOptions): Promise<Response>
}

/** Sends one request and reads the response. Rejects with a `ModelError`. */
export type Exchange = (request: ModelRequest, options: ExchangeOptions) => Promise<ModelResponse>

/** Loaded together with the first request. */
export function createExchange(options: OpenAIOptions, wire: ApiWire, provider: string): Exchange {
  const { path, format, bodies } = wire
  const secrets = new SentSecrets(options)
  const family = findSchemaFamily(provider, options.model)
  const { apiKey, dispatcher } = options
  /** A dispatcher is used regardless of the app's `fetch`. */
  const findNode = dispatcher ? getNodeHttp : findNodeHttp
  const noted =
    typeof apiKey === 'function' ? { ...options, apiKey: () => secrets.noteWhenReady(apiKey()) } : options

  let loading: Promise<OwnClient> | undefined
  async function load(): Promise<OwnClient> {
    loading ??= loadClient(noted, path)
    try {
      return await loading
    } catch (error) {
      // The key may be set before the next request.
      loading = undefined
      throw error
    }
  }

  async function askByFetch(
    client: OpenAIClient,
    body: RequestBody,
    isOurs: boolean,
    { abort, ...callbacks }: ExchangeOptions,
  ): Promise<ModelResponse> {
    // A custom client or `fetch` may inspect the body, and Azure derives the URL from it, so they receive an
    // object.
    const written = isOurs && { body: bodies.encode(body), headers: jsonHeaders, fetchOptions: noRedirects }
    const { signal } = abort
    const sent = wire.send(client, body, {
      ...written,
      signal,
      maxRetries: 0,
      ...(options.timeoutMs !== undefined && { timeout: options.timeoutMs }),
    })
    // The client prepares the request synchronously before it sends it.
    if (callbacks.onSent) setTimeout(callbacks.onSent, 0)
    const response = await sent
    callbacks.onActivity('keep_alive')
    return await readFetchAnswer(response, { ...callbacks, format, signal })
  }

  let plain: RequestClient | undefined
  /** Node's HTTP with the built-in client, or null if the `openai` client is needed. */
  const findPlainWay = (): { node: NodeHttp; own: RequestClient } | null => {
    const node = isPlainClientEnough(options) ? findNode() : null
    if (node === null) return null
    refuseMissingCredentials(options)
    return { node, own: (plain ??= createPlainClient(noted, path)) }
  }

  return async (original, callbacks) => {
    const request = fitTools(original, family, callbacks.onWarning)
    let client: Pick<OpenAIClient, 'apiKey'> | undefined
    try {
      const way = findPlainWay()
      if (way !== null) {
        client = way.own
        return await exchangeOverNode(
          { node: way.node, dispatcher },
          way.own,
          bodies.encode(bodies.body(request)),
          format,
          callbacks,
        )
      }
      const own = options.client === undefined ? await load() : null
      client = own ?? options.client
      const body = bodies.body(request)
      const isOurs = own !== null && options.fetch === undefined
      const node = isOurs && (dispatcher || !own.logsRequests) ? findNode() : null
      if (isOurs && node !== null)
        return await exchangeOverNode({ node, dispatcher }, own, bodies.encode(body), format, callbacks)
      if (dispatcher) throw noNodeError()
      return await askByFetch(client as OpenAIClient, body, isOurs, callbacks)
    } catch (error) {
      // The client now holds the key of this request.
      secrets.noteClient(client)
      throw toSafeModelError(error, secrets)
    }
  }
}

function toSafeModelError(error: unknown, secrets: SentSecrets): ModelError {
  const failure = toModelFailure(error)
  const hidden = secrets.hideInFailure(failure)
  if (hidden !== null || secrets.occurIn(describeError(error))) return new ModelError(hidden ?? failure)
  return error instanceof ModelError ? error : new ModelError(failure, { cause: error })
}

function noNodeError(): ModelError {
  const message = 'The model option dispatcher requires Node. Remove it on this platform.'
  return new ModelError({ kind: 'fatal', code: 'dispatcher_needs_node', message })
}

const jsonHeaders = { 'content-type': 'application/json' }

/** Redirects are rejected, so the conversation only goes to the configured address. */
const noRedirects = { redirect: 'manual' as const }

export interface ExchangeOptions extends Pick<ModelRequestOptions, 'onActivity' | 'onDelta'> {
  abort: CallAbort
  onSent: ModelRequestOptions['onSent'] | undefined
  onToolCall: ModelRequestOptions['onToolCallDelta'] | undefined
  onHosted: ModelRequestOptions['onHostedCall'] | undefined
  onWarning: ModelRequestOptions['onWarning'] | undefined
}

export interface NodeTransport {
  readonly node: NodeHttp
  /** Used instead of Node's agents. */
  readonly dispatcher: RequestDispatcher | undefined
}

/**
 * Sends one request over Node's HTTP or a dispatcher, with the URL and headers that the client would use. This
 * costs less than half of `fetch` and avoids its 300-second limits.
 *
 * @throws the client's error for a status or a connection; otherwise like `readFetchAnswer`
 */
async function exchangeOverNode(
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
