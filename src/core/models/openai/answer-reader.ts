import type { ModelFailure, ModelResponse } from '../../../../machines/agent/model-response.js'
import { asObject } from '../../base/values.js'
import { isMarkup } from '../error-body.js'
import { toBodyFailure, toModelFailure } from '../to-model-failure.js'
import { type HostedCall, ModelError, type ToolCallDelta } from '../provider.js'
import type { AnswerFormat, AnswerFold } from './answer-format.js'
import type { Delta } from './delta.js'
import { refuseTooLarge } from './response-limits.js'
import { type SseHandler, SseParser } from './sse-parser.js'

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
    return new EventStreamBody(this.#fold, {
      onJson: (value, event) => this.#onJson(value, event),
      onText: (data, event) => this.#onText(data, event),
    })
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

class EventStreamBody implements BodyReader {
  readonly #fold: AnswerFold
  readonly #parser: SseParser

  constructor(fold: AnswerFold, handler: SseHandler) {
    this.#fold = fold
    this.#parser = new SseParser(handler)
  }

  get progress(): number {
    return this.#fold.progress
  }

  push(text: string): void {
    this.#parser.push(text)
  }

  end(): void {
    this.#parser.end()
  }
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
