import { languageModel } from '../../../src/ai-sdk/index.js'
import type { CallOptions } from '../../../src/ai-sdk/spec.js'
import type { ContentPart } from '../../../src/index.js'
import { askOnce, message, sdkModel } from './sdk-model.js'

const url = 'https://herons.test/heron.png'

describe.each(['v2', 'v3', 'v4'] as const)('%s', (version) => {
  const isV4 = version === 'v4'

  async function sentOf(content: ContentPart[], options: object = {}) {
    const sent: CallOptions[] = []
    await askOnce(languageModel(sdkModel([], { version, sent, ...options })), {
      messages: [message('user', { content })],
    })
    return sent[0]?.prompt[0]?.content
  }

  it('pictures, audio and documents have the format of the version', async () => {
    const parts: ContentPart[] = [
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO', detail: 'low' } },
      { type: 'input_audio', input_audio: { data: 'UklG', format: 'mp3' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVA=', filename: 'a.pdf' } },
      { type: 'file', file: { file_data: 'data:text/plain,a%20b' } },
      { type: 'file', file: { file_data: 'YSxi', filename: 'a.csv' } },
      { type: 'file', file: { file_data: 'DATA:text/plain,100%' } },
      { type: 'file', file: { file_data: 'AAECAw==', filename: 'a.mp4' } },
    ]
    const data = (base64: string) => (isV4 ? { type: 'data', data: base64 } : base64)
    expect(await sentOf(parts, { provider: 'openai.chat' })).toEqual([
      {
        type: 'file',
        mediaType: 'image/png',
        data: data('iVBO'),
        providerOptions: { openai: { imageDetail: 'low' } },
      },
      { type: 'file', mediaType: 'audio/mpeg', data: data('UklG') },
      { type: 'file', mediaType: 'application/pdf', data: data('JVA='), filename: 'a.pdf' },
      { type: 'text', text: '<file>\na b\n</file>' },
      { type: 'text', text: '<file name="a.csv">\na,b\n</file>' },
      { type: 'text', text: '<file>\n100%\n</file>' },
      { type: 'file', mediaType: 'video/mp4', data: data('AAECAw=='), filename: 'a.mp4' },
    ])
  })

  it('an invalid address is refused', async () => {
    const part: ContentPart = { type: 'image_url', image_url: { url: 'https://her ons.test/' } }
    await expect(sentOf([part])).rejects.toMatchObject({ failure: { code: 'unsupported_content' } })
  })

  it('an address is sent to a provider that fetches it, and refused for any other', async () => {
    const part: ContentPart = { type: 'image_url', image_url: { url } }
    for (const pattern of ['image/*', '*/*', 'image/png']) {
      const [sent] = (await sentOf([part], { urls: { [pattern]: [/^https:\/\//] } })) as { data: unknown }[]
      expect(sent?.data).toEqual(isV4 ? { type: 'url', url: new URL(url) } : new URL(url))
    }
    for (const urls of [{}, { 'image/*': [/^https:\/\/elsewhere/] }, { 'application/pdf': [/./] }]) {
      await expect(sentOf([part], { urls })).rejects.toMatchObject({
        failure: {
          kind: 'fatal',
          code: 'unsupported_content',
          message: expect.stringMatching(
            /cannot fetch images from herons\.test\. Load the file and pass its data/,
          ),
        },
      })
    }
  })

  it('a provider file is sent by its id if the package supports ids', async () => {
    const part: ContentPart = { type: 'file', file: { file_id: 'file-1' } }
    const [sent] = (await sentOf([part], { provider: 'openai.responses' })) as { data: unknown }[]
    expect(sent?.data).toEqual(isV4 ? { type: 'reference', reference: { openai: 'file-1' } } : 'file-1')
    if (isV4) return
    await expect(sentOf([part])).rejects.toMatchObject({
      failure: { code: 'unsupported_content', message: expect.stringContaining('Pass the file itself') },
    })
  })

  it('tool results that are not text follow the results of the batch, before the next answer', async () => {
    const sent: CallOptions[] = []
    const calls = ['c1', 'c2'].map((id) => ({
      id,
      type: 'function' as const,
      function: { name: 'look', arguments: '{}' },
    }))
    const media: ContentPart & { type: 'image_url' } = {
      type: 'image_url',
      image_url: { url: 'data:image/png;base64,iVBO' },
    }
    const messages = [
      message('user', { content: 'Look.' }),
      message('assistant', { content: null, tool_calls: calls }),
      message('tool', { tool_call_id: 'c1', content: 'One', media: [media] }),
      message('tool', { tool_call_id: 'c2', content: 'Two' }),
      message('assistant', { content: 'Seen.' }),
      message('user', { content: 'And?' }),
    ]
    await askOnce(languageModel(sdkModel([], { version, sent })), { messages })
    expect(sent[0]?.prompt.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'user',
      'assistant',
      'user',
    ])
    expect(sent[0]?.prompt[3]?.content).toMatchObject([
      { type: 'text', text: expect.stringMatching(/^\[image: image\/png, 3 bytes, #/) },
      { type: 'file', mediaType: 'image/png' },
    ])
  })
})
