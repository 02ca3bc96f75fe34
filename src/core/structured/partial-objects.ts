import { Allow, parse } from 'partial-json'
import { valueOr } from '../base/maybe-promise.js'
import { JsonScan } from '../models/json-scan.js'
import type { EmittedEvent } from '../../../machines/agent/announcements.js'

/** A partial `T`, in which fields and items may be missing and strings may be cut off. */
export type DeepPartial<T> = T extends readonly (infer Item)[]
  ? DeepPartial<Item>[]
  : T extends object
    ? { [Key in keyof T]?: DeepPartial<T[Key]> }
    : T

export type AnswerPiece = Pick<
  Extract<EmittedEvent, { type: 'stream_chunk' }>,
  'stepId' | 'text' | 'reset' | 'finished'
>

/** Minimum growth before text is parsed again, because parsing after each piece would take quadratic time. */
const growth = 1.05
const partial = Allow.STR | Allow.OBJ | Allow.ARR

/** Depth limit, because the parser takes seconds for thousands of levels. */
const maxDepth = 200

export function createPartialReader(next: (object: object) => void): (piece: AnswerPiece) => void {
  let [step, whole, parsedLength, scan] = ['', '', 0, new JsonScan()]
  return ({ stepId, text, reset, finished }) => {
    if (stepId !== step || reset) [step, whole, parsedLength, scan] = [stepId, '', 0, new JsonScan()]
    whole += text
    if (scan.read(text).deepest > maxDepth) return
    const { length } = whole
    if (finished ? length === parsedLength : length < parsedLength * growth) return
    parsedLength = length
    const object = parseStart(whole)
    if (object !== undefined) next(object)
  }
}

function parseStart(text: string): object | undefined {
  const start = text.indexOf('{')
  if (start === -1) return undefined
  return valueOr(() => {
    const object = parse(text.slice(start), partial) as object
    if (prototypeKeyPattern.test(text)) resetPrototypes(object)
    return object
  }, undefined)
}

/** Matches the key `__proto__`, possibly escaped, because the parser would assign it. */
const prototypeKeyPattern = /__proto__|\\u005f/i

function resetPrototypes(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) Object.setPrototypeOf(value, Object.prototype)
  for (const part of Object.values(value)) resetPrototypes(part)
}
