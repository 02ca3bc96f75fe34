import { z } from 'zod'
import { languageModel } from '../../src/ai-sdk/index.js'
import { createAgent, patternShield } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { tool } from '../support/tools.js'
import { packages, playedBy, stageOf, stateless } from './support.js'

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
    const streamed = new Map<string, string>()
    for (const { callId, delta } of of('tool_call_delta'))
      streamed.set(callId, (streamed.get(callId) ?? '') + delta)
    const calls = of('tool_call').map(({ call }) => [call.id, call.function.arguments])
    if (stream) expect([...streamed]).toEqual(calls)
    if (!stream) expect(streamed.size).toBe(0)
    expect(of('usage')[0]?.step).toMatchObject({
      inputTokens: 100,
      outputTokens: 30,
      totalTokens: 130,
      cachedInputTokens: 40,
      reasoningTokens: isAnthropic ? 0 : 10,
      ...(isAnthropic && { cacheWriteTokens: 20 }),
      estimated: false,
    })
    const [texts] = result.messages.filter(({ role }) => role === 'assistant')
    if (!name.startsWith('openai v'))
      expect(texts).toMatchObject({ content: 'Let me see.', reasoning: 'Two sums.' })
  })
})

const schema = z.object({ city: z.string(), days: z.int() })
const paris = { city: 'Paris', days: 3 }

describe.each(Object.entries(packages))('%s', (name, make) => {
  it.each([true, false])('answers with an object, next to its tools (stream: %s)', async (stream) => {
    const look = tool('look', () => 'Three days.', { readOnly: true })
    // For unknown providers, the answer is requested through a tool.
    const byFormat = name.startsWith('openai v') || name.startsWith('openai responses')
    const answer: Turn = byFormat
      ? { text: JSON.stringify(paris) }
      : { toolCalls: [{ name: 'final_answer', arguments: paris }] }
    const { result } = await playedBy(make, [{ toolCalls: [{ name: 'look' }] }, answer], {
      tools: [look],
      output: { schema },
      stream,
    })
    expect(result).toMatchObject({ state: 'COMPLETED', object: paris })
  })

  it('is a sub-agent, and only sees cleared content', async () => {
    const hide = patternShield({ name: 'hide', patterns: [/swordfish/g], action: 'redact' })
    const stage = await stageOf(
      make,
      [
        { toolCalls: [{ name: 'helper', arguments: { task: 'Look for swordfish.' } }] },
        { text: 'The code is swordfish.' },
        { text: 'Done: swordfish.' },
      ],
      {},
    )
    const model = languageModel(make(stage.rehearsal.url), name.includes('responses') ? stateless : {})
    const helper = createAgent({ model, clock: stage.clock }).asTool({
      name: 'helper',
      description: 'Helps.',
      maxSteps: 2,
    })
    const shields = { input: [hide], toolInput: [hide], toolOutput: [hide], output: [hide] }
    const agent = createAgent({ model, tools: [helper], shields, clock: stage.clock })
    const result = await agent.run('What is behind swordfish?').result
    expect(result).toMatchObject({ state: 'COMPLETED', output: expect.not.stringContaining('swordfish') })
    expect(stage.requests.map(({ refused }) => refused)).toEqual([null, null, null])
    expect(JSON.stringify(stage.requests.map(({ sent }) => sent))).not.toContain('swordfish')
  })
})
