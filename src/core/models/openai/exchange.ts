import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import { type ModelRequest, ModelError, type ModelRequestOptions } from '../provider.js'
import { type AnswerFormat, closeTimeoutMs, AnswerReader, type ReadAnswerOptions } from './answer-reader.js'
import { createBodyEncoder, type RequestBody } from './encode-body.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { describeError } from '../../base/errors.js'
import { loadOnce } from '../../base/platform.js'
import { findSchemaFamily, fitTools } from '../fit-tools.js'
import { toModelFailure } from '../to-model-failure.js'
import { createPlainClient, createStatusError, isPlainClientEnough, loadClient } from './request-client.js'
import { findNodeHttp, getNodeHttp, type NodeHttp, postByDispatcher, postRequest } from './node-transport.js'
import type { ClientRequestOptions, OpenAIClient, OpenAIOptions } from './openai-options.js'
import { createSentSecrets } from './sent-secrets.js'
import type { CallAbort } from '../../base/abort.js'

export interface ApiWire {
  readonly path: string
  readonly format: AnswerFormat
  toBody(request: ModelRequest): RequestBody
  send(client: OpenAIClient, body: RequestBody, options: ClientRequestOptions): Promise<Response>
}

/**
 * Returns a function that sends one request and reads the response. It rejects with a `ModelError`. The client is
 * loaded with the first request.
 */
export function createExchange(options: OpenAIOptions, wire: ApiWire, provider: string) {
  const encode = createBodyEncoder()
  const { apiKey, dispatcher, timeoutMs } = options
  const secrets = createSentSecrets(options)
  const family = findSchemaFamily(provider, options.model)
  const noted =
    typeof apiKey === 'function' ? { ...options, apiKey: () => secrets.noteWhenReady(apiKey()) } : options
  const plain = createPlainClient(noted, wire.path)
  /** A failed load is retried, because the key may be set before the next request. */
  const load = loadOnce(() => loadClient(noted))

  function findNode(): NodeHttp | null {
    if (!dispatcher) return isPlainClientEnough(options) ? findNodeHttp() : null
    const node = getNodeHttp()
    if (node !== null) return node
    const message = 'The model option dispatcher requires Node. Remove it on this platform.'
    throw new ModelError({ kind: 'fatal', code: 'dispatcher_needs_node', message })
  }

  return async (
    original: ModelRequest,
    { onSent, onDelta, onToolCallDelta, onActivity, onHostedCall, onWarning }: ModelRequestOptions,
    abort: CallAbort,
  ): Promise<ModelResponse> => {
    const request = fitTools(original, family, onWarning)
    const streamed = request.stream ? { onDelta, onToolCallDelta } : { onDelta: () => undefined }
    const reading = { ...streamed, onActivity, onHostedCall, onWarning, format: wire.format, signal: abort }

    /** Takes less than half the CPU time of `fetch`, and avoids its 300-second limits. */
    const askOverNode = async (node: NodeHttp): Promise<ModelResponse> => {
      const outgoing = await plain.getOutgoing()
      const body = encode(wire.toBody(request))
      const sent = dispatcher
        ? postByDispatcher(dispatcher, outgoing, body, abort)
        : postRequest(node, outgoing, body, abort)
      onSent?.()
      const { statusCode, headers, body: compressed } = await sent
      onActivity('keep_alive')
      const source = readStream(decompressResponse(compressed, headers, node))
      if (statusCode >= 200 && statusCode <= 299) return await readAnswer(source, outgoing.url, reading)
      throw createStatusError(statusCode, await readText(source), toHeaders(headers))
    }

    const askByFetch = async (client: OpenAIClient): Promise<ModelResponse> => {
      const { signal } = abort
      const body = wire.toBody(request)
      const isOurs = options.client === undefined && options.fetch === undefined
      const sent = wire.send(client, body, {
        // Others may inspect the body, and Azure derives the URL from it, so they receive no bytes.
        ...(isOurs && {
          body: encode(body),
          headers: { 'content-type': 'application/json' },
          // The conversation is sent only to the configured address.
          fetchOptions: { redirect: 'manual' as const },
        }),
        signal,
        maxRetries: 0,
        ...(timeoutMs !== undefined && { timeout: timeoutMs }),
      })
      // The client prepares the request synchronously before it sends it.
      if (onSent) setTimeout(onSent, 0)
      const response = await sent
      onActivity('keep_alive')
      return await readFetchAnswer(response, { ...reading, signal })
    }

    let client: Pick<OpenAIClient, 'apiKey'> | undefined
    try {
      const node = findNode()
      if (node !== null) {
        client = plain
        return await askOverNode(node)
      }
      const whole = options.client ?? (await load())
      client = whole
      return await askByFetch(whole)
    } catch (error) {
      // At this point, the client has the key of this request.
      secrets.noteClient(client)
      const failure = toModelFailure(error)
      const hidden = secrets.hideInFailure(failure)
      if (hidden !== null || secrets.occurIn(describeError(error))) throw new ModelError(hidden ?? failure)
      throw error instanceof ModelError ? error : new ModelError(failure, { cause: error })
    }
  }
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
  const listed = headers['content-encoding']?.toLowerCase().match(/[^\s,]+/g) ?? []
  const codings = listed.filter((coding) => coding !== 'identity').reverse()
  const decoders = codings.flatMap((coding) => createDecoder(coding, node) ?? [])
  const last = decoders.at(-1)
  if (last === undefined || decoders.length < codings.length) return body
  // Errors from any stage are reported by the last stream.
  node.pipeline()([body, ...decoders], () => undefined)
  return last
}

function createDecoder(coding: string, node: NodeHttp): Duplex | null {
  const { constants, createBrotliDecompress, createGunzip, createInflate } = node.zlib()
  // Flushes each chunk immediately, and keeps the content of a truncated body.
  const flush = coding === 'br' ? constants.BROTLI_OPERATION_FLUSH : constants.Z_SYNC_FLUSH
  const flushed = { flush, finishFlush: flush }
  if (coding === 'gzip' || coding === 'x-gzip') return createGunzip(flushed)
  if (coding === 'deflate') return createInflate(flushed)
  return coding === 'br' ? createBrotliDecompress(flushed) : null
}

/** A response body. `end` is called at the end, or with the error that broke the body, and may be called again. */
interface AnswerSource {
  read(take: (text: string) => void, end: (broken?: unknown) => void): void
  destroy(): void
}

/** Reads with backpressure. Bodies from undici ignore `setEncoding` and emit bytes. */
function readStream(stream: Readable): AnswerSource {
  let decoder: TextDecoder | undefined
  return {
    read: (take, end) => {
      stream.setEncoding('utf8')
      stream.on('data', (piece: string | Uint8Array) => {
        if (typeof piece === 'string') return take(piece)
        decoder ??= new TextDecoder('utf-8', { ignoreBOM: true })
        return take(decoder.decode(piece, { stream: true }))
      })
      stream.on('end', () => end())
      stream.on('error', (error) => end(new Error('terminated', { cause: error })))
      // Every body closes. An error is created only for a break, because its stack is expensive.
      stream.on('close', () => {
        if (!stream.readableEnded) end(new Error('premature close'))
      })
    },
    destroy: () => void stream.destroy(),
  }
}

function readReader(reader: ReadableStreamDefaultReader<Uint8Array>, signal: AbortSignal): AnswerSource {
  const destroy = (): void => void reader.cancel(signal.reason).catch(() => undefined)
  const readAll = async (take: (text: string) => void): Promise<void> => {
    const decoder = new TextDecoder()
    for (;;) {
      const { done, value } = await reader.read()
      // A canceled reader reports `done`.
      signal.throwIfAborted()
      if (done) return take(decoder.decode())
      take(decoder.decode(value, { stream: true }))
    }
  }
  return {
    read: (take, end) => {
      signal.addEventListener('abort', destroy, { once: true })
      void readAll(take)
        .finally(() => signal.removeEventListener('abort', destroy))
        .then(
          () => end(),
          // A stream may fail without an error.
          (error: unknown) => end(error ?? new Error('terminated')),
        )
    },
    destroy,
  }
}

/** @throws ModelError with the partial text, or the reason of the abort */
function readAnswer(source: AnswerSource, url: string, options: ReadAnswerOptions): Promise<ModelResponse> {
  const answer = new AnswerReader(url, options)
  return new Promise((resolve, reject) => {
    let settled = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const fail = (error: unknown): void => {
      if (settled) return
      settled = true
      reject(answer.toFailure(error) as Error)
      source.destroy()
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
    const take = (text: string): void => {
      // The rest is read as well, so that the connection can be reused.
      if (settled) return
      try {
        answer.push(text)
      } catch (error) {
        fail(error)
        return
      }
      if (answer.ended) finish()
      if (!answer.ended && !answer.finished) return
      // Some servers never close the stream after the last chunk.
      timer ??= setTimeout(() => {
        finish()
        source.destroy()
      }, closeTimeoutMs)
    }
    source.read(take, (broken) => {
      clearTimeout(timer)
      if (broken === undefined) return finish()
      const whole = settled ? null : answer.finishBroken()
      if (whole === null) return fail(broken)
      settled = true
      return resolve(whole)
    })
  })
}

const maxErrorChars = 1024 * 1024

/** Reads the body up to the limit or the point where it broke off. Never rejects. */
function readText(source: AnswerSource): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const take = (piece: string): void => {
      text += piece
      if (text.length > maxErrorChars) source.destroy()
    }
    source.read(take, () => resolve(text))
  })
}

/** @throws ModelError with the partial text, or the reason of the abort */
export async function readFetchAnswer(
  { body, url }: Response,
  options: ReadAnswerOptions & { signal: AbortSignal },
): Promise<ModelResponse> {
  return body === null
    ? new AnswerReader(url, options).finish()
    : readAnswer(readReader(body.getReader(), options.signal), url, options)
}
