import { createParser } from 'eventsource-parser'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { asObject } from '../../base/values.js'
import { isMarkup } from '../error-body.js'
import { toBodyFailure, toModelFailure } from '../to-model-failure.js'
import { parseJsonOr } from '../../base/json.js'
import { type HostedCall, ModelError, type ToolCallDelta } from '../provider.js'

export interface ReadAnswerOptions {
  format: AnswerFormat
  /** The abort signal, which is checked between chunks. */
  signal: Pick<AbortSignal, 'aborted' | 'reason'>
  onDelta: (text: string, reasoning: string) => void
  onToolCall?: ((delta: ToolCallDelta) => void) | undefined
  onActivity: (kind: 'content' | 'keep_alive') => void
  onHosted?: ((call: HostedCall) => void) | undefined
  onWarning?: ((code: string, message: string) => void) | undefined
}

/** Detects the form of the body, because some servers ignore the wanted form and the content type. */
export class AnswerReader {
  readonly #url: string
  readonly #options: ReadAnswerOptions
  readonly #fold: ResponseFold
  #body: BodyReader | null = null
  #ended = false
  #text = ''
  #reasoning = ''

  constructor(url: string, options: ReadAnswerOptions) {
    this.#url = url
    this.#options = options
    this.#fold = options.format.createFold(options.onToolCall !== undefined)
  }

  /** Whether the provider has announced the end of the response. Later data is ignored. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether the answer is complete. Remaining data is then awaited only briefly. */
  get finished(): boolean {
    return this.#fold.finished
  }

  /** Reports the text of a chunk in one piece. @throws ModelError, or the reason of the abort */
  push(text: string): void {
    const before = this.#body?.getProgress() ?? 0
    const start = this.#body === null ? text.trimStart() : text
    try {
      if (start !== '') (this.#body ??= this.#createBody(start)).push(start)
    } finally {
      this.#report()
    }
    this.#options.onActivity((this.#body?.getProgress() ?? 0) > before ? 'content' : 'keep_alive')
  }

  /** Call this at the end of the body. @throws like push */
  finish(): ModelResponse {
    this.#body?.end()
    return this.#close()
  }

  #close(): ModelResponse {
    this.#show(this.#fold.flush())
    this.#report()
    return this.#fold.getResponse(this.#ended)
  }

  /** The response if the connection broke after its end, or null if it is incomplete. */
  finishBroken(): ModelResponse | null {
    if (this.#options.signal.aborted) return null
    try {
      this.#body?.end()
      return this.finished || this.#ended ? this.#close() : null
    } catch {
      return null
    }
  }

  /** Converts an exception to the abort reason, or to a `ModelError` with the partial text. */
  toFailure(error: unknown): unknown {
    const { signal } = this.#options
    return signal.aborted ? signal.reason : addPartial(error, this.#fold)
  }

  /** The first non-blank character determines the form of the body. */
  #createBody(start: string): BodyReader {
    if (/^[{[]/.test(start)) return createJsonReader((whole) => this.#takeDocument(whole))
    // First letters of event stream fields and comments.
    if (!/^[deir:]/.test(start))
      throw invalidResponseError(
        this.#url,
        isMarkup(start) ? 'a web page' : 'neither JSON nor an event stream',
      )
    const reader = createSseReader({
      onJson: (value, event) => this.#onJson(value, event),
      onText: (data, event) => this.#onText(data, event),
    })
    return { ...reader, getProgress: () => this.#fold.progress }
  }

  #onJson(value: unknown, event: string): void {
    if (this.#ended) return
    const isError = event === 'error' && asObject(value)?.error === undefined
    this.#show(this.#fold.push(isError ? { error: value } : value))
    this.#ended = this.#fold.ended
  }

  #onText(data: string, event: string): void {
    if (this.#ended) return
    if (data.trim() === '[DONE]') this.#ended = true
    else if (event === 'error') throw new ModelError(toBodyFailure(data))
    else if (data.startsWith('{')) this.#fold.markLost()
  }

  #takeDocument(value: unknown): void {
    const { format } = this.#options
    const first: unknown = Array.isArray(value) ? value[0] : value
    const delta = this.#fold.push(first, true)
    if (!format.isWhole(first))
      throw invalidResponseError(this.#url, `JSON that is not a ${format.displayName}`)
    this.#show(delta)
    this.#ended = true
  }

  #show({ text, reasoning, calls, hosted, warnings }: Delta): void {
    const { signal, onToolCall, onHosted, onWarning } = this.#options
    // A delta callback may abort the request.
    if (signal.aborted) throw signal.reason
    // Within one delta, reasoning comes before text.
    if (reasoning !== '' && this.#text !== '') this.#report()
    this.#text += text
    this.#reasoning += reasoning
    if (calls === undefined && hosted === undefined && warnings === undefined) return
    this.#report()
    for (const call of calls ?? []) onToolCall?.(call)
    for (const call of hosted ?? []) onHosted?.(call)
    for (const { code, message } of warnings ?? []) onWarning?.(code, message)
  }

  #report(): void {
    const [text, reasoning] = [this.#text, this.#reasoning]
    if (text === '' && reasoning === '') return
    this.#text = this.#reasoning = ''
    if (!this.#options.signal.aborted) this.#options.onDelta(text, reasoning)
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

function addPartial(error: unknown, fold: ResponseFold): ModelError {
  const { text, usage } = fold.getPartial()
  const failure = toModelFailure(error)
  return new ModelError({ ...failure, partialText: text, usage: failure.usage ?? usage }, { cause: error })
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
