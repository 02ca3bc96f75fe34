import { createParser, type EventSourceParser } from 'eventsource-parser'
import type { JsonObject } from '../../../../machines/agent/json.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { isMarkup } from '../error-body.js'
import { toBodyFailure, toModelFailure } from '../to-model-failure.js'
import { parseJsonOr } from '../../base/json.js'
import { type HostedCall, ModelError, type ModelRequestOptions, type ToolCallDelta } from '../provider.js'

export type ReadAnswerOptions = Pick<ModelRequestOptions, 'onDelta' | 'onActivity'> & {
  [Key in 'onToolCallDelta' | 'onHostedCall' | 'onWarning']?: ModelRequestOptions[Key] | undefined
} & {
  format: AnswerFormat
  /** The abort signal, which is checked between chunks. */
  signal: Pick<AbortSignal, 'aborted' | 'reason'>
}

/** Detects the form of the body, because some servers ignore the wanted form and the content type. */
export class AnswerReader {
  readonly #url: string
  readonly #options: ReadAnswerOptions
  readonly #fold: ResponseFold
  /** Set if the body is an event stream. */
  #parser: EventSourceParser | undefined
  /** The text so far if the body is a JSON document. */
  #document: string | undefined
  #text = ''
  #reasoning = ''
  /** Whether the provider has announced the end of the response. Later data is ignored. */
  ended = false

  constructor(url: string, options: ReadAnswerOptions) {
    this.#url = url
    this.#options = options
    this.#fold = options.format.createFold(options.onToolCallDelta !== undefined)
  }

  /** Whether the answer is complete. Remaining data is then awaited only briefly. */
  get finished(): boolean {
    return this.#fold.finished
  }

  /** Reports the text of a chunk in one piece. @throws ModelError, or the reason of the abort */
  push(chunk: string): void {
    const before = this.#progress
    try {
      this.#feed(chunk)
    } finally {
      this.#report()
    }
    this.#options.onActivity(this.#progress > before ? 'content' : 'keep_alive')
  }

  /** Call this at the end of the body. @throws like push */
  finish(): ModelResponse {
    this.#endBody()
    return this.#close()
  }

  /** The response if the connection broke after its end, or null if it is incomplete. */
  finishBroken(): ModelResponse | null {
    if (this.#options.signal.aborted) return null
    try {
      this.#endBody()
      return this.finished || this.ended ? this.#close() : null
    } catch {
      return null
    }
  }

  /** Converts an exception to the abort reason, or to a `ModelError` with the partial text. */
  toFailure(error: unknown): unknown {
    const { signal } = this.#options
    if (signal.aborted) return signal.reason
    const { text: partialText, usage } = this.#fold.getPartial()
    const failure = toModelFailure(error)
    return new ModelError({ ...failure, partialText, usage: failure.usage ?? usage }, { cause: error })
  }

  /** A counter of the received data, without comments and empty events. */
  get #progress(): number {
    return this.#document?.length ?? this.#fold.progress
  }

  /** The first non-blank character determines the form of the body. */
  #feed(text: string): void {
    if (this.#parser) return this.#parser.feed(text)
    if (this.#document !== undefined) return refuseTooLarge((this.#document += text).length)
    const start = text.trimStart()
    if (start === '') return
    if (/^[{[]/.test(start)) this.#document = ''
    // First letters of event stream fields and comments.
    else if (/^[deir:]/.test(start)) this.#parser = createEventParser(this.#takeEvent)
    else
      throw invalidResponseError(
        this.#url,
        isMarkup(start) ? 'a web page' : 'neither JSON nor an event stream',
      )
    this.#feed(start)
  }

  #endBody(): void {
    if (this.#parser) return this.#parser.feed('\n\n')
    const value = parseJsonOr(this.#document ?? '', undefined)
    if (value !== undefined) this.#takeDocument(value)
  }

  readonly #takeEvent = (value: JsonObject | string, event: string): void => {
    if (this.ended) return
    if (typeof value !== 'string') {
      this.#show(this.#fold.push(event === 'error' && value.error === undefined ? { error: value } : value))
      this.ended = this.#fold.ended
    } else if (value.trim() === '[DONE]') this.ended = true
    else if (event === 'error') throw new ModelError(toBodyFailure(value))
    else if (value.startsWith('{')) this.#fold.markLost()
  }

  #takeDocument(value: unknown): void {
    const { format } = this.#options
    const first: unknown = Array.isArray(value) ? value[0] : value
    const delta = this.#fold.push(first, true)
    if (!format.isWhole(first))
      throw invalidResponseError(this.#url, `JSON that is not a ${format.displayName}`)
    this.#show(delta)
    this.ended = true
  }

  #show({ text, reasoning, calls, hosted, warnings }: Delta): void {
    const { signal, onToolCallDelta, onHostedCall, onWarning } = this.#options
    // A delta callback may abort the request.
    if (signal.aborted) throw signal.reason
    // Within one delta, reasoning comes before text.
    if (reasoning !== '' && this.#text !== '') this.#report()
    this.#text += text
    this.#reasoning += reasoning
    if (calls === undefined && hosted === undefined && warnings === undefined) return
    this.#report()
    for (const call of calls ?? []) onToolCallDelta?.(call)
    for (const call of hosted ?? []) onHostedCall?.(call)
    for (const { code, message } of warnings ?? []) onWarning?.(code, message)
  }

  #report(): void {
    const [words, thoughts] = [this.#text, this.#reasoning]
    if (words === '' && thoughts === '') return
    this.#text = this.#reasoning = ''
    if (!this.#options.signal.aborted) this.#options.onDelta(words, thoughts)
  }

  #close(): ModelResponse {
    this.#show(this.#fold.flush())
    this.#report()
    return this.#fold.getResponse(this.ended)
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

type TakeEvent = (value: JsonObject | string, event: string) => void

/** Parses events that carry a JSON object or text (`[DONE]`). Two line feeds end the last event. */
export function createEventParser(take: TakeEvent): EventSourceParser {
  return createParser({
    onEvent: ({ data, event = '' }) => takeData(data, event.trim(), take),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') refuseTooLarge(Infinity)
    },
    maxBufferSize: maxResponseLength,
  })
}

function takeData(data: string, event: string, take: TakeEvent): void {
  const value = data.trimStart().startsWith('{') ? parseJsonOr(data, undefined) : undefined
  if (value !== undefined) take(value as JsonObject, event)
  // Some servers omit the blank lines between events.
  else if (data.includes('\n')) for (const line of data.split('\n')) takeData(line, event, take)
  else if (data !== '') take(data, event)
}
