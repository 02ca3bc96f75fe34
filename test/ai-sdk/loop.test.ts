import { tool } from '../support/tools.js'
import { packages, playedBy } from './support.js'

describe.each(Object.entries(packages))('%s', (name, make) => {
  const isAnthropic = name.startsWith('anthropic')

  it.each([true, false])('plays a loop with tools in parallel (stream: %s)', async (stream) => {
    const add = tool('add', ({ a, b }) => Number(a) + Number(b))
    const { result, of, stage } = await playedBy(
      make,
      [
        {
          text: 'Let me see.',
          reasoning: 'Two sums.',
          toolCalls: [
            { name: 'add', arguments: { a: 1, b: 2 } },
            { name: 'add', arguments: { a: 3, b: 4 } },
          ],
          usage: {
            input: 100,
            output: 30,
            cached: 40,
            reasoning: 10,
            ...(isAnthropic && { cacheWrite: 20 }),
          },
        },
        { text: '3 and 7.', expect: { toolResultsFor: ['add', 'add'], toolResultsInclude: ['3', '7'] } },
      ],
      { tools: [add], instructions: 'Be brief.', stream },
    )
    expect(result.state).toBe('COMPLETED')
    expect(result.output).toBe('3 and 7.')
    expect(add.inputs).toEqual([
      { a: 1, b: 2 },
      { a: 3, b: 4 },
    ])
    expect(stage.wire(0)[0]).toMatchObject({ content: 'Be brief.' })
    expect(of('usage')[0]?.step).toMatchObject({
      inputTokens: 100,
      outputTokens: 30,
      totalTokens: 130,
      cachedInputTokens: 40,
      reasoningTokens: isAnthropic ? 0 : 10,
      estimated: false,
    })
    const [said] = result.messages.filter(({ role }) => role === 'assistant')
    if (!name.startsWith('openai v'))
      expect(said).toMatchObject({ content: 'Let me see.', reasoning: 'Two sums.' })
  })
})
