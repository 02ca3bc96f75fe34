import * as fc from 'fast-check'
import type { Message, UserMessage } from '../../../machines/agent/messages.js'
import type { ModelRequest } from '../../../src/core/models/provider.js'
import {
  estimateRequestTokens,
  estimateTextTokens,
  estimateUsage,
} from '../../../src/core/prices/estimate-tokens.js'
import { unicodeText } from '../../support/unicode-text.js'

const request = (changes: Partial<ModelRequest> = {}): ModelRequest => ({
  instructions: null,
  messages: [],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
  stream: true,
  ...changes,
})

const user = (content: UserMessage['content']): Message => ({ id: 'm', createdAt: 0, role: 'user', content })
const tokens = (message: Message) => estimateRequestTokens(request({ messages: [message] }))
const image = (url: string, detail: 'low' | 'high') =>
  tokens(user([{ type: 'image_url', image_url: { url, detail } }]))
const anyText = unicodeText({ maxLength: 200 })
const response = { text: '', reasoning: '', refusal: null, toolCalls: [] }

describe('estimateTextTokens', () => {
  // Compared with the counts of OpenAI's o200k_base.
  test.each([
    ['The quick brown fox jumps over the lazy dog, and then it runs back into the forest.', 19],
    ['Die Geschwindigkeitsbegrenzung auf der Autobahn wurde gestern aufgehoben.', 16],
    ['{"path":"src/index.ts","lines":[1,2,3]}', 15],
    ['{"query":"what changed last week","limit":10,"filters":{"author":"kim","since":"2026-01-01"}}', 27],
    ['我们需要在下周之前完成这份报告', 10],
    ['今日は天気がいいので、散歩に行きましょう。', 15],
    ['오늘은 날씨가 좋아서 산책을 갑시다.', 14],
    ['Сегодня хорошая погода, поэтому мы идём гулять в парк.', 15],
    ['اليوم الطقس جميل، لذلك سنذهب للمشي في الحديقة.', 15],
    ['🙂🚀🎉', 5],
  ])('%j is close to its %i tokens', (text, counted) => {
    expect(Math.abs(estimateTextTokens(text) / counted - 1)).toBeLessThan(0.25)
  })

  test('characters have a weight by their kind', () => {
    expect(estimateTextTokens('')).toBe(0)
    expect(estimateTextTokens('ab é'.repeat(30))).toBe(30)
    expect(estimateTextTokens('{":[}'.repeat(30))).toBe(60)
    for (const text of ['漢', 'か', 'カ', '한', '、', 'Ａ'])
      expect(estimateTextTokens(text.repeat(30))).toBe(20)
    for (const text of ['ж', 'ع', 'ห', 'δ', '→']) expect(estimateTextTokens(text.repeat(30))).toBe(10)
    expect(estimateTextTokens('🙂'.repeat(30))).toBe(45)
  })

  test('longer text never has fewer tokens, and two texts have at most one token more apart than together', () => {
    fc.assert(
      fc.property(anyText, anyText, (a, b) => {
        const [one, other, both] = [estimateTextTokens(a), estimateTextTokens(b), estimateTextTokens(a + b)]
        expect(both).toBeGreaterThanOrEqual(Math.max(one, other))
        expect(one + other - both).toBeGreaterThanOrEqual(0)
        expect(one + other - both).toBeLessThanOrEqual(1)
      }),
    )
  })
})

describe('estimateRequestTokens', () => {
  test('every part of a request counts: instructions, messages, calls, results, nudges and tools', () => {
    const parts: Partial<ModelRequest>[] = [
      { instructions: 'Be careful.' },
      { messages: [user('Hello there.')] },
      { messages: [user([{ type: 'text', text: 'Hello there.' }])] },
      { messages: [{ id: 'm', createdAt: 0, role: 'tool', tool_call_id: 'c', content: 'the result' }] },
      { nudges: ['Try something else.'] },
      { tools: [{ name: 'read', description: 'Reads a file.', parameters: { type: 'object' } }] },
    ]
    for (const part of parts) expect(estimateRequestTokens(request(part))).toBeGreaterThan(4)
    expect(estimateRequestTokens(request())).toBe(0)
  })

  test('an assistant message counts its calls and provider data, not local data', () => {
    const message: Message = { id: 'm', createdAt: 0, role: 'assistant', content: 'Let me look.' }
    const call = {
      id: 'c',
      type: 'function' as const,
      function: { name: 'read', arguments: '{"path":"a.txt"}' },
    }
    expect(tokens({ ...message, tool_calls: [call] })).toBeGreaterThan(tokens(message))
    expect(tokens({ ...message, reasoning_details: [{ text: 'thinking' }] })).toBeGreaterThan(tokens(message))
    expect(tokens({ ...message, refusal: 'No, I will not.' })).toBeGreaterThan(tokens(message))
    expect(tokens({ ...message, reasoning: 'x'.repeat(1000), data: { note: 'x'.repeat(1000) } })).toBe(
      tokens(message),
    )
    expect(tokens({ ...message, content: null })).toBeLessThan(tokens(message))
  })

  test('a picture counts as a picture, regardless of the length of its address', () => {
    const data = `data:image/png;base64,${'A'.repeat(1_000_000)}`
    expect(image(data, 'high')).toBe(image('https://example.com/a.png', 'high'))
    expect(image(data, 'low')).toBeLessThan(image(data, 'high'))
  })

  test('audio and files count by their size', () => {
    const audio = (length: number, format: 'mp3' | 'wav') =>
      user([{ type: 'input_audio', input_audio: { data: 'A'.repeat(length), format } }])
    const file = (length: number) => user([{ type: 'file', file: { file_data: 'A'.repeat(length) } }])
    const stored = user([{ type: 'file', file: { file_id: 'f' } }])
    // A minute of mp3 at 128 kbit/s is 960 kB.
    expect(tokens(audio(1_280_000, 'mp3'))).toBe(604)
    expect(tokens(audio(1_280_000, 'wav'))).toBe(204)
    expect(tokens(file(400_000))).toBeGreaterThan(tokens(file(40_000)))
    expect(tokens(stored)).toBe(3_004)
  })

  test('one more message, nudge or tool is always more tokens', () => {
    fc.assert(
      fc.property(fc.array(anyText), anyText, (texts, next) => {
        const messages = texts.map(user)
        const before = estimateRequestTokens(request({ messages }))
        expect(estimateRequestTokens(request({ messages: [...messages, user(next)] }))).toBeGreaterThan(
          before,
        )
        expect(estimateRequestTokens(request({ messages, nudges: [next] }))).toBeGreaterThan(before)
      }),
    )
  })

  test('a message is read once, and an equal message counts the same', () => {
    let reads = 0
    const message: Message = {
      id: 'm',
      createdAt: 0,
      role: 'user',
      get content() {
        reads++
        return 'Hello there.'
      },
    }
    const first = estimateRequestTokens(request({ messages: [message] }))
    const readsOnce = reads
    expect(estimateRequestTokens(request({ messages: [message, message] }))).toBe(first * 2)
    expect(reads).toBe(readsOnce)
  })
})

describe('estimateUsage', () => {
  test('the sum is input and output, reasoning is a part of the output, and nothing is cached', () => {
    const input = request({ messages: [user('x'.repeat(400))] })
    const call = { id: 'c', type: 'function' as const, function: { name: 'read', arguments: '{}' } }
    const usage = estimateUsage(input, {
      text: 'y'.repeat(40),
      reasoning: 'z'.repeat(80),
      refusal: 'no'.repeat(2),
      toolCalls: [call],
    })
    expect(usage).toEqual({
      inputTokens: 104,
      outputTokens: 10 + 20 + 1 + 8 + 1 + 1,
      totalTokens: 104 + 41,
      cachedInputTokens: 0,
      reasoningTokens: 20,
    })
  })

  test('a longer answer is never cheaper', () => {
    fc.assert(
      fc.property(anyText, anyText, (text, more) => {
        const short = estimateUsage(request(), { ...response, text })
        const long = estimateUsage(request(), { ...response, text: text + more })
        expect(long.outputTokens).toBeGreaterThanOrEqual(short.outputTokens)
        expect(long.totalTokens).toBe(long.inputTokens + long.outputTokens)
      }),
    )
  })
})
