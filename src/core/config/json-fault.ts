/** Where a text stops being JSON, and what to do there. */
export interface JsonFault {
  /** Both count from 1; columns are UTF-16 units. */
  line: number
  column: number
  sentence: string
}

const space = /[ \t\n\r]*/y
const word = String.raw`true|false|null`
const number = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`
const plain = String.raw`[^"\\\u0000-\u001f]*`
const string = String.raw`"${plain}(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})${plain})*"`
const token = new RegExp(String.raw`[{}[\],:]|${string}|${number}|${word}`, 'y')

type Expected =
  | 'a value'
  | 'a value or ]'
  | 'a key'
  | 'a key or }'
  | 'a colon'
  | 'a comma or ]'
  | 'a comma or }'
  | 'the end'

/**
 * The first place where the text is not JSON, or where an object has a key twice (`JSON.parse` would silently take the
 * last); undefined when it is sound. Engines word their own errors differently, and not all of them say where.
 */
export function jsonFault(text: string): JsonFault | undefined {
  /** What is open at this point: the keys of an object, or null for a list. */
  const open: (Set<string> | null)[] = []
  let expected: Expected = 'a value'
  let at = 0
  const fault = (sentence: string) => ({ ...position(text, at), sentence })
  const afterValue = (): Expected => {
    const around = open.at(-1)
    if (around === undefined) return 'the end'
    return around === null ? 'a comma or ]' : 'a comma or }'
  }

  for (;;) {
    at += matchAt(space, text, at).length
    if (at === text.length && expected === 'the end') return undefined
    const found = matchAt(token, text, at)
    const isKey = found.startsWith('"') && expected.startsWith('a key')
    const around = open.at(-1)
    if (isKey && around) {
      const key = String(JSON.parse(found))
      if (around.has(key)) return fault(`The key ${found} is given twice. Keep one.`)
      around.add(key)
      expected = 'a colon'
    } else if (found === ':' && expected === 'a colon') {
      expected = 'a value'
    } else if (found === ',' && expected.startsWith('a comma')) {
      expected = expected === 'a comma or }' ? 'a key' : 'a value'
    } else if ((found === '}' || found === ']') && expected.endsWith(` or ${found}`)) {
      open.pop()
      expected = afterValue()
    } else if ((found === '{' || found === '[') && expected.startsWith('a value')) {
      open.push(found === '{' ? new Set() : null)
      expected = found === '{' ? 'a key or }' : 'a value or ]'
    } else if (!/^[{}[\],:]?$/.test(found) && expected.startsWith('a value')) {
      expected = afterValue()
    } else {
      return fault(complaint(expected, text, at))
    }
    at += found.length
  }
}

function complaint(expected: Expected, text: string, at: number): string {
  const wanted = expected.startsWith('a key') ? expected.replace('a key', 'a key in double quotes') : expected
  if (at === text.length) return `The text ends where ${wanted} should be.`
  if (/^\/[/*]|^#/.test(text.slice(at, at + 2))) return 'JSON has no comments. Remove this one.'
  if (/^[}\]]/.test(text.slice(at, at + 1)) && text.slice(0, at).trimEnd().endsWith(','))
    return 'Remove the comma before this bracket.'
  return `There should be ${wanted} here.`
}

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0] ?? ''
}

function position(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at).split(/\r\n|\r|\n/)
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}
