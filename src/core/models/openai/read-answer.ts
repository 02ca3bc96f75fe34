import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { AnswerReader, type ReadAnswerOptions, closeTimeoutMs, trailingTimeoutMs } from './answer-reader.js'
import type { NodeHttp } from './node-transport.js'

/** Returns the body unchanged for an unknown encoding. */
export function decompressResponse(body: Readable, headers: IncomingHttpHeaders, node: NodeHttp): Readable {
  const codings = (headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity')
  if (codings.length === 0) return body
  const decoders = codings.reverse().flatMap((coding) => createDecoder(coding, node) ?? [])
  const last = decoders.at(-1)
  if (last === undefined || decoders.length < codings.length) return body
  // An error in any stage is reported by the last stream.
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

/**
 * Reads a response from a Node stream with backpressure.
 *
 * @throws ModelError with the partial text; the signal's reason when it aborts.
 */
export function readNodeAnswer(
  stream: Readable,
  url: string,
  options: ReadAnswerOptions,
): Promise<ModelResponse> {
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
    /** Some servers never close the stream after the last chunk. */
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

/** Calls back with the text of each chunk. Bodies of undici ignore `setEncoding` and emit bytes. */
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

/** Returns the body, up to the limit or the point where it broke off. Never rejects. */
export function readText(stream: Readable): Promise<string> {
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

/**
 * Reads a response from `fetch`.
 *
 * @throws ModelError with the partial text; the signal's reason when it aborts.
 */
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
  /** Whether a connection error is being handled, rather than an error of the response. */
  let isBroken = false
  try {
    const decoder = new TextDecoder()
    while (!answer.ended) {
      // Some servers never close the stream after the last chunk.
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
    // The response is complete, so errors of its connection are ignored.
  } finally {
    clearTimeout(giveUp)
  }
}
