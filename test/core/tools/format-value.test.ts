import * as fc from 'fast-check'
import { cutMiddle, formatValue } from '../../../src/core/base/text.js'
import { hostile, oddities } from './hostile.js'

const format = (value: unknown) => formatValue(value, 1000).content
const loop: Record<string, unknown> = { a: 1 }
loop['self'] = loop

class Point {
  x = 1
  #secret = 2
  sum() {
    return this.x + this.#secret
  }
}

test.each([
  ['text, unchanged', ' a\n"b" ', ' a\n"b" '],
  ['an empty text', '', ''],
  ['undefined', undefined, 'Done. The tool returned nothing.'],
  ['null', null, 'Done. The tool returned nothing.'],
  ['a number', 1.5, '1.5'],
  ['false', false, 'false'],
  ['an object', { a: [1, null, { b: 'c' }], u: undefined }, '{"a":[1,null,{"b":"c"}]}'],
  ['a hole', [1, undefined, 2], '[1,null,2]'],
  ['a BigInt', { n: 12n }, '{"n":"12"}'],
  ['NaN', { n: NaN }, '{"n":"NaN"}'],
  ['a function', () => 1, '[function]'],
  ['a symbol', Symbol('s'), 'Symbol(s)'],
  ['a date', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
  ['a Map', new Map([['a', 1]]), '{"a":1}'],
  ['a Map of objects', new Map([[{ k: 1 }, 2]]), '[[{"k":1},2]]'],
  ['a Set', new Set([1, 'b']), '[1,"b"]'],
  [
    'an Error',
    Object.assign(new RangeError('far'), { code: 'E1' }),
    '{"name":"RangeError","message":"far","code":"E1"}',
  ],
  ['a cycle', loop, '{"a":1,"self":"[circular]"}'],
  ['an object twice', [{ a: 1 }, { a: 1 }].map((value, _, [first]) => first ?? value), '[{"a":1},{"a":1}]'],
  ['a class', new Point(), '{"x":1}'],
  ['a Buffer', Buffer.from('abc'), '[binary data: 3 bytes]'],
  ['nested bytes', { png: new Uint8Array(2048) }, '{"png":"[binary data: 2048 bytes]"}'],
  ['an ArrayBuffer', new ArrayBuffer(8), '[binary data: 8 bytes]'],
  ['a Blob', new Blob(['abc'], { type: 'image/png' }), '[binary data: 3 bytes, image/png]'],
  ['a Response', new Response('x'), '[Response]'],
  ['a RegExp', { re: /x/ }, '{"re":"[RegExp]"}'],
  ['a toJSON', { toJSON: () => ({ a: 1n }) }, '{"a":"1"}'],
  [
    'a toJSON that throws',
    [
      1,
      {
        toJSON() {
          throw new Error('boom')
        },
      },
    ],
    '[1,"[unreadable: boom]"]',
  ],
  [
    'a getter that throws',
    {
      a: 1,
      get b() {
        throw new Error('boom')
      },
    },
    '{"a":1,"b":"[unreadable]"}',
  ],
  ['a __proto__', JSON.parse('{"__proto__":{"a":1}}'), '{"__proto__":{"a":1}}'],
])('%s is readable', (_, value, content) => {
  expect(format(value)).toBe(content)
})

test('Values that JSON can represent are formatted by JSON.stringify', () => {
  fc.assert(
    fc.property(fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue())), (value) => {
      expect(formatValue(value, Infinity).content).toBe(JSON.stringify(value))
    }),
  )
})

test('A text over the limit keeps head and tail around a note about the omitted part', () => {
  const text = `${'h'.repeat(5000)}${'t'.repeat(5000)}`
  const { content, truncated } = formatValue(text, 1000)
  expect(truncated).toBe(true)
  const [, head, dropped, tail] =
    /^(h+)\n\[… (\d+) of 10000 characters omitted …\]\n(t+)$/.exec(content) ?? []
  expect((head?.length ?? 0) + Number(dropped) + (tail?.length ?? 0)).toBe(10_000)
  expect(content.length).toBeGreaterThan(990)
  expect(content.length).toBeLessThanOrEqual(1000)
})

test('A text of exactly the limit is not truncated', () => {
  expect(formatValue('x'.repeat(1000), 1000)).toEqual({ content: 'x'.repeat(1000) })
})

test('A truncated text fits every limit, counts correctly and splits no surrogate pair', () => {
  const text = fc
    .array(fc.constantFrom('a', '😀', '\n', 'é'), { minLength: 50, maxLength: 300 })
    .map((all) => all.join(''))
  fc.assert(
    fc.property(text, fc.nat({ max: 200 }), (full, max) => {
      const cut = cutMiddle(full, max)
      expect(cut.length).toBeLessThanOrEqual(Math.max(max, 0))
      expect(Buffer.from(cut).toString()).toBe(cut)
      const [note, dropped] = /\n\[… (\d+) of \d+ characters omitted …\]\n/.exec(cut) ?? []
      if (note !== undefined) expect(cut.length - note.length + Number(dropped)).toBe(full.length)
    }),
  )
})

test('Any return value is a text within the limit', () => {
  for (const make of oddities) expect(format(make()).length).toBeLessThanOrEqual(1000)
  fc.assert(
    fc.property(hostile, (make) => {
      const { content } = formatValue(make(), 300)
      expect(typeof content).toBe('string')
      expect(content.length).toBeLessThanOrEqual(300)
    }),
  )
})
