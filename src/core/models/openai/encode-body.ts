import type { JsonObject } from '../../../../machines/agent/json.js'
import { toWellFormed } from '../well-formed.js'
import { JsonListCache } from './json-list-cache.js'

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

const encoder = new TextEncoder()

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
