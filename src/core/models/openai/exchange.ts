import type { OpenAI } from 'openai'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { describeError } from '../../base/errors.js'
import { findSchemaFamily, fitTools } from '../fit-tools.js'
import { toModelFailure } from '../to-model-failure.js'
import { ModelError, type ModelRequest } from '../provider.js'
import { exchangeOverNode, type ExchangeOptions } from './node-exchange.js'
import { loadClient, type OwnClient, refuseMissingCredentials } from './openai-client.js'
import { findNodeHttp, getNodeHttp, type NodeHttp } from './node-http.js'
import { createPlainClient, isPlainClientEnough, type RequestClient } from './plain-client.js'
import type { OpenAIOptions } from './openai-options.js'
import { readFetchAnswer } from './read-fetch-answer.js'
import type { RequestBody } from './encode-body.js'
import { SentSecrets } from './sent-secrets.js'
import type { ApiWire } from './api-wire.js'

/** Sends one request and reads its answer. Rejects with a `ModelError`. */
export type Exchange = (request: ModelRequest, options: ExchangeOptions) => Promise<ModelResponse>

/** How requests of one API are made with these options. Loaded when the first one is, together with the client. */
export function createExchange(options: OpenAIOptions, wire: ApiWire, provider: string): Exchange {
  const { path, format, bodies } = wire
  const secrets = new SentSecrets(options)
  const family = findSchemaFamily(provider, options.model)
  const { apiKey, dispatcher } = options
  /** A dispatcher is used whichever `fetch` the app has. */
  const findNode = dispatcher ? getNodeHttp : findNodeHttp
  const noted =
    typeof apiKey === 'function' ? { ...options, apiKey: () => secrets.noteWhenReady(apiKey()) } : options

  let loading: Promise<OwnClient> | undefined
  async function load(): Promise<OwnClient> {
    loading ??= loadClient(noted, path)
    try {
      return await loading
    } catch (error) {
      // The key may be set by the time of the next request.
      loading = undefined
      throw error
    }
  }

  async function askByFetch(
    client: OpenAI,
    body: RequestBody,
    isOurs: boolean,
    { abort, ...callbacks }: ExchangeOptions,
  ): Promise<ModelResponse> {
    // A client or a fetch of the user's may want to see the body, and Azure's needs it for the URL: these get it as object.
    const written = isOurs && { body: bodies.encode(body), headers: jsonHeaders, fetchOptions: noRedirects }
    const { signal } = abort
    const sent = wire.send(client, body, {
      ...written,
      signal,
      maxRetries: 0,
      ...(options.timeoutMs !== undefined && { timeout: options.timeoutMs }),
    })
    // The client still puts the request together, without waiting for anything.
    if (callbacks.onSent) setTimeout(callbacks.onSent, 0)
    const response = await sent
    callbacks.onActivity('keep_alive')
    return await readFetchAnswer(response, { ...callbacks, format, signal })
  }

  let plain: RequestClient | undefined
  /** Node's HTTP and a client that needs no package; null where the `openai` client has to be loaded. */
  const findPlainWay = (): { node: NodeHttp; own: RequestClient } | null => {
    const node = isPlainClientEnough(options) ? findNode() : null
    if (node === null) return null
    refuseMissingCredentials(options)
    return { node, own: (plain ??= createPlainClient(noted, path)) }
  }

  return async (given, callbacks) => {
    const request = fitTools(given, family, callbacks.onWarning)
    let client: Pick<OpenAI, 'apiKey'> | undefined
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
      return await askByFetch(client as OpenAI, body, isOurs, callbacks)
    } catch (error) {
      // Now it has the key that this request went with.
      secrets.noteClient(client)
      throw toSafeModelError(error, secrets)
    }
  }
}

/** As a `ModelError`, without what the provider was sent in confidence: neither do its causes repeat it. */
function toSafeModelError(error: unknown, secrets: SentSecrets): ModelError {
  const failure = toModelFailure(error)
  const hidden = secrets.hideInFailure(failure)
  if (hidden !== null || secrets.occurIn(describeError(error))) return new ModelError(hidden ?? failure)
  return error instanceof ModelError ? error : new ModelError(failure, { cause: error })
}

function noNodeError(): ModelError {
  const message = 'The option dispatcher of the model needs Node: leave it out on this platform.'
  return new ModelError({ kind: 'fatal', code: 'dispatcher_needs_node', message })
}

const jsonHeaders = { 'content-type': 'application/json' }

/** Redirects are refused: the conversation goes only to the configured address. */
const noRedirects = { redirect: 'manual' as const }
