import { jest } from '@jest/globals'
import type { ModelProvider } from '../../../src/index.js'

const order: string[] = []
jest.unstable_mockModule('@pydantic/genai-prices', () => {
  order.push('prices')
  return { findProvider: () => undefined, calcPrice: () => null }
})
const { createAgent } = await import('../../../src/index.js')

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }
const answer = {
  text: 'Hi.',
  reasoning: '',
  refusal: null,
  toolCalls: [],
  finishReason: 'stop',
  complete: true,
  usage,
  model: null,
}

const model: ModelProvider = {
  provider: 'openai',
  model: 'gpt-5-mini',
  async request(_request, { onSent }) {
    order.push('request')
    onSent?.()
    order.push('sent')
    await new Promise((resolve) => setImmediate(resolve))
    return answer
  },
}

test('the price table is not loaded unless costs are requested', async () => {
  const { usage: used } = await createAgent({ model, prices: null }).run('Hi.').result
  expect(used).toMatchObject({ totalTokens: 2, cost: null })
  expect(order.splice(0)).toEqual(['request', 'sent'])
})

test('a cost limit without prices is refused before anything is sent', async () => {
  const run = createAgent({ model, prices: null, limits: { costLimit: 1 } }).run('Hi.')
  await expect(run.result).rejects.toMatchObject({ code: 'unknown_price' })
  expect(order.splice(0)).toEqual([])
})

test('it is loaded once, while the first answer is awaited', async () => {
  const agent = createAgent({ model })
  await agent.run('Hi.').result
  await agent.run('Hi.').result
  expect(order.splice(0)).toEqual(['request', 'sent', 'prices', 'request', 'sent'])
})
