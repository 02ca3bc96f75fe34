import * as fc from 'fast-check'
import type { Turn } from '../../src/rehearsal/index.js'
import {
  clientOf,
  ask,
  body,
  complete,
  dataOf,
  playing,
  post,
  receive,
  start,
  stream,
  textIn,
} from './support.js'
import { unicodeText } from '../support/unicode-text.js'
import { sampled } from '../support/extent.js'

describe('an answer', () => {
  const turn: Turn = {
    reasoning: 'The user greets me; greet back.',
    text: 'Hello there, how are you today?',
    toolCalls: [
      { name: 'read_file', arguments: { path: 'a.txt', lines: [1, 2] } },
      { id: 'mine', name: 'list' },
    ],
    usage: { input: 20, output: 9, cached: 5, reasoning: 3 },
  }
  const calls = [
    {
      id: 'call_1_1',
      type: 'function',
      function: { name: 'read_file', arguments: '{"path":"a.txt","lines":[1,2]}' },
    },
    { id: 'mine', type: 'function', function: { name: 'list', arguments: '{}' } },
  ]
  const usage = {
    prompt_tokens: 20,
    completion_tokens: 9,
    total_tokens: 29,
    prompt_tokens_details: { cached_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 3 },
  }

  test('has text, reasoning, calls, finish reason and usage in one body', async () => {
    const completion = await complete(await playing(turn))
    expect(completion).toMatchObject({
      id: 'chatcmpl-rehearsal-1',
      model: 'gpt',
      object: 'chat.completion',
      usage,
    })
    expect(completion.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        role: 'assistant',
        content: turn.text,
        reasoning_content: turn.reasoning,
        tool_calls: calls,
      },
    })
  })

  test('has the same content in a stream, as parsed by the OpenAI client', async () => {
    const rehearsal = await playing(turn)
    const completion = await clientOf(rehearsal)
      .chat.completions.stream({ model: 'gpt', messages: ask, stream_options: { include_usage: true } })
      .finalChatCompletion()
    expect(completion.usage).toEqual(usage)
    expect(completion.choices[0]?.finish_reason).toBe('tool_calls')
    expect(completion.choices[0]?.message.content).toBe(turn.text)
    expect(completion.choices[0]?.message.tool_calls).toMatchObject(calls)
  })

  test('is the same whether it streams or not, for any content and chunk size', async () => {
    const answers = fc.record({
      text: unicodeText({ maxLength: 60 }),
      args: unicodeText({ maxLength: 60 }),
      chunkSize: fc.integer({ min: 1, max: 70 }),
    })
    let current: Turn = {}
    const rehearsal = await start({ turns: [() => current], onExhausted: 'loop' })
    const check = fc.asyncProperty(answers, async ({ text, args, chunkSize }) => {
      current = { text, toolCalls: [{ name: 'f', arguments: args }], chunkSize }
      const { message } = (await complete(rehearsal)).choices[0] ?? {}
      const chunks = await stream(rehearsal)
      const argumentsOf = chunks.map(
        ({ choices }) => choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? '',
      )
      expect(message?.content).toBe(text)
      expect(textIn(chunks)).toBe(text)
      expect(message?.tool_calls?.[0]).toMatchObject({ function: { arguments: args } })
      expect(argumentsOf.join('')).toBe(args)
    })
    await fc.assert(check, { numRuns: sampled(40) })
  })

  test('of an empty turn is empty and stops', async () => {
    const completion = await complete(await playing({}))
    expect(completion.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: '', refusal: null },
    })
  })

  test('can be a refusal', async () => {
    const rehearsal = await playing({ refusal: 'I will not.' }, { refusal: 'I will not.' })
    const completion = await complete(rehearsal)
    expect(completion.choices[0]?.message).toMatchObject({ refusal: 'I will not.', content: null })
    const chunks = await stream(rehearsal)
    expect(chunks.map(({ choices }) => choices[0]?.delta.refusal ?? '').join('')).toBe('I will not.')
  })

  test('has the finish reason of the turn and raw text as arguments', async () => {
    const rehearsal = await playing({
      finishReason: 'length',
      toolCalls: [{ name: 'f', arguments: '{"a":' }],
    })
    const choice = (await complete(rehearsal)).choices[0]
    expect(choice).toMatchObject({
      finish_reason: 'length',
      message: { content: null, tool_calls: [{ function: { arguments: '{"a":' } }] },
    })
  })

  test('has call ids that are unique in the conversation', async () => {
    const rehearsal = await start({
      turns: [{ toolCalls: [{ name: 'f' }, { name: 'f' }] }],
      onExhausted: 'loop',
    })
    const ids = [await complete(rehearsal), await complete(rehearsal)].flatMap(
      ({ choices }) => choices[0]?.message.tool_calls?.map(({ id }) => id) ?? [],
    )
    expect(ids).toEqual(['call_1_1', 'call_1_2', 'call_2_1', 'call_2_2'])
  })
})

describe('a stream', () => {
  test('starts with the role, splits at chunkSize and never inside a character', async () => {
    const chunks = await stream(await playing({ text: 'a🙂b🙂c', chunkSize: 2 }))
    expect(chunks.map(({ choices }) => choices[0]?.delta)).toEqual([
      { role: 'assistant', content: '' },
      { content: 'a🙂' },
      { content: 'b🙂' },
      { content: 'c' },
      {},
    ])
  })

  test('reports usage only if requested, in a last chunk without choices, and null before', async () => {
    const turn: Turn = { text: 'Hi', usage: { input: 1, output: 2 } }
    const rehearsal = await playing(turn, turn, { ...turn, usage: null })
    expect((await stream(rehearsal)).some((chunk) => 'usage' in chunk)).toBe(false)
    const withUsage = await stream(rehearsal, true)
    expect(withUsage.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
    expect(withUsage.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 3 } })
    expect((await stream(rehearsal, true)).every(({ choices }) => choices.length === 1)).toBe(true)
  })

  test('is server-sent events that end with [DONE]', async () => {
    const response = await post(await playing({ text: 'Hi' }))
    expect(response.headers.get('content-type')).toMatch('text/event-stream')
    const { text } = await receive(response)
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(dataOf(text)).toHaveLength(4)
  })

  test.each([
    ['finish', false, true, true],
    ['done', true, false, true],
    ['both', false, false, false],
  ] as const)('can end without %s', async (endWithout, finish, done, usage) => {
    const request = body({ stream: true, stream_options: { include_usage: true } })
    const { text, whole } = await receive(await post(await playing({ text: 'Hi', endWithout }), request))
    expect(whole).toBe(true)
    expect(text.includes('"finish_reason":"stop"')).toBe(finish)
    expect(text.includes('[DONE]')).toBe(done)
    expect(text.includes('"total_tokens"')).toBe(usage)
  })
})

describe('usage', () => {
  test('is estimated equally with and without streaming if the turn sets none', async () => {
    const rehearsal = await playing({ text: 'Hello there' }, { text: 'Hello there' })
    const { usage } = await complete(rehearsal)
    expect(usage?.completion_tokens).toBeGreaterThan(0)
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0))
    expect((await stream(rehearsal, true)).at(-1)?.usage).toEqual(usage)
  })

  test('is omitted if the turn sets null', async () => {
    expect(await complete(await playing({ text: 'Hi', usage: null }))).not.toHaveProperty('usage')
  })
})
