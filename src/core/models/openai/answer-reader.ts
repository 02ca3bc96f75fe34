import { createParser } from 'eventsource-parser'
import type { ModelFailure, ModelResponse } from '../../../../machines/agent/model-response.js'
import { asObject } from '../../base/values.js'
import { isMarkup } from '../error-body.js'
import { toBodyFailure, toModelFailure } from '../to-model-failure.js'
import { parseJsonOr } from '../../base/json.js'
import { type HostedCall, ModelError, type ToolCallDelta } from '../provider.js'

export interface ReadAnswerOptions {
  /** What kind of answer it is. */
  format: AnswerFormat
  /** Asked between two pieces. */
  signal: Pick<AbortSignal, 'aborted' | 'reason'>
  onDelta: (text: string, reasoning: string) => void
  onToolCall?: ((delta: ToolCallDelta) => void) | undefined
  onActivity: (kind: 'content' | 'keep_alive') => void
  onHosted?: ((call: HostedCall) => void) | undefined
  onWarning?: ((code: string, message: string) => void) | undefined
}

/**
 * Reads the body of an answer, streamed or whole, however it is carried here: what comes decides which it is, because
 * servers answer either request either way, under any content type. `url` is for errors.
 */
export class AnswerReader {
  readonly #url: string
  readonly #options: ReadAnswerOptions
  readonly #fold: AnswerFold
  #body: BodyReader | null = null
  #ended = false
  /** What the present piece has added, and has not been told yet. */
  #text = ''
  #reasoning = ''

  constructor(url: string, options: ReadAnswerOptions) {
    this.#url = url
    this.#options = options
    this.#fold = options.format.createFold(options.onToolCall !== undefined)
  }

  /** Whether the provider has announced the end: what comes now is no part of the answer. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether nothing is missing of it: what may still come is not waited for long. */
  get finished(): boolean {
    return this.#fold.finished
  }

  /**
   * Takes the next piece of the body. All text that it brings is told at once: a piece often has several events.
   * @throws ModelError for errors in it, the signal's reason when it aborts.
   */
  push(text: string): void {
    const before = this.#body?.progress ?? 0
    try {
      this.#push(text)
    } finally {
      this.#tell()
    }
    this.#options.onActivity((this.#body?.progress ?? 0) > before ? 'content' : 'keep_alive')
  }

  /** The answer, when nothing more comes. @throws like push */
  finish(): ModelResponse {
    this.#body?.end()
    return this.#close()
  }

  #close(): ModelResponse {
    this.#show(this.#fold.flush())
    this.#tell()
    return this.#fold.getResponse(this.#ended)
  }

  /** The answer where the connection broke after its end; null where a part of it is missing. */
  finishBroken(): ModelResponse | null {
    if (this.#options.signal.aborted) return null
    try {
      this.#body?.end()
      return this.finished || this.#ended ? this.#close() : null
    } catch {
      return null
    }
  }

  /** What an exception midway stands for: the signal's reason, or a `ModelError` with the text that had come. */
  toFailure(error: unknown): unknown {
    const { signal } = this.#options
    return signal.aborted ? signal.reason : addPartial(error, this.#fold)
  }

  #push(text: string): void {
    const start = this.#body === null ? text.trimStart() : text
    if (start === '') return
    this.#body ??= this.#createBody(start)
    this.#body.push(start)
  }

  /** Chooses how to read by the first character that is no white space. */
  #createBody(start: string): BodyReader {
    if (/^[{[]/.test(start)) return new JsonBody((whole) => this.#takeDocument(whole))
    // The first letters of an event stream's fields, and its comments.
    if (/^[deir:]/.test(start)) return this.#createEventBody()
    throw invalidResponseError(this.#url, isMarkup(start) ? 'a web page' : 'neither JSON nor an event stream')
  }

  #createEventBody(): BodyReader {
    const fold = this.#fold
    const reader = createSseReader({
      onJson: (value, event) => this.#onJson(value, event),
      onText: (data, event) => this.#onText(data, event),
    })
    return {
      ...reader,
      get progress() {
        return fold.progress
      },
    }
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
    if (!format.isWhole(first)) throw invalidResponseError(this.#url, `JSON that is no ${format.displayName}`)
    this.#show(delta)
    this.#ended = true
  }

  #show({ text, reasoning, calls, hosted, warnings }: Delta): void {
    const { signal, onToolCall, onHosted, onWarning } = this.#options
    // A reader of the deltas may abort between two of them.
    if (signal.aborted) throw signal.reason
    // Of one delta, the reasoning comes before the text.
    if (reasoning !== '' && this.#text !== '') this.#tell()
    this.#text += text
    this.#reasoning += reasoning
    if (calls === undefined && hosted === undefined && warnings === undefined) return
    this.#tell()
    if (calls !== undefined) for (const call of calls) onToolCall?.(call)
    if (hosted !== undefined) for (const call of hosted) onHosted?.(call)
    if (warnings !== undefined) for (const { code, message } of warnings) onWarning?.(code, message)
  }

  #tell(): void {
    const [text, reasoning] = [this.#text, this.#reasoning]
    if (text === '' && reasoning === '') return
    this.#text = this.#reasoning = ''
    if (!this.#options.signal.aborted) this.#options.onDelta(text, reasoning)
  }
}

/** How the body is cut into what the fold takes. */
interface BodyReader {
  /** Grows with what is of the answer; comments and empty pieces are not. */
  readonly progress: number
  push(text: string): void
  end(): void
}

/** One JSON document. Cut off, it is an answer that is incomplete. */
class JsonBody implements BodyReader {
  readonly #take: (value: unknown) => void
  #whole = ''

  constructor(take: (value: unknown) => void) {
    this.#take = take
  }

  get progress(): number {
    return this.#whole.length
  }

  push(text: string): void {
    this.#whole += text
    refuseTooLarge(this.#whole.length)
  }

  end(): void {
    let value: unknown
    try {
      value = JSON.parse(this.#whole)
    } catch {
      return
    }
    this.#take(value)
  }
}

function invalidResponseError(url: string, what: string): ModelError {
  return new ModelError({
    kind: 'fatal',
    code: 'invalid_response',
    message: `${url || 'The provider'} answered with ${what}. The base URL is probably wrong: it usually ends in /v1.`,
  })
}

function addPartial(error: unknown, fold: AnswerFold): ModelError {
  const { text, usage } = fold.getPartial()
  const failure: ModelFailure = toModelFailure(error)
  return new ModelError({ ...failure, partialText: text, usage: failure.usage ?? usage }, { cause: error })
}

/** How the answers of one API are read. */
export interface AnswerFormat {
  /** What an answer is called, for people. */
  readonly displayName: string
  /** Whether a JSON document is an answer that does not stream. */
  isWhole(value: unknown): boolean
  /** `tellsCalls`: whether its deltas have the parts of calls. */
  createFold(tellsCalls?: boolean): AnswerFold
}

/** The pieces of one answer, put together. */
export interface AnswerFold {
  /** Grows with everything that says something: a piece of text, of thoughts, of a call, a finish reason. */
  readonly progress: number
  /** Whether the answer has announced its end: what comes now is no part of it. */
  readonly ended: boolean
  /** Whether nothing of it is missing, though something may follow: the usage, `[DONE]`. */
  readonly finished: boolean
  /**
   * Takes one parsed piece of a stream, or a document (`whole`: it is all that comes); returns what it adds to the shown
   * answer. Whatever is neither adds nothing.
   * @throws ModelError when it is, or carries, an error object.
   */
  push(piece: unknown, whole?: boolean): Delta
  /** A piece of the stream was lost: unless the end had been announced before, the answer has a hole. */
  markLost(): void
  /** What was held back until now. Call it once, when nothing more comes. */
  flush(): Delta
  /**
   * What has come so far. `ended` says that the provider announced the end by `[DONE]`.
   * @throws ModelError for an answer that nothing can be made of
   */
  getResponse(ended: boolean): ModelResponse
  /** What an answer that failed midway has brought. */
  getPartial(): Pick<ModelResponse, 'text' | 'usage'>
}

/** What one piece of an answer adds. Both are empty when it adds nothing that is shown. */
export interface Delta {
  text: string
  reasoning: string
  /** Parts of calls, where the fold was made to tell them. */
  calls?: readonly ToolCallDelta[]
  /** Tools of the provider's own that begin or end. */
  hosted?: readonly HostedCall[]
  /** What the run is to be warned of. */
  warnings?: readonly Warning[]
}

/** As `onWarning` takes it. */
export interface Warning {
  code: string
  message: string
}

export const noDelta: Readonly<Delta> = Object.freeze({ text: '', reasoning: '' })

/** Characters that one event, one body or one answer may have. Beyond that it is no answer, and it would fill memory. */
export const maxResponseLength = 64 * 1024 * 1024

/** How long a connection may take to close after `[DONE]`, in milliseconds, before it is given up. */
export const closeTimeoutMs = 1000

/** How long the usage and `[DONE]` may take after the finish reason, in milliseconds: then the answer is taken as it is. */
export const trailingTimeoutMs = 1000

export function refuseTooLarge(length: number): void {
  if (length <= maxResponseLength) return
  throw new ModelError({
    kind: 'fatal',
    code: 'response_too_large',
    message: `The provider's answer is larger than ${maxResponseLength / 1024 / 1024} MB. Check the base URL and what the server sends.`,
  })
}

/** Reads server-sent events, each with one JSON object or a text such as `[DONE]`. The end of the stream ends the last event. */
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
  // Some servers leave out the blank lines between events.
  else if (data.includes('\n')) for (const line of data.split('\n')) readEvent(line, event, handler)
  else if (data !== '') handler.onText(data, event)
}
