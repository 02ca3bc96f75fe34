import type { Message } from '../../../machines/agent/messages.js'
import { toAcceptedMessages } from '../../../src/core/models/result-media.js'

it('a list of media that the app changes later has no effect on another model', () => {
  const part = { type: 'input_audio' as const, input_audio: { data: 'QUJD', format: 'wav' as const } }
  const messages: Message[] = [
    { role: 'user', id: 'm1', createdAt: 0, content: [part] },
    { role: 'user', id: 'm2', createdAt: 1, content: 'And now?' },
  ]
  const media: ('image' | 'audio')[] = ['image']
  toAcceptedMessages(messages, undefined, { provider: 'a', model: 'a', media })
  media.push('audio')
  const fresh = structuredClone(messages)
  const [first] = toAcceptedMessages(fresh, undefined, { provider: 'b', model: 'b', media: ['image'] })
  expect(JSON.stringify(first)).toContain('omitted: the model does not accept it')
})
