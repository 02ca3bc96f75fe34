import fc from 'fast-check'
import { JsonListCache } from '../../../src/core/models/openai/encode-body.js'

const written = (lists: JsonListCache, items: readonly object[]) =>
  JSON.parse(`[${new TextDecoder().decode(lists.write(items))}]`) as unknown

/** Includes texts with more bytes than characters. */
const item = fc.record({ content: fc.string({ unit: 'grapheme', maxLength: 300 }) })

test('a list is written in its current form, whatever it was before', () => {
  const all = fc.array(item, { minLength: 1, maxLength: 12 })
  // Lists made of the same objects, in any order and number: grown, cut, edited, from one conversation or
  // several.
  const picks = fc.array(fc.array(fc.nat(), { maxLength: 20 }), { maxLength: 12 })
  fc.assert(
    fc.property(all, picks, (items, picked) => {
      const lists = new JsonListCache()
      for (const picks of picked) {
        const list = picks.map((pick) => items[pick % items.length] as object)
        expect(written(lists, list)).toEqual(list)
      }
    }),
  )
})

test('a growing conversation is serialized once', () => {
  const lists = new JsonListCache()
  let count = 0
  const message = (content: string) => ({
    toJSON: () => {
      count += 1
      return { content }
    },
  })
  const system = message('You are terse.')
  const conversations = ['ada', 'bob'].map((name) => [system, message(name)])
  for (let step = 0; step < 20; step++)
    for (const conversation of conversations) {
      conversation.push(message(`answer ${step}`), message('result'.repeat(step)))
      const guidance = { role: 'user', content: `nudge ${step}` }
      lists.write([...conversation, guidance])
    }
  // One message each, plus their shared first message.
  expect(count).toBe(2 * (2 + 40))
})

test('a removal or insertion in the middle does not invalidate the rest', () => {
  const lists = new JsonListCache()
  let count = 0
  const numbers = Array.from({ length: 30 }, (_, at) => ({ at }))
  const all = numbers.map((number) => ({
    toJSON: () => {
      count += 1
      return number
    },
  }))
  lists.write(all)
  const rest = [...all.slice(0, 2), { marker: true }, ...all.slice(9)]
  expect(written(lists, rest)).toEqual([{ at: 0 }, { at: 1 }, { marker: true }, ...numbers.slice(9)])
  expect(count).toBe(30)
})
