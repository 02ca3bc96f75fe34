import { createAgent, createSession, defineGuard, type ModelProvider } from '../../../src/index.js'
import { tool } from '../../support/tools.js'
import { longTest } from '../../support/extent.js'

/** A model that never ends. It sometimes repeats itself, and every call differs from the one before. */
function restless(): ModelProvider {
  let requestCount = 0
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }
  return {
    provider: 'restless',
    model: 'restless-1',
    request: () => {
      requestCount += 1
      const toolCalls = [
        {
          id: `c${requestCount}`,
          type: 'function' as const,
          function: {
            name: 'work',
            arguments: JSON.stringify({ n: requestCount % 7 === 0 ? 'again' : requestCount }),
          },
        },
      ]
      const answer = { text: '', reasoning: '', refusal: null, finishReason: 'tool_calls', complete: true }
      return Promise.resolve({ ...answer, toolCalls, usage, model: null })
    },
  }
}

longTest('guards store no more after a thousand steps than after ten', async () => {
  const recent = defineGuard({
    name: 'recent',
    initial: { batches: 0, last: [] as string[] },
    observe: ({ batches, last }, fact) =>
      fact.type === 'calls'
        ? { batches: batches + 1, last: [...last, ...fact.calls.map((one) => one.argumentsText)].slice(-20) }
        : { batches, last },
    verdict: () => true,
  })
  let n = 0
  const agent = createAgent({
    model: restless(),
    tools: [tool('work', () => `result ${++n}`)],
    guards: [recent],
    limits: { maxSteps: 1_000 },
  })
  const session = createSession()
  const { state, steps } = await agent.run('Go.', { session }).result
  expect({ state, steps }).toEqual({ state: 'MAX_STEPS', steps: 1_000 })
  const { user, ...builtIn } = session.metadata.guardrails
  expect(user).toMatchObject({ recent: { batches: 1_000 } })
  expect(JSON.stringify(user).length).toBeLessThan(600)
  expect(JSON.stringify(builtIn).length).toBeLessThan(8192)
})
