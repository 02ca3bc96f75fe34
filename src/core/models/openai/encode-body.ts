import type { JsonObject } from '../../../../machines/agent/json.js'
import { toWellFormed } from '../plain-json.js'

export type RequestBody = Readonly<Record<string, unknown>>

/** The body with `extraBody` merged in last: null takes a field away. */
export function mergeExtraBody(body: Record<string, unknown>, extraBody: JsonObject): RequestBody {
  for (const [key, value] of Object.entries(extraBody)) {
    if (value === null) delete body[key]
    else body[key] = toWellFormed(value)
  }
  return body
}

/** Writes bodies as JSON in UTF-8. What was written before is copied: a transcript is sent whole each time. */
export function createBodyEncoder(): (body: RequestBody) => Uint8Array<ArrayBuffer> {
  const lists = new JsonListCache()

  return (body) => {
    const parts: Uint8Array[] = []
    // Short pieces are put together first: each array of bytes costs more than what is in it.
    let text = ''
    for (const [key, value] of Object.entries(body)) {
      text += `${text === '' && parts.length === 0 ? '{' : ','}${JSON.stringify(key)}:`
      if (isListOfObjects(value)) {
        parts.push(encoder.encode(`${text}[`), lists.write(value))
        text = ']'
      } else text += JSON.stringify(value) ?? 'null'
    }
    parts.push(encoder.encode(text === '' ? '{}' : `${text}}`))
    return concatBytes(parts)
  }
}

/** What is made of a thing, made once. */
export function getOrCreate<Key extends object, Value>(
  memory: WeakMap<Key, Value>,
  key: Key,
  make: () => Value,
): Value {
  const known = memory.get(key)
  if (known !== undefined) return known
  const value = make()
  memory.set(key, value)
  return value
}

function isListOfObjects(value: unknown): value is readonly object[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null)
}

function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/**
 * Lists of objects as JSON, remembered as they were last written: a conversation goes out with every request and grows at
 * its end, so that all but the end is one piece to copy. An object is taken to be what it was. Where a list has changed
 * before its end, what is known of it is copied item by item.
 */
export class JsonListCache {
  readonly #lists = new WeakMap<object, CachedList>()

  /** The items with commas between them. Valid until the next writing. */
  write(items: readonly object[]): Uint8Array {
    // By what it begins with, but for the very first, which many lists may have.
    const keys = items.slice(items.length > 1 ? 1 : 0, 3)
    const known = keys.findLast((key) => this.#lists.has(key)) ?? items[0]
    const list = (known && this.#lists.get(known)) ?? new CachedList()
    for (const key of keys) this.#lists.set(key, list)
    return list.write(items)
  }
}

/** A list as it was last written. */
class CachedList {
  #items: readonly object[] = []
  /** The items as JSON in UTF-8, each with a comma behind it; more room than they need. */
  #bytes = new Uint8Array(0)
  /** Where each item ends. */
  #ends: number[] = []

  write(items: readonly object[]): Uint8Array {
    const before = this.#items
    let same = 0
    while (same < this.#ends.length && items[same] === before[same]) same++
    // The last item alone may well have been something that is said only once.
    const known = before.length - same > 1 ? this.#copyPieces(same) : undefined
    this.#items = items
    this.#ends.length = same
    for (const item of items.slice(same))
      this.#append(known?.get(item) ?? encoder.encode(`${JSON.stringify(item)},`))
    return this.#bytes.subarray(0, Math.max(0, this.#getEnd(items.length) - 1))
  }

  /** The items from there on as they were written, copied: they are about to be written over. */
  #copyPieces(from: number): ReadonlyMap<object, Uint8Array> {
    const bytes = this.#bytes.slice()
    const rest = this.#items.slice(from)
    return new Map(
      rest.map((item, i) => [item, bytes.subarray(this.#getEnd(from + i), this.#getEnd(from + i + 1))]),
    )
  }

  #append(piece: Uint8Array): void {
    const at = this.#getEnd(this.#ends.length)
    const end = at + piece.length
    if (end > this.#bytes.length) {
      const wider = new Uint8Array(Math.max(end, 2 * this.#bytes.length))
      wider.set(this.#bytes.subarray(0, at))
      this.#bytes = wider
    }
    this.#bytes.set(piece, at)
    this.#ends.push(end)
  }

  /** Where the first items end. */
  #getEnd(count: number): number {
    return this.#ends[count - 1] ?? 0
  }
}

const encoder = new TextEncoder()
