import type { Json } from '../../../machines/agent/json.js'

/** Deeper values are named, not shown: no reader needs them, and the stack has an end. */
const maxDepth = 200

/** Values that are shown. A list of a billion holes is one line of code. */
const maxValues = 1_000_000

/**
 * Any value as plain JSON. What JSON knows is kept as `JSON.stringify` keeps it, `toJSON` included; what it does not
 * (BigInt, functions, Maps, Sets, Errors, binary data, cycles, getters that throw) is described instead of being
 * dropped or thrown about. Never throws.
 */
export function toJson(value: unknown): Json {
  return convert(value, '', { ancestors: [], left: maxValues }) ?? null
}

interface Walk {
  ancestors: object[]
  left: number
}

/** Undefined means: leave the property out, as JSON does. */
function convert(value: unknown, key: string, walk: Walk): Json | undefined {
  walk.left -= 1
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return Number.isFinite(value) ? value : String(value)
    case 'bigint':
    case 'symbol':
      return String(value)
    case 'undefined':
      return undefined
    case 'function':
      return '[function]'
    default:
      return value === null ? null : convertObject(value as object, key, walk)
  }
}

function convertObject(value: object, key: string, walk: Walk): Json {
  const { ancestors } = walk
  const depth = ancestors.length
  if (ancestors.includes(value)) return '[circular]'
  if (depth >= maxDepth) return '[nested too deeply]'
  ancestors.push(value)
  try {
    const bytes = describeBinary(value)
    if (bytes !== undefined) return bytes
    const { toJSON } = value as { toJSON?: unknown }
    const own: unknown = typeof toJSON === 'function' ? toJSON.call(value, key) : value
    if (typeof own !== 'object' || own === null) return convert(own, key, walk) ?? null
    if (own !== value && ancestors.includes(own)) return '[circular]'
    ancestors.push(own)
    return convertShape(own, walk)
  } catch (error) {
    const message = readProperty(error, 'message')
    return `[unreadable${typeof message === 'string' ? `: ${message}` : ''}]`
  } finally {
    ancestors.length = depth
  }
}

/** Kinds are told by their tags: values may come from another realm, where `instanceof` fails. */
function convertShape(value: object, walk: Walk): Json {
  const tag = getTag(value)
  if (Array.isArray(value) || tag === 'Set') return convertList(value as Iterable<unknown>, walk)
  if (tag === 'Map') {
    const entries = [...(value as Map<unknown, unknown>)]
    return entries.every(([name]) => typeof name === 'string')
      ? convertEntries(entries as [string, unknown][], walk)
      : convertList(entries, walk)
  }
  if (tag === 'Error' || tag === 'DOMException') {
    const { name, message } = value as Error
    return convertEntries([['name', name], ['message', message], ...listEntries(value)], walk)
  }
  const entries = listEntries(value)
  // A Response, a Promise, a RegExp: '{}' would hide that the tool returned the wrong thing.
  return entries.length === 0 && tag !== 'Object' ? `[${tag}]` : convertEntries(entries, walk)
}

function convertList(values: Iterable<unknown>, walk: Walk): Json[] {
  const list: Json[] = []
  for (const value of values) {
    if (walk.left <= 0) return [...list, '[more is left out]']
    list.push(convert(value, String(list.length), walk) ?? null)
  }
  return list
}

function convertEntries(entries: readonly [string, unknown][], walk: Walk): Json {
  const json: [string, Json][] = []
  for (const [name, value] of entries) {
    if (walk.left <= 0) break
    const converted = convert(value, name, walk)
    if (converted !== undefined) json.push([name, converted])
  }
  // Unlike assignment, this makes `__proto__` a property like any other.
  return Object.fromEntries(json)
}

/** Own enumerable properties; one that cannot be read is described, the others are kept. */
function listEntries(value: object): [string, unknown][] {
  return Object.keys(value).map((name) => {
    try {
      return [name, (value as Record<string, unknown>)[name]]
    } catch {
      return [name, '[unreadable]']
    }
  })
}

function describeBinary(value: object): string | undefined {
  if (ArrayBuffer.isView(value)) return `[binary data: ${value.byteLength} bytes]`
  const tag = getTag(value)
  if (tag === 'ArrayBuffer') return `[binary data: ${(value as ArrayBuffer).byteLength} bytes]`
  if (tag !== 'Blob' && tag !== 'File') return undefined
  const { size, type } = value as Blob
  return `[binary data: ${size} bytes${type && `, ${type}`}]`
}

function getTag(value: object): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1)
}

/** A property of anything, even of what throws when it is looked at. */
export function readProperty(value: unknown, key: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  try {
    return (value as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}
