import { ConfigError } from '../../../src/core/base/errors.js'
import { createPriceBook, type PriceOverrides } from '../../../src/core/prices/price-book.js'

const usage = (inputTokens: number, outputTokens: number, cachedInputTokens = 0) => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens,
  cachedInputTokens,
  reasoningTokens: 0,
})
const million = usage(1_000_000, 1_000_000)
const noon = Date.UTC(2026, 5, 1, 12)

describe('the catalog', () => {
  const book = createPriceBook()

  // USD per million input and output tokens, as the providers publish them.
  test.each([
    ['openai', 'gpt-5-mini', 0.25 + 2],
    ['openai', 'gpt-4o', 2.5 + 10],
    ['openai', 'gpt-4o-mini', 0.15 + 0.6],
    ['openai', 'gpt-4.1', 2 + 8],
    ['azure', 'gpt-5-mini', 0.25 + 2],
    ['groq', 'openai/gpt-oss-120b', 0.15 + 0.6],
    ['groq', 'llama-3.3-70b-versatile', 0.59 + 0.79],
    ['openrouter', 'anthropic/claude-haiku-4.5', 1 + 5],
  ])('%s %s', async (provider, model, cost) => {
    expect(await book.price(provider, model, million, noon)).toBeCloseTo(cost, 10)
  })

  test('cached input has its own price', async () => {
    // 800 at 0.25 + 200 at 0.025 + 500 at 2, per million
    expect(await book.price('openai', 'gpt-5-mini', usage(1000, 500, 200), noon)).toBeCloseTo(0.001205, 10)
  })

  test('more cached tokens than input count as all cached', async () => {
    expect(await book.price('openai', 'gpt-5-mini', usage(100, 0, 500), noon)).toBeCloseTo(0.0000025, 12)
  })

  test.each(['gpt-5-mini-2025-08-07', 'gpt-5-mini-20250807', 'GPT-5-mini'])(
    '%s costs the same as gpt-5-mini',
    async (model) => {
      expect(await book.price('openai', model, million, noon)).toBeCloseTo(2.25, 10)
    },
  )

  test('a dated name is found if the catalog has no dates', async () => {
    expect(await book.price('openrouter', 'anthropic/claude-haiku-4.5-20251001', million, noon)).toBeCloseTo(
      6,
      10,
    )
  })

  test('the time of the request counts if nights are cheaper', async () => {
    const day = await book.price('deepseek', 'deepseek-chat', million, Date.UTC(2026, 0, 1, 12))
    const night = await book.price('deepseek', 'deepseek-chat', million, Date.UTC(2026, 0, 1, 20))
    expect(day).toBeGreaterThan(Number(night))
  })

  test('other spellings of a provider are the same provider', async () => {
    expect(await book.price('gemini', 'gemini-2.5-flash', million, noon)).toBe(
      await book.price('google', 'gemini-2.5-flash', million, noon),
    )
    expect(await book.price(' OpenAI ', 'gpt-4o', million, noon)).toBeCloseTo(12.5, 10)
  })

  test.each([
    ['openai', 'no-such-model'],
    ['openai', ''],
    ['', 'gpt-4o'],
    ['ollama', 'qwen3:8b'],
    ['vllm', 'Qwen/Qwen3-8B'],
    ['localhost', 'gpt-4o'],
    ['my-openai-proxy', 'gpt-4o'],
    ['constructor', 'gpt-4o'],
  ])('%s %s has no known price', async (provider, model) => {
    expect(await book.price(provider, model, million, noon)).toBeNull()
  })

  test('invalid counts give an unknown price, not an exception', async () => {
    expect(await book.price('openai', 'gpt-4o', usage(Number.NaN, 1), noon)).toBeNull()
    expect(await book.price('openai', 'gpt-4o', usage(-5, 1), noon)).toBeNull()
    expect(await book.price('deepseek', 'deepseek-chat', million, Number.NaN)).toBeNull()
  })

  test('no tokens cost nothing', async () => {
    expect(await book.price('openai', 'gpt-4o', usage(0, 0), noon)).toBe(0)
  })
})

describe('overrides', () => {
  test('null disables all prices', async () => {
    const book = createPriceBook(null)
    await book.load('openai', 'gpt-4o')
    expect(await book.price('openai', 'gpt-4o', million, noon)).toBeNull()
    expect(book.knownPrice('openai', 'gpt-4o', million, noon)).toBeNull()
  })

  test('a table overrides the catalog, for its models only', async () => {
    const book = createPriceBook({ 'gpt-4o': { inputPerMillion: 1, outputPerMillion: 2 } })
    expect(await book.price('openai', 'gpt-4o', million, noon)).toBe(3)
    expect(await book.price('openai', 'gpt-4o-mini', million, noon)).toBeCloseTo(0.75, 10)
  })

  test('cached input costs as much as input without a separate price', async () => {
    const plain = createPriceBook({ m: { inputPerMillion: 10, outputPerMillion: 0 } })
    const cached = createPriceBook({
      m: { inputPerMillion: 10, outputPerMillion: 0, cachedInputPerMillion: 1 },
    })
    expect(await plain.price('vllm', 'm', usage(1_000_000, 0, 500_000))).toBe(10)
    expect(await cached.price('vllm', 'm', usage(1_000_000, 0, 500_000))).toBe(5.5)
  })

  test('cache writes cost the provider’s price, or as much as input', async () => {
    const used = { ...usage(1000, 0, 200), cacheWriteTokens: 400 }
    const prices = { inputPerMillion: 10, outputPerMillion: 0, cachedInputPerMillion: 1 }
    const plain = createPriceBook({ m: prices })
    const dear = createPriceBook({ m: { ...prices, cacheWritePerMillion: 20 } })
    expect(await plain.price('x', 'm', used)).toBeCloseTo((800 * 10 + 200) / 1e6, 12)
    expect(await dear.price('x', 'm', used)).toBeCloseTo((400 * 10 + 200 + 400 * 20) / 1e6, 12)
    // Anthropic: 3.75 instead of 3, per million
    const written = { ...usage(1000, 0), cacheWriteTokens: 1000 }
    expect(await createPriceBook().price('anthropic', 'claude-sonnet-4-5', written, noon)).toBeCloseTo(
      0.00375,
      8,
    )
  })

  test('a dated model has the price of its undated name, and its own price first', async () => {
    const book = createPriceBook({
      m: { inputPerMillion: 1, outputPerMillion: 0 },
      'm-2025-01-01': { inputPerMillion: 2, outputPerMillion: 0 },
    })
    expect(await book.price('x', 'm-2025-08-07', million)).toBe(1)
    expect(await book.price('x', 'm-2025-01-01', million)).toBe(2)
  })

  test('a local model can be declared free', async () => {
    const book = createPriceBook({ 'qwen3:8b': { inputPerMillion: 0, outputPerMillion: 0 } })
    expect(await book.price('ollama', 'qwen3:8b', million)).toBe(0)
  })

  test('a function decides, and undefined falls back to the catalog', async () => {
    const book = createPriceBook((provider, model, { totalTokens }) =>
      provider === 'mine' ? totalTokens / 1e6 : model === 'secret' ? null : undefined,
    )
    expect(await book.price('mine', 'm', million)).toBe(2)
    expect(await book.price('openai', 'secret', million)).toBeNull()
    expect(await book.price('openai', 'gpt-4o', million, noon)).toBeCloseTo(12.5, 10)
  })

  test('a custom price is known immediately, and a catalog price after the first request', async () => {
    const book = createPriceBook({ m: { inputPerMillion: 1, outputPerMillion: 2 } })
    expect(book.knownPrice('x', 'm', million)).toBe(3)
    const price = await book.price('openai', 'gpt-4.1', million, noon)
    expect(price).toBeCloseTo(10, 10)
    expect(book.knownPrice('openai', 'gpt-4.1', million, noon)).toBe(price)
  })

  test.each([Number.NaN, -1, Infinity, 'free', {}])(
    'a function that returns %p gives an unknown price',
    async (cost) => {
      expect(await createPriceBook(() => cost as number).price('openai', 'gpt-4o', million, noon)).toBeNull()
    },
  )

  test('a function that throws gives an unknown price', async () => {
    const book = createPriceBook(() => {
      throw new Error('no')
    })
    expect(await book.price('openai', 'gpt-4o', million, noon)).toBeNull()
  })

  test.each([
    [{ m: { inputPerMillion: -1, outputPerMillion: 1 } }, 'prices.m.inputPerMillion'],
    [{ m: { inputPerMillion: Number.NaN, outputPerMillion: 1 } }, 'prices.m.inputPerMillion'],
    [{ m: { inputPerMillion: 1 } }, 'prices.m.outputPerMillion'],
    [{ m: { inputPerMillion: 1, outputPerMillion: 1, cached: 1 } }, 'prices.m.cached'],
    [{ m: 5 }, 'prices.m'],
    [[], 'prices'],
    ['free', 'prices'],
  ])('the table %j is refused at %s', (prices, subject) => {
    expect(() => createPriceBook(prices as unknown as PriceOverrides)).toThrow(
      expect.objectContaining({ name: 'ConfigError', code: 'invalid_config', subject }),
    )
    expect(() => createPriceBook(prices as unknown as PriceOverrides)).toThrow(ConfigError)
  })
})
