import { toUsage } from '../../../src/ai-sdk/ai-sdk-usage.js'

const source = { provider: 'anthropic.messages' }
const counts = { outputTokens: 5, cachedInputTokens: 700 }
const anthropic = { cacheCreationInputTokens: 200, usage: { input_tokens: 100 } }

it.each([
  ['excludes cached tokens, as its package does', 100],
  ['includes cached tokens, as a wrapper may', 1000],
])('input of specification v2 that %s is counted once', (_what, inputTokens) => {
  const usage = toUsage({ ...counts, inputTokens }, { ...source, metadata: { anthropic } })
  expect(usage).toMatchObject({ inputTokens: 1000, cachedInputTokens: 700, cacheWriteTokens: 200 })
})

it('input is taken to exclude cached tokens if the provider’s own count is missing', () => {
  const metadata = { anthropic: { cacheCreationInputTokens: 200 } }
  expect(toUsage({ ...counts, inputTokens: 100 }, { ...source, metadata })).toMatchObject({
    inputTokens: 1000,
  })
})

describe("the input of Gemini's built-in tools", () => {
  const reported = {
    promptTokenCount: 15,
    candidatesTokenCount: 41,
    thoughtsTokenCount: 47,
    toolUsePromptTokenCount: 770,
    totalTokenCount: 873,
  }
  const wanted = { inputTokens: 785, outputTokens: 88, totalTokens: 873, reasoningTokens: 47 }
  const v3 = (total: number, raw: object) => ({
    inputTokens: { total },
    outputTokens: { total: 88, reasoning: 47 },
    raw,
  })

  it.each([
    ['v3', v3(15, reported), {}],
    ['v3, whose total is missing', v3(15, { toolUsePromptTokenCount: 770 }), {}],
    ['v3, from a package that has counted it', v3(785, reported), {}],
    [
      'v2',
      { inputTokens: 15, outputTokens: 41, totalTokens: 873, reasoningTokens: 47 },
      { google: { usageMetadata: reported } },
    ],
  ])('counts as input (%s)', (_version, input, metadata) => {
    const usage = toUsage(input, { provider: 'google.generative-ai', metadata })
    expect(usage).toMatchObject(wanted)
  })
})
