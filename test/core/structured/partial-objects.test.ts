import fc from 'fast-check'
import { createPartialReader } from '../../../src/core/structured/partial-objects.js'

/** The events of an answer that streams in these pieces. */
function read(...pieces: string[]): object[] {
  const reported: object[] = []
  const parse = createPartialReader((object) => reported.push(object))
  for (const text of pieces) parse({ stepId: 's1', text, finished: false })
  parse({ stepId: 's1', text: '', finished: true })
  return reported
}

/** Each character in its JSON encodings. */
const escaped = (text: string): string =>
  text
    .split('')
    .map((character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

test('each chunk gives the object so far', () => {
  expect(read('{"city":"Pa', 'ris","days"', ':[1,', '2]}')).toEqual([
    { city: 'Pa' },
    { city: 'Paris' },
    { city: 'Paris', days: [1] },
    { city: 'Paris', days: [1, 2] },
  ])
})

test('a long object is emitted whenever its text has grown by a twentieth, and at its end', () => {
  const object = { words: Array.from({ length: 500 }, (_, i) => `word ${i}`) }
  const objects = read(...(JSON.stringify(object).match(/.{1,4}/g) ?? []))
  // At most the logarithm, to base 1.05, of the growth from 4 to 6,391 characters.
  expect(objects.length).toBeGreaterThan(50)
  expect(objects.length).toBeLessThan(155)
  expect(objects.at(-1)).toEqual(object)
})

test('an unfinished number or word is left out, because it may continue', () => {
  expect(read('{"days":1', '2,"isFar":tr', 'ue}')).toEqual([{}, { days: 12 }, { days: 12, isFar: true }])
})

test('an answer in a code fence counts, and an answer without an object does not', () => {
  expect(read('```json\n{"a":', '1}\n```')).toEqual([{}, { a: 1 }])
  expect(read('I cannot say.', ' Sorry.')).toEqual([])
})

test.each([
  ['a key', '{"city":"Pa', 'ris","__proto__":{"isAdmin":true}}'],
  ['an escaped key', '{"city":"Pa', 'ris","\\u005F_proto__":{"isAdmin":true}}'],
  ['a completely escaped key', '{"city":"Paris",', `"${escaped('__proto__')}":{"isAdmin":`, 'true}}'],
])('%s cannot set a prototype', (_, ...pieces) => {
  const objects = read(...pieces)
  expect(objects.at(-1)).toEqual({ city: 'Paris' })
  for (const object of objects)
    expect([Object.getPrototypeOf(object), 'isAdmin' in object]).toEqual([Object.prototype, false])
})

test('a key within the object cannot set a prototype', () => {
  const object = read('{"a":[{"__proto__":{"b":1}}],"c":{"\\u005f_proto__":[]}}').at(-1) as {
    a: object[]
    c: object
  }
  expect([object.a[0], object.c].map((each) => Object.getPrototypeOf(each) as unknown)).toEqual([
    Object.prototype,
    Object.prototype,
  ])
})

test('a text may mention prototypes', () => {
  const object = { city: 'In JavaScript, __proto__ is a key.' }
  expect(read(...(JSON.stringify(object).match(/.{1,4}/g) ?? [])).at(-1)).toEqual(object)
})

test('nesting deeper than 200 levels is not emitted', () => {
  const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}"[["${']'.repeat(depth - 1)}}`
  expect(read(nested(200))).toEqual([JSON.parse(nested(200))])
  expect(read(nested(201))).toEqual([])
})

/** Whether `part` can grow into `whole`. */
function isPartOf(part: unknown, whole: unknown): boolean {
  if (typeof part === 'string') return typeof whole === 'string' && whole.startsWith(part)
  if (typeof part !== 'object' || part === null) return Object.is(part, whole)
  if (typeof whole !== 'object' || whole === null || Array.isArray(part) !== Array.isArray(whole))
    return false
  return Object.entries(part).every(([key, value]) =>
    isPartOf(value, (whole as Record<string, unknown>)[key]),
  )
}

test('for any object and any split, each value is a part of the object, and the last is complete', () => {
  const key = fc.string({ minLength: 1, maxLength: 4 }).filter((name) => name !== '__proto__')
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.string({ unit: 'grapheme' }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  }))
  const whole = fc.dictionary(key, value, { maxKeys: 5, noNullPrototype: true })
  fc.assert(
    fc.property(whole, fc.array(fc.nat(300), { maxLength: 12 }), fc.boolean(), (object, cuts, isWide) => {
      const text = JSON.stringify(object, null, isWide ? 2 : 0)
      if (text.includes('__proto__')) return
      const at = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length]
      const objects = read(...at.slice(1).map((end, i) => text.slice(at[i], end)))
      for (const part of objects) expect([part, isPartOf(part, object)]).toEqual([part, true])
      expect(objects.at(-1)).toEqual(object)
    }),
  )
})
