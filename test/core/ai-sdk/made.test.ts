import { languageModel } from '../../../src/ai-sdk/index.js'
import type { CallOptions } from '../../../src/ai-sdk/spec.js'
import { type AgentOptions, createAgent, memoryStore, patternShield } from '../../../src/index.js'
import { sdkModel } from './sdk-model.js'

const png = 'iVBORw0KGgo='
const source = (url: string) => ({ type: 'source', sourceType: 'url', id: url, url, title: 'Herons' })
const picture = {
  type: 'file',
  mediaType: 'image/png',
  data: png,
  providerMetadata: { mine: { signature: 'sig' } },
}
const caption = { type: 'text', text: 'A heron:' }

async function answerOf(parts: object[], options: Partial<AgentOptions> = {}) {
  const sent: CallOptions[] = []
  const model = languageModel(sdkModel(parts, { sent }))
  const store = memoryStore()
  // Complete answers, because streaming is not tested here.
  const agent = createAgent({ model, store, stream: false, ...options })
  const result = await agent.run('Draw a heron.', { session: 's' }).result
  const again = await agent.run('Another.', { session: 's' }).result
  return { result, again, sent }
}

const media = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }]
const shielded = (word: RegExp): Partial<AgentOptions> => ({
  shields: { output: [patternShield({ name: 'word', patterns: [word], action: 'redact' })] },
})

describe('files and sources of an answer', () => {
  it('are in the message, also in the store, and are sent back to their provider', async () => {
    const { result, again, sent } = await answerOf([caption, picture, source('https://herons.test')])
    expect(result.messages[1]).toMatchObject({
      content: 'A heron:',
      media,
      annotations: [{ type: 'url_citation', url_citation: { url: 'https://herons.test', title: 'Herons' } }],
    })
    expect(again.messages[1]).toEqual(result.messages[1])
    expect(sent[1]?.prompt[1]?.content).toEqual([
      caption,
      { type: 'file', mediaType: 'image/png', data: png, providerOptions: { mine: { signature: 'sig' } } },
    ])
  })

  it('are not an empty answer if there is nothing else', async () => {
    const { result, sent } = await answerOf([picture])
    expect(result).toMatchObject({
      state: 'COMPLETED',
      steps: 1,
      output: expect.stringMatching(/^\[image: image\/png, 8 bytes/),
    })
    expect(sent[1]?.prompt[1]?.content).toMatchObject([{ type: 'file', data: png }])
  })

  it('are held by output shields: refused sources stay hidden, and pictures appear once the answer is cleared', async () => {
    const { result } = await answerOf(
      [caption, picture, source('https://forbidden.test')],
      shielded(/forbidden/),
    )
    expect(result.messages[1]).toMatchObject({ content: 'A heron:', media })
    expect(result.messages[1]).not.toHaveProperty('annotations')
  })

  it('contain the document whose text a shield may refuse', async () => {
    const csv = { type: 'file', mediaType: 'text/csv', data: btoa('name,code\nann,forbidden') }
    const { result } = await answerOf([caption, csv], shielded(/forbidden/))
    expect(result.messages[1]).toMatchObject({ content: 'A heron:' })
    expect(result.messages[1]).not.toHaveProperty('media')
  })

  it('are removed if the answer is refused', async () => {
    const block = patternShield({ name: 'heron', patterns: [/heron/], action: 'block' })
    const { result } = await answerOf([caption, picture], { shields: { output: [block] } })
    expect(result.state).toBe('BLOCKED')
    expect(JSON.stringify(result.messages)).not.toContain(png)
  })
})
