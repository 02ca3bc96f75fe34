import fc from 'fast-check'
import { chunkText } from '../../src/memory/chunk-index.js'

const options = fc.integer({ min: 50, max: 120 }).chain((chunkChars) =>
  fc.record({
    chunkChars: fc.constant(chunkChars),
    overlap: fc.integer({ min: 0, max: Math.ceil(chunkChars / 2) - 1 }),
  }),
)

/** Texts full of chunk boundaries and of sequences that must not be split. */
const text = fc
  .array(fc.constantFrom('word', ' ', '\n\n', '. ', '。', '😀', '\n', '\t', 'x'.repeat(60), '𝒳'.repeat(40)), {
    maxLength: 80,
  })
  .map((parts) => parts.join(''))

describe('every text and every size', () => {
  it('gives chunks of the text that are not empty, not too long, and trimmed', () => {
    fc.assert(
      fc.property(text, options, (whole, size) => {
        for (const chunk of chunkText(whole, size)) {
          expect(whole.slice(chunk.start, chunk.start + chunk.text.length)).toBe(chunk.text)
          expect(chunk.text.length).toBeLessThanOrEqual(size.chunkChars)
          expect(chunk.text).not.toBe('')
          expect(chunk.text.trim()).toBe(chunk.text)
        }
      }),
    )
  })

  it('omits only whitespace between chunks, whose starts and ends increase', () => {
    fc.assert(
      fc.property(text, options, (whole, size) => {
        let end = 0
        let start = -1
        for (const chunk of chunkText(whole, size)) {
          expect(chunk.start).toBeGreaterThan(start)
          expect(whole.slice(end, chunk.start).trim()).toBe('')
          start = chunk.start
          const next = chunk.start + chunk.text.length
          expect(next).toBeGreaterThan(end)
          end = next
        }
        expect(whole.slice(end).trim()).toBe('')
      }),
    )
  })

  it('splits no surrogate pair', () => {
    fc.assert(
      fc.property(text, options, (whole, size) => {
        for (const chunk of chunkText(whole, size)) expect(chunk.text).not.toMatch(/\p{Cs}/u)
      }),
    )
  })

  it('gives chunks that share at most `overlap` characters', () => {
    fc.assert(
      fc.property(text, options, (whole, size) => {
        const chunks = chunkText(whole, size)
        chunks.slice(1).forEach(({ start }, index) => {
          const before = chunks[index]
          // One more character to avoid splitting a surrogate pair.
          const end = (before?.start ?? 0) + (before?.text.length ?? 0)
          expect(end - start).toBeLessThanOrEqual(size.overlap + 1)
        })
      }),
    )
  })
})

const divide = (whole: string, chunkChars: number, overlap = 0) =>
  chunkText(whole, { chunkChars, overlap }).map((chunk) => chunk.text)

it('a paragraph is a better end than a sentence, a sentence than a word, and a word than any position', () => {
  expect(divide('One two three. Four.\n\nFive. Six seven.', 30)).toEqual([
    'One two three. Four.',
    'Five. Six seven.',
  ])
  expect(divide('One two three four. Five six seven eight', 30)).toEqual([
    'One two three four.',
    'Five six seven eight',
  ])
  expect(divide('One two three four five six seven eight', 30)).toEqual([
    'One two three four five six',
    'seven eight',
  ])
  expect(divide('x'.repeat(70), 30)).toEqual(['x'.repeat(30), 'x'.repeat(30), 'x'.repeat(10)])
})

it('an overlap starts with a whole word', () => {
  expect(divide('One two three four five six seven eight', 30, 9)).toEqual([
    'One two three four five six',
    'five six seven eight',
  ])
})
