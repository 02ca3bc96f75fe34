import * as fc from 'fast-check'
import { OrderedList } from '../../../src/core/base/ordered-list.js'

test('items stay ordered and unique, whatever is added and removed', () => {
  const step = fc.record({ value: fc.integer({ min: 0, max: 400 }), isRemoved: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 3000, size: 'max' }), fc.nat(400), (steps, from) => {
      const list = new OrderedList<number>((a, b) => a - b)
      const known = new Set<number>()
      for (const { value, isRemoved } of steps) {
        if (isRemoved) list.delete(value)
        else list.add(value)
        if (isRemoved) known.delete(value)
        else known.add(value)
      }
      const expected = [...known].toSorted((a, b) => a - b)
      expect([...list.from(-1)]).toEqual(expected)
      expect([...list.from(from)]).toEqual(expected.filter((value) => value >= from))
      expect(list.first).toBe(expected[0])
    }),
    { numRuns: 50 },
  )
})

test('many items are stored in several chunks', () => {
  const list = new OrderedList<number>((a, b) => a - b)
  for (let i = 0; i < 5000; i += 1) list.add((i * 2741) % 5000)
  expect([...list.from(0)]).toEqual(Array.from({ length: 5000 }, (_, i) => i))
  for (let i = 0; i < 5000; i += 2) list.delete(i)
  expect([...list.from(4990)]).toEqual([4991, 4993, 4995, 4997, 4999])
})
