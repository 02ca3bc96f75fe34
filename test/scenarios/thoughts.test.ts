import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { languageModel } from '../../src/ai-sdk/index.js'
import { createAgent, type ModelProvider, openaiChat, openaiResponses } from '../../src/index.js'
import { startRehearsal, type Turn } from '../../src/rehearsal/index.js'

const models: Record<string, (baseURL: string) => ModelProvider> = {
  chat: (baseURL) => openaiChat({ model: 'open', baseURL, apiKey: 'none' }),
  responses: (baseURL) => openaiResponses({ model: 'open', baseURL, apiKey: 'none' }),
  'the AI SDK': (baseURL) => languageModel(createOpenAICompatible({ name: 'local', baseURL })('open')),
}

const tags = ['<think>', '<thinking>', '<thought>', '<reasoning>', '[THINK]', '<seed:think>']

async function answer(name: string, turn: Turn, stream: boolean) {
  const rehearsal = await startRehearsal({ scenario: { turns: [turn] } })
  const agent = createAgent({ model: models[name]?.(rehearsal.url) as ModelProvider, stream })
  const run = agent.run('Why?')
  const shown = { text: '', reasoning: '' }
  for await (const event of run)
    if (event.type === 'stream_chunk') {
      shown.text += event.text ?? ''
      shown.reasoning += event.reasoning ?? ''
    }
  const { output, messages } = await run.result
  await rehearsal.close()
  const last = messages.at(-1)
  return { output, shown, message: last?.role === 'assistant' ? [last.content, last.reasoning] : [] }
}

describe.each(Object.keys(models))('thoughts between tags, by %s', (name) => {
  it.each(tags)('%s are reasoning, split anywhere or whole', async (tag) => {
    const end = tag.replace(/^(.)/, '$1/')
    const text = `${tag}Is 1 < 2 [yes]?${end}\n\nBecause a[0] < b.`
    for (const [stream, turn] of [
      [true, { text, chunkSize: 1 }],
      [false, { text }],
    ] as const) {
      const { output, shown, message } = await answer(name, turn, stream)
      expect(output).toBe('Because a[0] < b.')
      expect(message).toEqual(['Because a[0] < b.', 'Is 1 < 2 [yes]?'])
      expect(shown).toEqual({ text: 'Because a[0] < b.', reasoning: 'Is 1 < 2 [yes]?' })
    }
  })

  it('are not removed from a text that ends like a tag', async () => {
    const { output, shown } = await answer(name, { text: 'See [1] and <thi', chunkSize: 2 }, true)
    expect([output, shown.text]).toEqual(['See [1] and <thi', 'See [1] and <thi'])
  })
})
