/** Where a text stops being JSON, and why. */
export interface JsonProblem {
  /** Index of the first character that cannot be right; the text's length when it ends too early. */
  position: number
  problem: string
}

type ExpectedToken = keyof typeof expectations

const expectations = {
  value: 'a value',
  valueOrEnd: "a value or ']'",
  key: 'a property name in double quotes',
  keyOrEnd: "a property name in double quotes or '}'",
  colon: "':' after the property name",
  commaInArray: "',' or ']'",
  commaInObject: "',' or '}'",
  nothing: 'nothing after the end of the JSON value',
}

const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const literalPattern = /true|false|null/y
const escapePattern = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

/**
 * Finds what is wrong with a text that `JSON.parse` refuses; null when nothing is. Engines word their errors
 * differently and some give no position, but a person who repairs a long text needs one. Does not recurse, so that any
 * depth of nesting can be read.
 * @param options.uniqueKeys whether an object that has a key twice is wrong, too: `JSON.parse` takes the last in silence
 */
export function findJsonProblem(
  text: string,
  { uniqueKeys = false }: { uniqueKeys?: boolean } = {},
): JsonProblem | null {
  const open: ('{' | '[')[] = []
  /** The keys of each object that is open. */
  const keys: Set<string>[] = []
  let expected: ExpectedToken = 'value'
  let at = 0

  const afterValue = (): ExpectedToken => {
    const top = open.at(-1)
    return top === undefined ? 'nothing' : top === '[' ? 'commaInArray' : 'commaInObject'
  }
  const close = (): void => {
    if (open.pop() === '{') keys.pop()
  }
  const unexpected = (): JsonProblem => ({
    position: at,
    problem:
      at < text.length
        ? `expected ${expectations[expected]} but found ${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))}`
        : `the text ends where it needs ${expectations[expected]}`,
  })

  for (;;) {
    at = skipSpace(text, at)
    const char = text[at]
    if (char === undefined) return expected === 'nothing' ? null : unexpected()
    switch (expected) {
      case 'key':
      case 'keyOrEnd':
      case 'value':
      case 'valueOrEnd': {
        const wantsKey: boolean = expected === 'key' || expected === 'keyOrEnd'
        if (char === '"') {
          const end = findStringEnd(text, at)
          if (typeof end === 'object') return end
          const key = wantsKey && uniqueKeys ? (JSON.parse(text.slice(at, end)) as string) : null
          if (key !== null && keys.at(-1)?.has(key))
            return { position: at, problem: describeDuplicateKey(text.slice(at, end)) }
          if (key !== null) keys.at(-1)?.add(key)
          at = end
          expected = wantsKey ? 'colon' : afterValue()
        } else if ((expected === 'keyOrEnd' && char === '}') || (expected === 'valueOrEnd' && char === ']')) {
          at += 1
          close()
          expected = afterValue()
        } else if (wantsKey) {
          return unexpected()
        } else if (char === '{' || char === '[') {
          at += 1
          open.push(char)
          if (char === '{') keys.push(new Set())
          expected = char === '{' ? 'keyOrEnd' : 'valueOrEnd'
        } else {
          const end = matchAt(numberPattern, text, at) ?? matchAt(literalPattern, text, at)
          if (end === undefined) return unexpected()
          at = end
          expected = afterValue()
        }
        break
      }
      case 'colon':
        if (char !== ':') return unexpected()
        at += 1
        expected = 'value'
        break
      case 'commaInArray':
      case 'commaInObject':
        if (char === ',') expected = expected === 'commaInArray' ? 'value' : 'key'
        else if (char === (expected === 'commaInArray' ? ']' : '}')) {
          close()
          expected = afterValue()
        } else return unexpected()
        at += 1
        break
      case 'nothing':
        return unexpected()
    }
  }
}

const describeDuplicateKey = (key: string): string => `the key ${key} is given twice; keep one`

/** Index after the string that opens at `start`, or what is wrong with it. */
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
        return { position: at, problem: 'this is not an escape that JSON knows; write \\\\ for a backslash' }
      at = end - 1
    }
  }
  return { position: text.length, problem: `the string that opens at position ${start} is never closed` }
}

function matchAt(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}

function skipSpace(text: string, at: number): number {
  let next = at
  while (text[next] === ' ' || text[next] === '\n' || text[next] === '\r' || text[next] === '\t') next += 1
  return next
}
