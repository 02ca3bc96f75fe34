import { createPriceBook } from '../../../src/core/prices/price-book.js'

const usage = {
  inputTokens: 1000,
  outputTokens: 100,
  totalTokens: 1100,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}

/** In a separate file, so that the catalog is not loaded yet. A promise signals the load. */
describe('the catalog is not loaded', () => {
  const book = createPriceBook({ mine: { inputPerMillion: 10, outputPerMillion: 0 } })

  test.each(['127.0.0.1', 'llm.example.com', '[::1]', 'localhost', 'ollama', 'lmstudio', 'vllm'])(
    'if the provider is a custom server: %s',
    (provider) => {
      expect(book.load(provider, 'gpt-4o')).toBeUndefined()
      expect(book.price(provider, 'gpt-4o', usage)).toBeNull()
      expect(book.knownPrice(provider, 'gpt-4o', usage)).toBeNull()
    },
  )

  test('if the price is configured', () => {
    expect(book.load('openai', 'mine')).toBeUndefined()
    expect(book.price('openai', 'mine', usage)).toBe(0.01)
  })

  test('until a known provider is used', async () => {
    const price = book.price('openai', 'gpt-4o', usage)
    expect(price).toBeInstanceOf(Promise)
    expect(await price).toBeCloseTo(0.0035, 10)
    expect(book.price('openai', 'gpt-4o', usage)).toBeCloseTo(0.0035, 10)
    expect(book.price('llm.example.com', 'gpt-4o', usage)).toBeNull()
  })
})
