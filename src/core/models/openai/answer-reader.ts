import type { ModelFailure, ModelResponse } from '../../../../machines/agent/response.js'
import { asObject } from '../as-json.js'
import { isMarkup } from '../error-body.js'
import { bodyFailure, toModelFailure } from '../failures.js'
import { type HostedCall, ModelError } from '../provider.js'
import type { AnswerFormat, Fold } from './answer-format.js'
import type { Delta } from './delta.js'
import { refuseTooLarge } from './limits.js'
import { createSseParser } from './sse.js'

export interface ReadAnswerOptions {
  /** What kind of answer it is. */
  format: AnswerFormat
  /** Asked between two pieces. */
  signal: Pick<AbortSignal, 'aborted' | 'reason'>
  onDelta: (text: string, reasoning: string) => void
  onActivity: (kind: 'content' | 'keep_alive') => void
  onHosted?: ((call: HostedCall) => void) | undefined
  onWarning?: ((code: string, message: string) => void) | undefined
}

export interface AnswerReader {
  /** Whether the provider has announced the end: what comes now is no part of the answer. */
  readonly ended: boolean
  /** Whether nothing is missing of it: what may still come is not waited for long. */
  readonly finished: boolean
  /** Takes the next piece of the body. @throws ModelError for errors in it, the signal's reason when it aborts. */
  push(text: string): void
  /** The answer, when nothing more comes. @throws like push */
  finish(): ModelResponse
  /** What an exception midway stands for: the signal's reason, or a `ModelError` with the text that had come. */
  failure(error: unknown): unknown
}

/**
 * Reads the body of an answer, streamed or whole, however it is carried here: what comes decides which it is, because
 * servers answer either request either way, under any content type. `url` is for errors.
 */
export function createAnswerReader(url: string, options: ReadAnswerOptions): AnswerReader {
  const fold = options.format.createFold()
  const body = createBody(fold, url, options)
  return {
    get ended() {
      return body.ended
    },
    get finished() {
      return fold.finished
    },
    push(text) {
      const before = body.progress
      body.push(text)
      options.onActivity(body.progress > before ? 'content' : 'keep_alive')
    },
    finish() {
      body.end()
      return fold.response(body.ended)
    },
    failure: (error) => (options.signal.aborted ? options.signal.reason : withPartial(error, fold)),
  }
}

interface Sink {
  /** Grows with what is of the answer; comments and empty pieces are not. */
  readonly progress: number
  push(text: string): void
  end(): void
}

/** Chooses how to read by the first character that is no white space. `ended` says that the end was announced. */
function createBody(
  fold: Fold,
  url: string,
  { format, signal, onDelta, onHosted, onWarning }: ReadAnswerOptions,
) {
  let sink: Sink | null = null
  const body = {
    ended: false,
    get progress() {
      return sink?.progress ?? 0
    },
    push(text: string): void {
      const start = sink === null ? text.trimStart() : text
      if (start === '') return
      sink ??= sinkFor(start)
      sink.push(start)
    },
    end(): void {
      sink?.end()
      show(fold.flush())
    },
  }

  function sinkFor(start: string): Sink {
    if (/^[{[]/.test(start)) return document()
    // The first letters of an event stream's fields, and its comments.
    if (/^[deir:]/.test(start)) return events()
    throw invalidResponse(url, isMarkup(start) ? 'a web page' : 'neither JSON nor an event stream')
  }

  function show({ text, reasoning, hosted, warnings }: Delta): void {
    // Whoever reads the deltas may abort between two of them.
    if (signal.aborted) throw signal.reason
    if (text !== '' || reasoning !== '') onDelta(text, reasoning)
    for (const call of hosted ?? []) onHosted?.(call)
    for (const { code, message } of warnings ?? []) onWarning?.(code, message)
  }

  function events(): Sink {
    const parser = createSseParser({
      onJson(value, event) {
        if (body.ended) return
        const isError = event === 'error' && asObject(value)?.error === undefined
        show(fold.push(isError ? { error: value } : value))
        body.ended = fold.ended
      },
      onText(data, event) {
        if (body.ended) return
        if (data.trim() === '[DONE]') body.ended = true
        else if (event === 'error') throw new ModelError(bodyFailure(data))
        else if (data.startsWith('{')) fold.lose()
      },
    })
    return {
      get progress() {
        return fold.progress
      },
      push: (text) => parser.push(text),
      end: () => parser.end(),
    }
  }

  /** One JSON document. Cut off, it is an answer that is incomplete. */
  function document(): Sink {
    let whole = ''
    return {
      get progress() {
        return whole.length
      },
      push(text) {
        whole += text
        refuseTooLarge(whole.length)
      },
      end() {
        let value: unknown
        try {
          value = JSON.parse(whole)
        } catch {
          return
        }
        const first: unknown = Array.isArray(value) ? value[0] : value
        const delta = fold.push(first, true)
        if (!format.isWhole(first)) throw invalidResponse(url, `JSON that is no ${format.called}`)
        show(delta)
        body.ended = true
      },
    }
  }

  return body
}

function invalidResponse(url: string, what: string): ModelError {
  return new ModelError({
    kind: 'fatal',
    code: 'invalid_response',
    message: `${url || 'The provider'} answered with ${what}. The base URL is probably wrong: it usually ends in /v1.`,
  })
}

function withPartial(error: unknown, fold: Fold): ModelError {
  const { text, usage } = fold.partial()
  const failure: ModelFailure = toModelFailure(error)
  return new ModelError({ ...failure, partialText: text, usage: failure.usage ?? usage }, { cause: error })
}
