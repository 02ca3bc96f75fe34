import { type Json, parseJsonOr } from './json.js'

/**
 * The canonical form of a JSON text. Keys are sorted at every depth, whitespace is removed, numbers and strings have
 * one notation (`1.0` is `1`, `"\u0041"` is `"A"`), and nothing is truncated. `tidied` also trims each string and the
 * ends of its lines. If there is nothing to trim, both forms are equal. `null` if the text is not JSON.
 *
 * Numbers have their `JSON.parse` value, because the tool receives that value. Nesting can be of any depth, because the
 * nesting is tracked on the heap instead of the stack.
 *
 * This is not RFC 8785, and it cannot change because stored logs contain its digests. It sorts integer keys
 * numerically, and accepts overflowing numbers, lone surrogates and any depth.
 */
export function canonicalForms(text: string): { exact: string; tidied: string } | null {
  const value = parseJsonOr(text, undefined) as Json | undefined
  if (value === undefined) return null
  const quoted = escapesNothing(text) ? inQuotes : JSON.stringify
  let isTidied = true
  const exact = write(value, quoted, (inner) => {
    isTidied &&= isTidy(inner)
    return quoted(inner)
  })
  return {
    exact,
    tidied: isTidied ? exact : write(value, JSON.stringify, (inner) => JSON.stringify(tidy(inner))),
  }
}

export function tidy(text: string): string {
  if (isTidy(text)) return text
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .trim()
}

function isTidy(text: string): boolean {
  return text.trim() === text && !(text.includes('\n') && /[^\S\n]\n/.test(text))
}

function escapesNothing(text: string): boolean {
  // A lone surrogate must be escaped.
  return !text.includes('\\') && !/[\ud800-\udfff]/.test(text)
}

function inQuotes(text: string): string {
  return `"${text}"`
}

type Writer = (text: string) => string

interface Open {
  keys: string[] | null
  values: (Json | undefined)[]
  next: number
}

function write(root: Json, name: Writer, string: Writer): string {
  let out = ''
  let value: Json | undefined = root
  const stack: Open[] = []
  for (;;) {
    if (typeof value === 'object' && value !== null) {
      const open = opened(value)
      out += open.keys ? '{' : '['
      stack.push(open)
    } else {
      out += typeof value === 'string' ? string(value) : scalar(value)
    }
    let top = stack.at(-1)
    while (top && top.next === top.values.length) {
      out += top.keys ? '}' : ']'
      stack.pop()
      top = stack.at(-1)
    }
    if (!top) return out
    if (top.next > 0) out += ','
    if (top.keys) out += `${name(top.keys[top.next] ?? '')}:`
    value = top.values[top.next]
    top.next += 1
  }
}

function opened(value: Json[] | { [key: string]: Json }): Open {
  if (Array.isArray(value)) return { keys: null, values: value, next: 0 }
  const keys = inOrder(Object.keys(value))
  return { keys, values: keys.map((key) => value[key]), next: 0 }
}

/** Sorts keys. Integer keys come first, in numeric order as in objects, followed by other keys. */
function inOrder(keys: string[]): string[] {
  const [first] = keys
  if (first === undefined || !isIndex(first)) return keys.sort()
  const names = keys.findIndex((key) => !isIndex(key))
  return names === -1 ? keys : [...keys.slice(0, names), ...keys.slice(names).sort()]
}

function isIndex(key: string): boolean {
  return String(Number(key) >>> 0) === key
}

function scalar(value: number | boolean | null | undefined): string {
  // JSON would write overflowed numbers (1e400) as null.
  if (value === Infinity) return '1e999'
  if (value === -Infinity) return '-1e999'
  return JSON.stringify(value)
}
