type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

/**
 * The canonical form of a JSON text: keys in one order at every depth, no whitespace, numbers and strings written one
 * way (`1.0` is `1`, `"\u0041"` is `"A"`). Nothing is cut. `null` when the text is not JSON.
 *
 * Numbers mean what `JSON.parse` makes of them, because that is what the tool gets to see. Total: depth costs memory,
 * not stack.
 */
export function canonicalJson(text: string): string | null {
  return canonicalForms(text)?.exact ?? null
}

/**
 * The canonical form, and the same `tidied`: blanks around each string and at the ends of its lines left out. They are
 * one text where there are no such blanks.
 */
export function canonicalForms(text: string): { exact: string; tidied: string } | null {
  let value: Json
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  // Which of the two writes a value depends on the value alone, so equal values are written the same.
  if (!isOrdinary(value, 0)) {
    const exact = write(value)
    return { exact, tidied: exact }
  }
  const exact = JSON.stringify(sorted(value, same))
  return { exact, tidied: mayBeUntidy(exact) ? JSON.stringify(sorted(value, tidy)) : exact }
}

/** A text without the blanks around it and at the ends of its lines. */
export function tidy(text: string): string {
  if (!text.includes('\n')) return text.trim()
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .trim()
}

/** A blank beside a quotation mark, or an escape such as \n: outside of strings canonical JSON has neither. */
function mayBeUntidy(canonical: string): boolean {
  return /\s"|"\s|\\[nrtu]/.test(canonical)
}

function same(text: string): string {
  return text
}

/** As deep as recursion goes here. */
const deepest = 200

/** Whether a sorted copy, written by the platform, says it all; it does for nearly everything, and several times faster. */
function isOrdinary(value: Json, depth: number): boolean {
  // `JSON.stringify` writes a number that overflowed (1e400) as null.
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  if (depth === deepest || Object.hasOwn(value, '__proto__')) return false
  return Object.values(value).every((inner: Json) => isOrdinary(inner, depth + 1))
}

function sorted(value: Json, textOf: (text: string) => string): Json {
  if (typeof value === 'string') return textOf(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((inner) => sorted(inner, textOf))
  const copy: { [key: string]: Json } = {}
  for (const key of Object.keys(value).sort()) copy[key] = sorted(value[key] ?? null, textOf)
  return copy
}

/** An array or object that is being written. `keys` is null for an array. */
interface Open {
  keys: string[] | null
  values: (Json | undefined)[]
  next: number
}

function write(root: Json): string {
  let out = ''
  let value: Json | undefined = root
  const stack: Open[] = []
  for (;;) {
    if (typeof value === 'object' && value !== null) {
      const open = opened(value)
      out += open.keys ? '{' : '['
      stack.push(open)
    } else {
      out += scalar(value)
    }
    let top = stack.at(-1)
    while (top && top.next === top.values.length) {
      out += top.keys ? '}' : ']'
      stack.pop()
      top = stack.at(-1)
    }
    if (!top) return out
    if (top.next > 0) out += ','
    if (top.keys) out += `${JSON.stringify(top.keys[top.next])}:`
    value = top.values[top.next]
    top.next += 1
  }
}

function opened(value: Json[] | { [key: string]: Json }): Open {
  if (Array.isArray(value)) return { keys: null, values: value, next: 0 }
  const keys = Object.keys(value).sort()
  return { keys, values: keys.map((key) => value[key]), next: 0 }
}

function scalar(value: Exclude<Json, object> | null | undefined): string {
  if (value === Infinity) return '1e999'
  if (value === -Infinity) return '-1e999'
  return JSON.stringify(value)
}
