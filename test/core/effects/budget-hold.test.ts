import { findWorstCase, learnInputTokens, priceWorstCase } from '../../../src/core/effects/budget-hold.js'
import type { ModelRequest } from '../../../src/index.js'
import { estimateRequestTokens } from '../../../src/core/prices/estimate-tokens.js'
import { createPriceBook } from '../../../src/core/prices/price-book.js'

function requestOf(text: string, over: Partial<ModelRequest> = {}): ModelRequest {
  return {
    instructions: null,
    messages: [{ role: 'user', id: 'm1', createdAt: 0, content: text }],
    nudges: [],
    tools: [],
    sampling: {},
    extraBody: {},
    stream: false,
    ...over,
  }
}

const short = requestOf('Go.')
const long = requestOf('Some words. '.repeat(1000))

test('the input is estimated with a margin, and never below an earlier count of the model', () => {
  const model = { provider: 'own', model: 'learning' }
  const [few, many] = [estimateRequestTokens(short), estimateRequestTokens(long)]
  expect(findWorstCase(model, short).inputTokens).toBe(Math.ceil(few * 1.1))
  // A template that a provider adds to each request.
  learnInputTokens(model, short, 90)
  expect(findWorstCase(model, short).inputTokens).toBeGreaterThanOrEqual(90)
  expect(findWorstCase(model, long).inputTokens).toBeLessThan(many * 1.1 + 100)
  // A tokenizer that counts more.
  learnInputTokens(model, long, many * 2)
  expect(findWorstCase(model, long).inputTokens).toBeGreaterThanOrEqual(many * 2)
  expect(findWorstCase({ ...model, model: 'another' }, long).inputTokens).toBe(Math.ceil(many * 1.1))
})

test('the output is the cap of the request, or of its body', () => {
  const model = { provider: 'own', model: 'any' }
  const capOf = (over: Partial<ModelRequest>) => findWorstCase(model, requestOf('Go.', over)).outputCap
  expect(capOf({})).toBeNull()
  expect(capOf({ sampling: { maxTokens: 100 } })).toBe(100)
  expect(capOf({ extraBody: { max_completion_tokens: 200 } })).toBe(200)
  expect(capOf({ extraBody: { max_output_tokens: 200 }, sampling: { maxTokens: 300 } })).toBe(300)
  expect(capOf({ extraBody: { max_tokens: 'many' } })).toBeNull()
})

test('the price is that of the most expensive way to read the input', async () => {
  const model = { provider: 'own', model: 'm' }
  const prices = { inputPerMillion: 1, outputPerMillion: 2 }
  const plain = createPriceBook({ m: prices })
  expect(await priceWorstCase(plain, model, 1_000_000, 1_000_000)).toBe(3)
  const writing = createPriceBook({ m: { ...prices, cacheWritePerMillion: 1.25 } })
  expect(await priceWorstCase(writing, model, 1_000_000, 0)).toBe(1.25)
  expect(await priceWorstCase(createPriceBook(null), model, 1, 1)).toBeNull()
})
