import { Allow, parse } from 'partial-json'
import type { EmittedEvent } from '../../../machines/agent/announcements.js'

/** `T` with what has come of it so far: fields and items may be missing, and a text may be cut. */
export type DeepPartial<T> = T extends readonly (infer Item)[]
  ? DeepPartial<Item>[]
  : T extends object
    ? { [Key in keyof T]?: DeepPartial<T[Key]> }
    : T

/** A piece of an answer. */
export type AnswerPiece = Pick<
  Extract<EmittedEvent, { type: 'stream_chunk' }>,
  'stepId' | 'text' | 'reset' | 'finished'
>

/** A text is parsed again when it has grown by this share: parsing it after each piece would take quadratic time. */
const growth = 1.05
const partial = Allow.STR | Allow.OBJ | Allow.ARR

/** Reads the object that an answer has come to, while the answer streams. */
export class PartialObjects {
  readonly #next: (object: object) => void
  #stepId = ''
  #text = ''
  #parsedLength = 0

  /** @param next receives each object: a new one each time */
  constructor(next: (object: object) => void) {
    this.#next = next
  }

  read({ stepId, text, reset, finished }: AnswerPiece): void {
    if (stepId !== this.#stepId || reset) {
      this.#stepId = stepId
      this.#text = ''
      this.#parsedLength = 0
    }
    this.#text += text
    const { length } = this.#text
    if (finished ? length === this.#parsedLength : length < this.#parsedLength * growth) return
    this.#parsedLength = length
    const object = parseStart(this.#text)
    if (object !== undefined) this.#next(object)
  }
}

/** The object that a text begins, perhaps behind other words. */
function parseStart(text: string): object | undefined {
  const start = text.indexOf('{')
  // A model could set the prototype of the object.
  if (start === -1 || text.includes('__proto__')) return undefined
  try {
    return parse(text.slice(start), partial) as object
  } catch {
    return undefined
  }
}
