import type { Message } from '../../../machines/agent/messages.js'
import { createTokenCounter } from '../../../src/core/context/token-counter.js'
import type { ModelRequest } from '../../../src/core/models/provider.js'
import { stamped } from './histories.js'

/** One token per character, with a list of the counted texts. */
function spy() {
  const counted: string[] = []
  const count = (text: string): number => {
    counted.push(text)
    return text.length
  }
  return { counted, counter: createTokenCounter({ count }) }
}

const request = (more: Partial<ModelRequest>): ModelRequest => ({
  instructions: null,
  messages: [],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
  stream: false,
  ...more,
})

it('counts every part of a request', () => {
  const { counter } = spy()
  const tools = [{ name: 'read', description: 'Reads.', parameters: { type: 'object' } }]
  const messages = stamped([{ role: 'user', content: 'Hi' }])
  expect(counter.request(request({}))).toBe(3)
  expect(counter.request(request({ instructions: 'Be kind.' }))).toBe(3 + 4 + 8)
  expect(counter.request(request({ tools }))).toBe(3 + 8 + 4 + 6 + '{"type":"object"}'.length)
  expect(counter.request(request({ messages }))).toBe(3 + 4 + 2)
  expect(counter.request(request({ nudges: ['Stop.'] }))).toBe(3 + 4 + 5)
})

it.each<[string, Parameters<typeof stamped>[0][number], number]>([
  [
    'a call',
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'read', arguments: '{}' } }],
    },
    4 + 8 + 4 + 2,
  ],
  ['a refusal', { role: 'assistant', content: null, refusal: 'No.' }, 4 + 3],
  [
    'no reasoning, which is not sent back',
    { role: 'assistant', content: 'Yes', reasoning: 'Hm, hm, hm.' },
    4 + 3,
  ],
  [
    'reasoning details, which are sent back',
    { role: 'assistant', content: 'Yes', reasoning_details: [1, 2] },
    4 + 3 + 5,
  ],
  ['a result', { role: 'tool', tool_call_id: 'c', content: 'done' }, 4 + 4],
  [
    'pictures, by their detail',
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Look' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,'.padEnd(90_000, 'A') } },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
      ],
    },
    4 + 4 + 765 + 85,
  ],
])('counts %s', (_what, draft, tokens) => {
  const { counter } = spy()
  const [message] = stamped([draft])
  expect(counter.message(message as Message)).toBe(tokens)
})

it('counts only new messages', () => {
  const { counter, counted } = spy()
  const tools = [{ name: 'read', description: 'Reads.', parameters: {} }]
  const messages = stamped([
    { role: 'user', content: 'One' },
    { role: 'assistant', content: 'Two' },
  ])
  const first = counter.request(request({ instructions: 'Be kind.', tools, messages }))
  counted.length = 0
  expect(counter.request(request({ instructions: 'Be kind.', tools, messages: [...messages] }))).toBe(first)
  expect(counted).toEqual([])
  const more = [...messages, ...stamped([{ role: 'user', content: 'Three' }])]
  counter.request(request({ instructions: 'Be kind.', tools, messages: more }))
  expect(counted).toEqual(['Three'])
})

it.each([
  [undefined, 0, 0],
  ['with_calls', 11, 0],
  ['always', 11, 11],
] as const)('counts reasoning if it is sent back (%s)', (echo, beside, alone) => {
  const counter = createTokenCounter({ count: (text) => text.length }, echo)
  const call = { id: 'c', type: 'function' as const, function: { name: 'a', arguments: '{}' } }
  const [calling, saying] = stamped([
    { role: 'assistant', content: 'Yes', reasoning: 'Hm, hm, hm.', tool_calls: [call] },
    { role: 'assistant', content: 'Yes', reasoning: 'Hm, hm, hm.' },
  ]) as [Message, Message]
  expect(counter.message(calling)).toBe(4 + 3 + 8 + 1 + 2 + beside)
  expect(counter.message(saying)).toBe(4 + 3 + alone)
})
