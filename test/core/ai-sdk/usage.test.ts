import { usageOf } from '../../../src/ai-sdk/usage.js'

const source = { version: 'v2', provider: 'anthropic.messages' }
const given = { outputTokens: 5, cachedInputTokens: 700 }
const anthropic = { cacheCreationInputTokens: 200, usage: { input_tokens: 100 } }

it.each([
  ['leaves the cached tokens out, as its package does', 100],
  ['has put them in, as what wraps its model may', 1000],
])('input of specification v2 that %s is counted once', (_what, inputTokens) => {
  const usage = usageOf({ ...given, inputTokens }, { ...source, metadata: { anthropic } })
  expect(usage).toMatchObject({ inputTokens: 1000, cachedInputTokens: 700, cacheWriteTokens: 200 })
})

it('where the provider’s own count is not told, it is taken to leave them out', () => {
  const metadata = { anthropic: { cacheCreationInputTokens: 200 } }
  expect(usageOf({ ...given, inputTokens: 100 }, { ...source, metadata })).toMatchObject({
    inputTokens: 1000,
  })
})
