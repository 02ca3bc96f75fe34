import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import type { Delta } from './delta.js'

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
