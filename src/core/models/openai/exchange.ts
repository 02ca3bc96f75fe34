import { type ModelRequest, ModelError, type ModelRequestOptions } from '../provider.js'
import {
  type AnswerFormat,
  AnswerReader,
  type ReadAnswerOptions,
  closeTimeoutMs,
  trailingTimeoutMs,
} from './answer-reader.js'
import type { RequestBody } from './encode-body.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { describeError } from '../../base/errors.js'
import { loadOnce } from '../../base/platform.js'
import { findSchemaFamily, fitTools } from '../fit-tools.js'
import { toModelFailure } from '../to-model-failure.js'
import {
  loadClient,
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
import { SentSecrets } from './sent-secrets.js'
import type { IncomingHttpHeaders } from 'node:http'
import type { CallAbort } from '../../base/abort.js'
import type { Duplex, Readable } from 'node:stream'

export interface ApiWire {
  readonly path: string
  readonly format: AnswerFormat
  readonly bodies: {
    body(request: ModelRequest): RequestBody
    encode(body: RequestBody): Uint8Array<ArrayBuffer>
  }
  send(client: OpenAIClient, body: RequestBody, options: ClientRequestOptions): Promise<Response>
}

export type Exchange = (request: ModelRequest, options: ExchangeOptions) => Promise<ModelResponse>

/** Creates the exchange of an API. The client is loaded with the first request. */
export function createExchange(options: OpenAIOptions, wire: ApiWire, provider: string): Exchange {
  const { path, format, bodies } = wire
  const secrets = new SentSecrets(options)
  const family = findSchemaFamily(provider, options.model)
  const { apiKey, dispatcher } = options
  /** A dispatcher is used regardless of the app's `fetch`. */
  const findNode = dispatcher ? getNodeHttp : findNodeHttp
  const noted =
    typeof apiKey === 'function' ? { ...options, apiKey: () => secrets.noteWhenReady(apiKey()) } : options

  const load = loadOnce(() => loadClient(noted, path))

  async function askByFetch(
    client: OpenAIClient,
    body: RequestBody,
    isOurs: boolean,
    { abort, ...callbacks }: ExchangeOptions,
  ): Promise<ModelResponse> {
    // They may inspect the body, and Azure derives the URL from it, so they receive no bytes.
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
      // At this point, the client has the key of this request.
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

/** Redirects are rejected, so that the conversation is sent only to the configured address. */
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
  readonly dispatcher: RequestDispatcher | undefined
}

/**
 * Sends one request over Node's HTTP or a dispatcher, with the URL and headers that the client would use. This takes
 * less than half the CPU time of `fetch` and avoids its 300-second limits.
 *
 * @throws the client's error for an error status or a failed connection; otherwise the same errors as
 * `readFetchAnswer`
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

/** Returns the body unchanged for an unknown encoding. */
function decompressResponse(body: Readable, headers: IncomingHttpHeaders, node: NodeHttp): Readable {
  const codings = (headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity')
  if (codings.length === 0) return body
  const decoders = codings.reverse().flatMap((coding) => createDecoder(coding, node) ?? [])
  const last = decoders.at(-1)
  if (last === undefined || decoders.length < codings.length) return body
  // Errors from any stage are reported by the last stream.
  node.pipeline()([body, ...decoders], () => undefined)
  return last
}

function createDecoder(coding: string, node: NodeHttp): Duplex | null {
  const { constants, createBrotliDecompress, createGunzip, createInflate } = node.zlib()
  // Flushes each chunk immediately, and keeps the content of a truncated body.
  const flushed = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }
  if (coding === 'gzip' || coding === 'x-gzip') return createGunzip(flushed)
  if (coding === 'deflate') return createInflate(flushed)
  if (coding !== 'br') return null
  const flush = constants.BROTLI_OPERATION_FLUSH
  return createBrotliDecompress({ flush, finishFlush: flush })
}

/** Reads with backpressure. @throws ModelError with the partial text, or the reason of the abort */
function readNodeAnswer(stream: Readable, url: string, options: ReadAnswerOptions): Promise<ModelResponse> {
  const answer = new AnswerReader(url, options)
  return new Promise((resolve, reject) => {
    let settled = false
    const fail = (error: unknown): void => {
      if (settled) return
      settled = true
      reject(answer.toFailure(error) as Error)
      stream.destroy()
    }
    const breakOff = (error: unknown): void => {
      const whole = settled ? null : answer.finishBroken()
      if (whole === null) return fail(error)
      settled = true
      resolve(whole)
    }
    const finish = (): void => {
      if (settled) return
      try {
        resolve(answer.finish())
        settled = true
      } catch (error) {
        fail(error)
      }
    }
    let trailing: ReturnType<typeof setTimeout> | undefined
    const awaitRest = (): void => {
      trailing ??= setTimeout(() => {
        finish()
        stream.destroy()
      }, trailingTimeoutMs)
    }
    onText(stream, (text) => {
      // The rest is read as well, so that the connection can be reused.
      if (settled) return
      try {
        answer.push(text)
      } catch (error) {
        fail(error)
        return
      }
      if (answer.ended) {
        finish()
        closeSoon(stream)
      } else if (answer.finished) awaitRest()
    })
    stream.on('end', finish)
    stream.on('error', (error) => breakOff(new Error('terminated', { cause: error })))
    stream.on('close', () => {
      clearTimeout(trailing)
      if (!settled) breakOff(new Error('premature close'))
    })
  })
}

function closeSoon(stream: Readable): void {
  const giveUp = setTimeout(() => stream.destroy(), closeTimeoutMs)
  stream.on('close', () => clearTimeout(giveUp))
}

/** Calls back with the text of each chunk. Bodies from undici ignore `setEncoding` and emit bytes. */
function onText(stream: Readable, take: (text: string) => void): void {
  let decoder: TextDecoder | undefined
  stream.setEncoding('utf8')
  stream.on('data', (piece: string | Uint8Array) => {
    if (typeof piece === 'string') return take(piece)
    decoder ??= new TextDecoder('utf-8', { ignoreBOM: true })
    return take(decoder.decode(piece, { stream: true }))
  })
}

const maxErrorChars = 1024 * 1024

/** Reads the body up to the limit or the point where it broke off. Never rejects. */
function readText(stream: Readable): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const done = (): void => resolve(text)
    onText(stream, (piece) => {
      text += piece
      if (text.length > maxErrorChars) stream.destroy()
    })
    stream.on('end', done)
    stream.on('error', done)
    stream.on('close', done)
  })
}

/** @throws ModelError with the partial text, or the reason of the abort */
export async function readFetchAnswer(
  response: Response,
  options: ReadAnswerOptions & { signal: AbortSignal },
): Promise<ModelResponse> {
  const { signal } = options
  const answer = new AnswerReader(response.url, options)
  if (response.body === null) return answer.finish()
  const reader = response.body.getReader()
  const cancel = () => void reader.cancel(signal.reason).catch(() => undefined)
  signal.addEventListener('abort', cancel, { once: true })
  let trailing: ReturnType<typeof setTimeout> | undefined
  let isBroken = false
  try {
    const decoder = new TextDecoder()
    while (!answer.ended) {
      if (answer.finished) trailing ??= setTimeout(cancel, trailingTimeoutMs)
      isBroken = true
      const { done, value } = await reader.read()
      isBroken = false
      // A canceled reader reports `done`.
      signal.throwIfAborted()
      if (done) break
      answer.push(decoder.decode(value, { stream: true }))
    }
    answer.push(decoder.decode())
    const response = answer.finish()
    if (answer.ended) void drainBody(reader)
    return response
  } catch (error) {
    const whole = isBroken ? answer.finishBroken() : null
    if (whole !== null) return whole
    if (!signal.aborted) cancel()
    throw answer.toFailure(error)
  } finally {
    clearTimeout(trailing)
    signal.removeEventListener('abort', cancel)
  }
}

/** Reads the rest of the body in the background, so that the connection can be reused. */
async function drainBody(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const giveUp = setTimeout(() => void reader.cancel().catch(() => undefined), closeTimeoutMs)
  try {
    while (!(await reader.read()).done);
  } catch {
    // The response is complete, so errors on its connection are ignored.
  } finally {
    clearTimeout(giveUp)
  }
}
