import { parseSnippets } from '../../src/core/memory/retriever.js'

it('of what a retriever gives, source, text and a finite score stay', () => {
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
  '%p is refused',
  (found) => {
    expect(() => parseSnippets(found)).toThrow(
      expect.objectContaining({ name: 'MemoryError', code: 'invalid_snippets' }),
    )
  },
)
