import { parseSnippets } from '../../src/core/memory/retriever.js'

it('keeps source, text and a finite score of a retriever', () => {
  const found = [
    { source: 'a', text: 'x', score: 1, vector: [1] },
    { source: 'b', text: 'y', score: Number.NaN },
  ]
  expect(parseSnippets(found)).toEqual([
    { source: 'a', text: 'x', score: 1 },
    { source: 'b', text: 'y' },
  ])
})

it.each([[undefined], ['text'], [{}], [[null]], [[{ text: 'x' }]], [[{ source: 'a', text: 1 }]]])(
  'refuses %p',
  (found) => {
    expect(() => parseSnippets(found)).toThrow(
      expect.objectContaining({ name: 'MemoryError', code: 'invalid_snippets' }),
    )
  },
)
