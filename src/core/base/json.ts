import { valueOr } from './maybe-promise.js'
import type { Json } from '../../../machines/agent/json.js'

export { parseJsonOr } from '../../../guards/lib/json.js'

/** Maximum nesting depth. Values at deeper levels are replaced by a description to avoid a stack overflow. */
const maxDepth = 200

/** Maximum number of converted values. A tool can return `Array(1e9)`, whose JSON would exhaust the memory. */
const maxValues = 1_000_000

/**
 * Converts any value to plain JSON, like `JSON.stringify` and including `toJSON`. Values without a JSON form (BigInt,
 * functions, Maps, Sets, Errors, binary data, cycles, throwing getters) are described instead of dropped. Never throws.
 */
export function toJson(value: unknown): Json {
  return convert(value, '', { ancestors: [], left: maxValues }) ?? null
}

interface Walk {
  ancestors: object[]
  left: number
}

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

/** Converts an object by its kind. Checks the tag, because `instanceof` fails for values from another realm. */
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
  // For a Response, a Promise or a RegExp, '{}' would hide that the tool returned the wrong value.
  return entries.length === 0 && tag !== 'Object' ? `[${tag}]` : convertEntries(entries, walk)
}

function convertList(values: Iterable<unknown>, walk: Walk): Json[] {
  const list: Json[] = []
  for (const value of values) {
    if (walk.left <= 0) return [...list, '[truncated]']
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
  // Unlike assignment, this treats `__proto__` as a regular property.
  return Object.fromEntries(json)
}

function listEntries(value: object): [string, unknown][] {
  return Object.keys(value).map((name) => [
    name,
    valueOr(() => (value as Record<string, unknown>)[name], '[unreadable]'),
  ])
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

export function readProperty(value: unknown, key: PropertyKey): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  return valueOr(() => (value as Record<PropertyKey, unknown>)[key], undefined)
}

export function readPath(value: unknown, keys: readonly PropertyKey[]): unknown {
  return keys.reduce<unknown>((inner, key) => readProperty(inner, key), value)
}

export function readText(value: unknown, key: string): string {
  const text = readProperty(value, key)
  return typeof text === 'string' ? text : ''
}

export interface JsonProblem {
  /** Index of the first invalid character, or the text's length if the text ends too early. */
  position: number
  problem: string
}

type Expected = `${'value' | 'key'}${'' | 'OrEnd'}` | 'colon' | 'commaInArray' | 'commaInObject' | 'nothing'

interface Expectation {
  phrase: string
  end?: string
  separator?: string
  /** What is expected after the separator. */
  next?: Expected
}

const expectations: Record<Expected, Expectation> = {
  value: { phrase: 'a value' },
  valueOrEnd: { phrase: "a value or ']'", end: ']' },
  key: { phrase: 'a property name in double quotes' },
  keyOrEnd: { phrase: "a property name in double quotes or '}'", end: '}' },
  colon: { phrase: "':' after the property name", separator: ':', next: 'value' },
  commaInArray: { phrase: "',' or ']'", end: ']', separator: ',', next: 'value' },
  commaInObject: { phrase: "',' or '}'", end: '}', separator: ',', next: 'key' },
  nothing: { phrase: 'nothing after the end of the JSON value' },
}

const spacePattern = /[ \n\r\t]*/y
const scalarPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const escapePattern = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

/**
 * Finds the first error in a text that `JSON.parse` rejects, or null. Engines word and place their errors
 * differently. Not recursive, so that nesting depth is unlimited. `uniqueKeys` reports duplicate keys, of which
 * `JSON.parse` uses the last.
 */
export function findJsonProblem(
  text: string,
  { uniqueKeys = false }: { uniqueKeys?: boolean } = {},
): JsonProblem | null {
  /** The keys of each open object, or null for an open list. */
  const open: (Set<string> | null)[] = []
  let expected: Expected = 'value'
  let at = 0

  const afterValue = (): Expected => {
    const inner = open.at(-1)
    return inner === undefined ? 'nothing' : inner === null ? 'commaInArray' : 'commaInObject'
  }

  for (;;) {
    at = matchAt(spacePattern, text, at) ?? at
    const char = text[at]
    const { phrase, end, separator, next }: Expectation = expectations[expected]
    const wantsKey: boolean = expected === 'key' || expected === 'keyOrEnd'
    const wantsValue: boolean = expected === 'value' || expected === 'valueOrEnd'
    const scalarEnd = wantsValue ? matchAt(scalarPattern, text, at) : undefined
    if (char === undefined) {
      const problem = `the text ends where ${phrase} is expected`
      return expected === 'nothing' ? null : { position: at, problem }
    } else if (char === end) {
      at += 1
      open.pop()
      expected = afterValue()
    } else if (char === separator && next) {
      at += 1
      expected = next
    } else if (char === '"' && (wantsKey || wantsValue)) {
      const stringEnd = findStringEnd(text, at)
      if (typeof stringEnd === 'object') return stringEnd
      if (wantsKey && uniqueKeys) {
        const written = text.slice(at, stringEnd)
        const key = JSON.parse(written) as string
        if (open.at(-1)?.has(key))
          return { position: at, problem: `the key ${written} appears twice; keep one` }
        open.at(-1)?.add(key)
      }
      at = stringEnd
      expected = wantsKey ? 'colon' : afterValue()
    } else if (wantsValue && (char === '{' || char === '[')) {
      at += 1
      open.push(char === '{' ? new Set() : null)
      expected = char === '{' ? 'keyOrEnd' : 'valueOrEnd'
    } else if (scalarEnd !== undefined) {
      at = scalarEnd
      expected = afterValue()
    } else {
      const found = JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))
      return { position: at, problem: `expected ${phrase} but found ${found}` }
    }
  }
}

function findStringEnd(text: string, start: number): number | JsonProblem {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === 0x22) return at + 1
    if (code < 0x20) {
      const escaped = JSON.stringify(text[at]).slice(1, -1)
      return { position: at, problem: `a control character inside a string must be written as ${escaped}` }
    }
    if (code === 0x5c) {
      const end = matchAt(escapePattern, text, at)
      if (end === undefined)
        return { position: at, problem: 'this is not a JSON escape sequence; write \\\\ for a backslash' }
      at = end - 1
    }
  }
  return { position: text.length, problem: `the string that starts at position ${start} is never closed` }
}

function matchAt(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}
