import * as fc from 'fast-check'
import { canonicalForms } from '../../guards/lib/canonical-json.js'
import {
  fingerprintBatch,
  digest,
  fingerprintCall,
  identifyCall,
  formatArguments,
} from '../../guards/lib/fingerprint.js'
import { unicodeText } from '../support/unicode-text.js'

const same = (a: string, b: string) => fingerprintCall('read', a) === fingerprintCall('read', b)

/** The same value with its keys in a different order at every depth. */
function permuted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(permuted)
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, inner]) => [key, permuted(inner)]),
  )
}

/** Whether two JSON values are equal, ignoring the order of their keys. */
function equal(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [left, right] = [Object.entries(a), new Map(Object.entries(b))]
  return (
    left.length === right.size && left.every(([key, value]) => right.has(key) && equal(value, right.get(key)))
  )
}

/** JSON values as parsed from text, without -0. */
const json = () => fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)

const nest = (inner: string) => `${'[{"k":'.repeat(10_000)}${inner}${'}]'.repeat(10_000)}`

/** The same value in a different order at every depth. Integer keys come first in ascending order, as in every object. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  const entries = Object.entries(value).map(([key, inner]) => [key, sorted(inner)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

describe('a fingerprint', () => {
  test('is 64 hexadecimal digits of SHA-256', () => {
    expect(fingerprintCall('read', '{}')).toMatch(/^[0-9a-f]{64}$/)
    expect(digest('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })

  test('does not depend on the order of keys at any depth, or on whitespace', () => {
    expect(
      same('{"a":{"x":1,"y":[{"p":1,"q":2}]},"b":2}', '{ "b": 2, "a": {"y":[ {"q":2,"p":1} ], "x":1} }'),
    ).toBe(true)
    fc.assert(
      fc.property(json(), (value) => {
        expect(same(JSON.stringify(value), JSON.stringify(permuted(value), null, 3))).toBe(true)
      }),
    )
  })

  test('differs for different JSON values', () => {
    fc.assert(
      fc.property(json(), json(), (a, b) => {
        expect(same(JSON.stringify(a), JSON.stringify(b))).toBe(equal(a, b))
      }),
    )
  })

  test.each([
    ['1', '"1"'],
    ['{"a":1}', '{"a":"1"}'],
    ['{"a":null}', '{}'],
    ['{"a":1e400}', '{"a":null}'],
    ['{"a":1e400}', '{"a":-1e400}'],
    ['{"a":1e400}', '{"a":"1e999"}'],
    ['[]', '{}'],
    ['[1,2]', '[2,1]'],
    ['true', '"true"'],
    ['{"__proto__":{"a":1}}', '{"__proto__":{"a":2}}'],
    ['{"__proto__":{"a":1}}', '{}'],
    ['"\\ud800"', '"\\ud801"'],
    ['{"a":"b\\",\\"c\\":\\"d"}', '{"a":"b","c":"d"}'],
  ])('distinguishes %s from %s', (a, b) => {
    expect(same(a, b)).toBe(false)
  })

  test.each([
    ['1', '1.0'],
    ['100', '1e2'],
    ['"A"', '"\\u0041"'],
    ['{"1":1,"b":2,"a":3}', '{"a":3,"b":2,"1":1}'],
    ['{"a":1e400,"b":{"__proto__":1,"a":2}}', '{"b":{"a":2,"__proto__":1},"a":1e400}'],
  ])('treats %s and %s as equal', (a, b) => {
    expect(same(a, b)).toBe(true)
  })

  test('truncates nothing: two values of 300 characters that differ at character 250 are two calls', () => {
    const text = 'x'.repeat(300)
    expect(
      same(JSON.stringify({ text }), JSON.stringify({ text: `${text.slice(0, 250)}y${text.slice(251)}` })),
    ).toBe(false)
  })

  test('treats arguments that are not JSON as raw text, different from the JSON string of the same letters', () => {
    expect(same('not json', '"not json"')).toBe(false)
    expect(same('not json', 'not  json')).toBe(false)
    expect(same('not json', 'not json')).toBe(true)
    expect(same('', '""')).toBe(false)
    expect(canonicalForms('{"a":')).toBeNull()
  })

  test('includes the name, which no arguments can imitate', () => {
    expect(fingerprintCall('a', '{}')).not.toBe(fingerprintCall('b', '{}'))
    expect(fingerprintCall('a" json 1', '2')).not.toBe(fingerprintCall('a', '1" json 2'))
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (name, args, otherName, otherArgs) => {
        if (name !== otherName)
          expect(fingerprintCall(name, args)).not.toBe(fingerprintCall(otherName, otherArgs))
      }),
    )
  })

  test('accepts any depth, and ignores the order of keys at every level', () => {
    expect(same(nest('{"a":1,"b":2}'), nest('{"b":2,"a":1}'))).toBe(true)
    expect(same(nest('{"a":1}'), nest('{"a":2}'))).toBe(false)
  })

  test('hashes the JSON of the platform with sorted keys, because stored sessions contain it', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.stringMatching(/^[a-z"\\\ud800]{0,4}$/), json()), (value) => {
        const text = JSON.stringify(value)
        expect(canonicalForms(text)?.exact).toBe(JSON.stringify(sorted(JSON.parse(text))))
      }),
    )
  })

  // Stored sessions contain these fingerprints and continue with them.
  test.each([
    ['{"path": "a.ts", "b": [1, 2.50]}', '1095e897f631b3a784c864ae2402afbf', '1095e897f6'],
    ['{"text":" blank \\n"}', '15e4a24d59661cfe0a6a277d8a1fb033', 'de9a0431b7'],
    ['{"10":1,"9":2,"x":"é\\u0007"}', 'a3955cc9e564b90b61cd2790316f6bb9', 'a3955cc9e5'],
    ['not json', 'b010fe9e3916b5599a090e1a2d175762', 'b010fe9e39'],
  ])('of %s never changes between versions', (text, start, key) => {
    const known = identifyCall('read', text)
    expect(known.fingerprint.slice(0, 32)).toBe(start)
    expect(known.key).toBe(key)
  })

  test('accepts any text as arguments', () => {
    fc.assert(
      fc.property(unicodeText(), (text) => {
        expect(fingerprintCall(text, text)).toMatch(/^[0-9a-f]{64}$/)
      }),
    )
  })
})

describe('the fingerprint of a batch', () => {
  const [a, b] = [fingerprintCall('a', '{}'), fingerprintCall('b', '{}')]

  test('ignores the order of calls but not their number', () => {
    expect(fingerprintBatch([a, b])).toBe(fingerprintBatch([b, a]))
    expect(fingerprintBatch([a, b, a])).toBe(fingerprintBatch([a, a, b]))
    expect(new Set([[], [a], [a, a], [a, b], [a, a, b], [a, b, b]].map(fingerprintBatch)).size).toBe(6)
  })

  test('does not change its argument', () => {
    const calls = Object.freeze([b, a])
    fingerprintBatch(calls)
    expect(calls).toEqual([b, a])
  })
})

describe('shown arguments', () => {
  test('are at most 200 characters, with a mark if truncated', () => {
    expect(formatArguments('short')).toBe('short')
    expect(formatArguments('x'.repeat(200))).toBe('x'.repeat(200))
    expect(formatArguments('x'.repeat(201))).toBe(`${'x'.repeat(199)}…`)
  })

  test('are never truncated inside a code point', () => {
    for (const start of ['', 'x']) {
      const text = formatArguments(start + '😀'.repeat(200))
      expect(text).toMatch(/^x?(😀)+…$/u)
      expect(text.length).toBeLessThanOrEqual(200)
    }
  })

  test('are one line without control characters', () => {
    expect(formatArguments('a\nb\u0000c\u001b[31m')).toBe('a b c [31m')
    fc.assert(
      fc.property(unicodeText({ maxLength: 400 }), (text) => {
        expect(formatArguments(text)).not.toMatch(/[\p{Cc}\p{Cs}]/u)
        expect(formatArguments(text).length).toBeLessThanOrEqual(200)
      }),
    )
  })
})
