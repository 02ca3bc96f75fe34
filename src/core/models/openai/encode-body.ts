import type { JsonObject } from '../../../../machines/agent/json.js'
import { toWellFormed } from '../plain-json.js'

export type RequestBody = Readonly<Record<string, unknown>>

export function mergeExtraBody(body: Record<string, unknown>, extraBody: JsonObject): RequestBody {
  for (const [key, value] of Object.entries(extraBody)) {
    if (value === null) delete body[key]
    else body[key] = toWellFormed(value)
  }
  return body
}

/** Serializes bodies as UTF-8 JSON and reuses the bytes of earlier requests. */
export function createBodyEncoder(): (body: RequestBody) => Uint8Array<ArrayBuffer> {
  const lists = new JsonListCache()

  return (body) => {
    const parts: Uint8Array[] = []
    // Short strings are joined first, because each byte array has overhead.
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

/** Caches serialized lists, because a conversation grows at its end. Objects must be immutable. */
export class JsonListCache {
  readonly #lists = new WeakMap<object, CachedList>()

  /** Returns the items separated by commas. The bytes are valid until the next call. */
  write(items: readonly object[]): Uint8Array {
    // Many lists may share their first item, so longer lists are identified by the next two items.
    const keys = items.slice(items.length > 1 ? 1 : 0, 3)
    const known = keys.findLast((key) => this.#lists.has(key)) ?? items[0]
    const list = (known && this.#lists.get(known)) ?? new CachedList()
    for (const key of keys) this.#lists.set(key, list)
    return list.write(items)
  }
}

class CachedList {
  #items: readonly object[] = []
  /** Each item is followed by a comma. The buffer may be larger than its content. */
  #bytes = new Uint8Array(0)
  #ends: number[] = []

  write(items: readonly object[]): Uint8Array {
    const before = this.#items
    let same = 0
    while (same < this.#ends.length && items[same] === before[same]) same++
    // A single replaced item at the end is usually a temporary message.
    const known = before.length - same > 1 ? this.#copyPieces(same) : undefined
    this.#items = items
    this.#ends.length = same
    for (const item of items.slice(same))
      this.#append(known?.get(item) ?? encoder.encode(`${JSON.stringify(item)},`))
    return this.#bytes.subarray(0, Math.max(0, this.#getEnd(items.length) - 1))
  }

  /** Copies the serialized items from this index, because the buffer is about to be overwritten. */
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

  #getEnd(count: number): number {
    return this.#ends[count - 1] ?? 0
  }
}

const encoder = new TextEncoder()
