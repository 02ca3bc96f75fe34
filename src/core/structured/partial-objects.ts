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

/** Deeper ones are not told: the parser would take seconds for thousands of levels. */
const maxDepth = 200

/** Reads the object that an answer has come to, while the answer streams. */
export class PartialObjects {
  readonly #next: (object: object) => void
  #stepId = ''
  #text = ''
  #parsedLength = 0
  #depth = new TextDepth()

  /** @param next receives each object: a new one each time */
  constructor(next: (object: object) => void) {
    this.#next = next
  }

  read({ stepId, text, reset, finished }: AnswerPiece): void {
    if (stepId !== this.#stepId || reset) {
      this.#stepId = stepId
      this.#text = ''
      this.#parsedLength = 0
      this.#depth = new TextDepth()
    }
    this.#text += text
    this.#depth.read(text)
    if (this.#depth.deepest > maxDepth) return
    const { length } = this.#text
    if (finished ? length === this.#parsedLength : length < this.#parsedLength * growth) return
    this.#parsedLength = length
    const object = parseStart(this.#text)
    if (object !== undefined) this.#next(object)
  }
}

/** How deep the brackets of a JSON text nest. */
class TextDepth {
  deepest = 0
  #depth = 0
  #isInString = false
  #isEscaped = false

  read(piece: string): void {
    for (const character of piece) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (character === '"') this.#isInString = !this.#isInString
      else if (this.#isInString) this.#isEscaped = character === '\\'
      else if (character === '{' || character === '[') this.#depth += 1
      else if (character === '}' || character === ']') this.#depth -= 1
      if (this.#depth > this.deepest) this.deepest = this.#depth
    }
  }
}

/** The object that a text begins, perhaps behind other words. */
function parseStart(text: string): object | undefined {
  const start = text.indexOf('{')
  if (start === -1) return undefined
  try {
    const object = parse(text.slice(start), partial) as object
    if (prototypeKeyPattern.test(text)) resetPrototypes(object)
    return object
  } catch {
    return undefined
  }
}

/** The key `__proto__`, which the parser assigns, perhaps escaped. */
const prototypeKeyPattern = /__proto__|\\u005f/i

/** A model must not choose what objects inherit. */
function resetPrototypes(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) Object.setPrototypeOf(value, Object.prototype)
  for (const part of Object.values(value)) resetPrototypes(part)
}
