import * as fc from 'fast-check'
import { findJsonProblem } from '../../../src/core/base/json.js'
import { sampled } from '../../support/extent.js'

const parses = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

test.each([
  ['', 0, 'the text ends where a value is expected'],
  ['{"a":1', 6, "the text ends where ',' or '}' is expected"],
  ['{"a" 1}', 5, 'expected \':\' after the property name but found "1"'],
  ['{a:1}', 1, 'expected a property name in double quotes or \'}\' but found "a"'],
  ['{"a":1,}', 7, 'expected a property name in double quotes but found "}"'],
  ['[1,]', 3, 'expected a value but found "]"'],
  ['[1 2]', 3, "expected ',' or ']' but found \"2\""],
  ['{"a":01}', 6, "expected ',' or '}' but found \"1\""],
  ['{"a":tru}', 5, 'expected a value but found "t"'],
  ["{'a':1}", 1, "expected a property name in double quotes or '}' but found \"'\""],
  ['{"a":1}{"a":1}', 7, 'expected nothing after the end of the JSON value but found "{"'],
  ['{"a":"b', 7, 'the string that starts at position 5 is never closed'],
  ['"a\nb"', 2, 'a control character inside a string must be written as \\n'],
  ['"C:\\x"', 3, 'this is not a JSON escape sequence; write \\\\ for a backslash'],
  ['[😀]', 1, 'expected a value or \']\' but found "😀"'],
])('The problem of %j is at position %d', (text, position, problem) => {
  expect(findJsonProblem(text)).toEqual({ position, problem })
})

const mangled = fc
  .tuple(
    fc.json(),
    fc.nat(),
    fc.nat({ max: 3 }),
    fc.constantFrom('', '"', '{', '}', '[', ']', ',', ':', '\\', '0', '-', '.', 'e', 'true', '\n', '\u0000'),
  )
  .map(([json, at, cut, insert]) => {
    const from = at % (json.length + 1)
    return json.slice(0, from) + insert + json.slice(from + cut)
  })

test('A text has a problem exactly if JSON.parse refuses it, at a position inside or at the end', () => {
  fc.assert(
    fc.property(fc.oneof(mangled, fc.json(), fc.string()), (text) => {
      const found = findJsonProblem(text)
      expect(found === null).toBe(parses(text))
      if (found === null) return
      expect(found.position).toBeGreaterThanOrEqual(0)
      expect(found.position).toBeLessThanOrEqual(text.length)
    }),
    { numRuns: sampled(2000) },
  )
})

test('A prefix of JSON has its problem at its end', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), (json, at) => {
      const prefix = `[${json}`.slice(0, 1 + (at % (json.length + 1)))
      const found = findJsonProblem(prefix)
      // An incomplete literal, number or escape is reported at its start.
      const start = prefix.search(/(?:[a-z\d.+-]+|\\u?[\da-f]*)$/i)
      expect(found?.position).toBeGreaterThanOrEqual(start === -1 ? prefix.length : start)
    }),
  )
})

test('Any depth and ten million characters are parsed', () => {
  expect(findJsonProblem('['.repeat(1_000_000))).toMatchObject({ position: 1_000_000 })
  expect(findJsonProblem(`{"a":"${'x'.repeat(10_000_000)}`)).toMatchObject({ position: 10_000_006 })
})

describe('with unique keys', () => {
  const unique = (text: string) => findJsonProblem(text, { uniqueKeys: true })

  test('a text has a problem if it is invalid or repeats a key', () => {
    fc.assert(
      fc.property(fc.oneof(mangled, fc.json()), (text) => {
        const found = unique(text)
        if (!found?.problem.includes('twice')) expect(found).toEqual(findJsonProblem(text))
      }),
    )
  })

  test('keys with different escapes and the same value are equal', () => {
    expect(unique(String.raw`{"a":1,"\u0061":2}`)).toEqual({
      position: 7,
      problem: String.raw`the key "\u0061" appears twice; keep one`,
    })
  })

  test('adjacent and nested objects have separate keys', () => {
    expect(unique('{"a":{"a":1},"b":[{"a":1},{"a":1}]}')).toBeNull()
    expect(unique('{"a":{"b":[{}]},"a":1}')?.position).toBe(16)
  })
})
