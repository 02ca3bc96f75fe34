import { createParser } from 'eventsource-parser'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { asObject } from '../../base/values.js'
import { isMarkup } from '../error-body.js'
import { toBodyFailure, toModelFailure } from '../to-model-failure.js'
import { parseJsonOr } from '../../base/json.js'
import { type HostedCall, ModelError, type ModelRequestOptions, type ToolCallDelta } from '../provider.js'

export type AnswerCallbacks = Pick<ModelRequestOptions, 'onDelta' | 'onActivity'> & {
  [Key in 'onToolCallDelta' | 'onHostedCall' | 'onWarning']?: ModelRequestOptions[Key] | undefined
}

export type ReadAnswerOptions = AnswerCallbacks & {
  format: AnswerFormat
  /** The abort signal, which is checked between chunks. */
  signal: Pick<AbortSignal, 'aborted' | 'reason'>
}

/** Detects the form of the body, because some servers ignore the wanted form and the content type. */
export function createAnswerReader(url: string, options: ReadAnswerOptions) {
  const { format, signal, onDelta, onActivity, onToolCallDelta, onHostedCall, onWarning } = options
  const fold = format.createFold(onToolCallDelta !== undefined)
  let body: BodyReader | null = null
  let ended = false
  let text = ''
  let reasoning = ''

  /** The first non-blank character determines the form of the body. */
  function createBody(start: string): BodyReader {
    if (/^[{[]/.test(start)) return createJsonReader(takeDocument)
    // First letters of event stream fields and comments.
    if (!/^[deir:]/.test(start))
      throw invalidResponseError(url, isMarkup(start) ? 'a web page' : 'neither JSON nor an event stream')
    return { ...createSseReader({ onJson, onText }), getProgress: () => fold.progress }
  }

  function onJson(value: unknown, event: string): void {
    if (ended) return
    const isError = event === 'error' && asObject(value)?.error === undefined
    show(fold.push(isError ? { error: value } : value))
    ended = fold.ended
  }

  function onText(data: string, event: string): void {
    if (ended) return
    if (data.trim() === '[DONE]') ended = true
    else if (event === 'error') throw new ModelError(toBodyFailure(data))
    else if (data.startsWith('{')) fold.markLost()
  }

  function takeDocument(value: unknown): void {
    const first: unknown = Array.isArray(value) ? value[0] : value
    const delta = fold.push(first, true)
    if (!format.isWhole(first)) throw invalidResponseError(url, `JSON that is not a ${format.displayName}`)
    show(delta)
    ended = true
  }

  function show(delta: Delta): void {
    const { calls, hosted, warnings } = delta
    // A delta callback may abort the request.
    if (signal.aborted) throw signal.reason
    // Within one delta, reasoning comes before text.
    if (delta.reasoning !== '' && text !== '') report()
    text += delta.text
    reasoning += delta.reasoning
    if (calls === undefined && hosted === undefined && warnings === undefined) return
    report()
    for (const call of calls ?? []) onToolCallDelta?.(call)
    for (const call of hosted ?? []) onHostedCall?.(call)
    for (const { code, message } of warnings ?? []) onWarning?.(code, message)
  }

  function report(): void {
    const [words, thoughts] = [text, reasoning]
    if (words === '' && thoughts === '') return
    text = reasoning = ''
    if (!signal.aborted) onDelta(words, thoughts)
  }

  function close(): ModelResponse {
    show(fold.flush())
    report()
    return fold.getResponse(ended)
  }

  return {
    /** Whether the provider has announced the end of the response. Later data is ignored. */
    get ended(): boolean {
      return ended
    },

    /** Whether the answer is complete. Remaining data is then awaited only briefly. */
    get finished(): boolean {
      return fold.finished
    },

    /** Reports the text of a chunk in one piece. @throws ModelError, or the reason of the abort */
    push(chunk: string): void {
      const before = body?.getProgress() ?? 0
      const start = body === null ? chunk.trimStart() : chunk
      try {
        if (start !== '') (body ??= createBody(start)).push(start)
      } finally {
        report()
      }
      onActivity((body?.getProgress() ?? 0) > before ? 'content' : 'keep_alive')
    },

    /** Call this at the end of the body. @throws like push */
    finish(): ModelResponse {
      body?.end()
      return close()
    },

    /** The response if the connection broke after its end, or null if it is incomplete. */
    finishBroken(): ModelResponse | null {
      if (signal.aborted) return null
      try {
        body?.end()
        return fold.finished || ended ? close() : null
      } catch {
        return null
      }
    },

    /** Converts an exception to the abort reason, or to a `ModelError` with the partial text. */
    toFailure(error: unknown): unknown {
      if (signal.aborted) return signal.reason
      const { text: partialText, usage } = fold.getPartial()
      const failure = toModelFailure(error)
      return new ModelError({ ...failure, partialText, usage: failure.usage ?? usage }, { cause: error })
    },
  }
}

interface BodyReader {
  /** A counter of the received data, without comments and empty events. */
  getProgress(): number
  push(text: string): void
  end(): void
}

function createJsonReader(take: (value: unknown) => void): BodyReader {
  let whole = ''
  return {
    getProgress: () => whole.length,
    push: (text) => refuseTooLarge((whole += text).length),
    end: () => {
      const value = parseJsonOr(whole, undefined)
      if (value !== undefined) take(value)
    },
  }
}

function invalidResponseError(url: string, what: string): ModelError {
  return new ModelError({
    kind: 'fatal',
    code: 'invalid_response',
    message: `${url || 'The provider'} returned ${what}. The base URL is probably wrong: it usually ends in /v1.`,
  })
}

export interface AnswerFormat {
  readonly displayName: string
  isWhole(value: unknown): boolean
  /** `reportsCalls` sets whether deltas include parts of tool calls. */
  createFold(reportsCalls?: boolean): ResponseFold
}

export interface ResponseFold {
  readonly progress: number
  readonly ended: boolean
  /** Whether the content is complete. Usage or `[DONE]` may still follow. */
  readonly finished: boolean
  /** Adds an event, or a document (`whole`), and returns the visible change. @throws ModelError for errors */
  push(piece: unknown, whole?: boolean): Delta
  /** Records that an event was lost. The response then has a gap, unless its end was announced before. */
  markLost(): void
  /** Returns buffered text. Call it once, at the end. */
  flush(): Delta
  /** `ended` means that the provider sent `[DONE]`. @throws ModelError for an unusable answer */
  getResponse(ended: boolean): ModelResponse
  getPartial(): Pick<ModelResponse, 'text' | 'usage'>
}

export interface Delta {
  text: string
  reasoning: string
  calls?: readonly ToolCallDelta[]
  hosted?: readonly HostedCall[]
  warnings?: readonly Warning[]
}

export interface Warning {
  code: string
  message: string
}

export const noDelta: Readonly<Delta> = Object.freeze({ text: '', reasoning: '' })

/** Maximum characters in an event, a body or a response. */
const maxResponseLength = 64 * 1024 * 1024

/** Milliseconds to wait for usage, `[DONE]` and the end of the connection after a whole answer. */
export const closeTimeoutMs = 1000

export function refuseTooLarge(length: number): void {
  if (length <= maxResponseLength) return
  throw new ModelError({
    kind: 'fatal',
    code: 'response_too_large',
    message: `The provider's answer is larger than ${maxResponseLength / 1024 / 1024} MB. Check the base URL and what the server sends.`,
  })
}

/** Reads events that carry a JSON object or text (`[DONE]`). The end of the stream ends the last event. */
export function createSseReader(handler: SseHandler): Pick<BodyReader, 'push' | 'end'> {
  const parser = createParser({
    onEvent: ({ data, event = '' }) => readEvent(data, event.trim(), handler),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') refuseTooLarge(Infinity)
    },
    maxBufferSize: maxResponseLength,
  })
  return { push: (text) => parser.feed(text), end: () => parser.feed('\n\n') }
}

interface SseHandler {
  onJson: (value: unknown, event: string) => void
  onText: (data: string, event: string) => void
}

function readEvent(data: string, event: string, handler: SseHandler): void {
  const value = data.trimStart().startsWith('{') ? parseJsonOr(data, undefined) : undefined
  if (value !== undefined) handler.onJson(value, event)
  // Some servers omit the blank lines between events.
  else if (data.includes('\n')) for (const line of data.split('\n')) readEvent(line, event, handler)
  else if (data !== '') handler.onText(data, event)
}
