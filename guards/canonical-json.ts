/**
 * The canonical form of a JSON text: keys sorted at every depth, no whitespace, numbers and strings written one way
 * (`1.0` is `1`, `"\u0041"` is `"A"`). Nothing is cut. `null` when the text is not JSON.
 *
 * Numbers mean what `JSON.parse` makes of them, because that is what the tool gets to see. Total: depth costs memory,
 * not stack.
 */
export function canonicalJson(text: string): string | null {
  try {
    return write(JSON.parse(text))
  } catch {
    return null
  }
}

type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

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
    if (top.keys) out += `${quoted(top.keys[top.next] ?? '')}:`
    value = top.values[top.next]
    top.next += 1
  }
}

function opened(value: Json[] | { [key: string]: Json }): Open {
  if (Array.isArray(value)) return { keys: null, values: value, next: 0 }
  const keys = Object.keys(value).sort()
  return { keys, values: keys.map((key) => value[key]), next: 0 }
}

/** Short strings are seldom in need of escapes, and looking is faster than `JSON.stringify`. */
function quoted(text: string): string {
  return text.length > 64 || /["\\\p{Cc}\p{Cs}]/u.test(text) ? JSON.stringify(text) : `"${text}"`
}

/** `JSON.stringify` writes a number that overflowed (1e400) as null; here it stays a number. */
function scalar(value: Exclude<Json, object> | null | undefined): string {
  if (value === Infinity) return '1e999'
  if (value === -Infinity) return '-1e999'
  return typeof value === 'string' ? quoted(value) : String(value)
}
