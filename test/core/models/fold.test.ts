import { chatFormat } from '../../../src/core/models/openai/chat-wire.js'
import { ModelError } from '../../../src/core/models/provider.js'

const delta = (fields: object, finish: string | null = null, index: number | undefined = 0) => ({
  choices: [{ index, delta: fields, finish_reason: finish }],
})
const call = (fields: object) => delta({ tool_calls: [fields] })

const whole = (name: string, args: string) => ({ function: { name, arguments: args } })

function fold(...chunks: unknown[]) {
  const folding = chatFormat.createFold()
  const shown = [...chunks.map((chunk) => folding.push(chunk)), folding.flush()]
  const response = folding.getResponse(false)
  expect(shown.map(({ text }) => text).join('')).toBe(response.text)
  expect(shown.map(({ reasoning }) => reasoning).join('')).toBe(response.reasoning)
  return response
}

const callsOf = (...chunks: unknown[]) =>
  fold(...chunks).toolCalls.map(({ id, function: { name, arguments: args } }) => [id, name, args])

function failureOf(...chunks: unknown[]) {
  try {
    fold(...chunks)
  } catch (error) {
    if (error instanceof ModelError) return error.failure
    throw error
  }
  throw new Error('no error was thrown')
}

describe('tool calls', () => {
  test('deltas with one index are one call', () => {
    const chunks = [
      call({ index: 0, id: 'a', function: { name: 'read', arguments: '' } }),
      call({ index: 1, id: 'b', function: { name: 'list', arguments: '{"d"' } }),
      call({ index: 0, function: { arguments: '{"p":1}' } }),
      call({ index: 1, function: { arguments: ':2}' } }),
    ]
    expect(callsOf(...chunks)).toEqual([
      ['a', 'read', '{"p":1}'],
      ['b', 'list', '{"d":2}'],
    ])
  })

  test('a different id with a name on the same index starts a new call', () => {
    const chunks = ['a', 'b'].map((id) =>
      call({ index: 0, id, function: { name: 'w', arguments: `{"x":"${id}"}` } }),
    )
    expect(callsOf(...chunks)).toEqual([
      ['a', 'w', '{"x":"a"}'],
      ['b', 'w', '{"x":"b"}'],
    ])
  })

  test('a different id without a name continues the call', () => {
    const chunks = [
      call({ index: 0, id: 'a', function: { name: 'w', arguments: '{"x":' } }),
      call({ index: 0, id: 'random', function: { arguments: '1}' } }),
    ]
    expect(callsOf(...chunks)).toEqual([['a', 'w', '{"x":1}']])
  })

  test('without an index a delta belongs to its id, and without an id to the last call', () => {
    const chunks = [
      call({ id: 'a', function: { name: 'one', arguments: '{"x"' } }),
      call({ id: 'b', function: { name: 'two', arguments: '{"y"' } }),
      call({ id: 'a', function: { arguments: ':1}' } }),
      call({ id: 'b', function: { arguments: ':' } }),
      call({ function: { arguments: '2}' } }),
    ]
    expect(callsOf(...chunks)).toEqual([
      ['a', 'one', '{"x":1}'],
      ['b', 'two', '{"y":2}'],
    ])
  })

  test('complete calls with neither index nor id stay separate', () => {
    const calls = [whole('w', '{"x":1}'), whole('w', '{"x":2}'), whole('v', '')]
    expect(callsOf(delta({ tool_calls: calls }))).toEqual([
      ['', 'w', '{"x":1}'],
      ['', 'w', '{"x":2}'],
      ['', 'v', '{}'],
    ])
  })

  test('repeated names and ids are never joined, and an empty id is ignored', () => {
    const chunks = ['{"a"', ':', '1}'].map((piece, at) =>
      call({ index: 0, id: at === 1 ? '' : 'c', function: { name: 'get', arguments: piece } }),
    )
    expect(callsOf(...chunks)).toEqual([['c', 'get', '{"a":1}']])
  })

  test('a name may arrive late', () => {
    const chunks = [
      call({ index: 0, id: 'c', function: { arguments: '' } }),
      call({ index: 0, id: 'c', function: { name: 'get', arguments: '{}' } }),
    ]
    expect(callsOf(...chunks)).toEqual([['c', 'get', '{}']])
  })

  test.each([null, undefined, '', ' ', 'null'])('arguments %j are {}', (args) => {
    expect(callsOf(call({ index: 0, id: 'c', function: { name: 'now', arguments: args } }))).toEqual([
      ['c', 'now', '{}'],
    ])
  })

  test('arguments that arrive parsed are written as JSON', () => {
    expect(callsOf(call({ index: 0, id: 'c', function: { name: 'f', arguments: { a: [1] } } }))).toEqual([
      ['c', 'f', '{"a":[1]}'],
    ])
  })

  test('a placeholder {} before the real arguments is dropped', () => {
    const chunks = [
      call({ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }),
      call({ index: 0, function: { arguments: '{"a":1}' } }),
    ]
    expect(callsOf(...chunks)).toEqual([['c', 'f', '{"a":1}']])
  })

  test('duplicate ids are made unique', () => {
    const same = [0, 1, 2].map((index) => ({
      index,
      id: 'c',
      function: { name: `f${index}`, arguments: '{}' },
    }))
    expect(callsOf(delta({ tool_calls: same })).map(([id]) => id)).toEqual(['c', 'c_2', 'c_3'])
  })

  test('a missing type means function, and extra_content is preserved', () => {
    const extra = { google: { thought_signature: 'sig' } }
    const { toolCalls } = fold(
      call({ index: 0, id: 'c', function: { name: 'f', arguments: '{}' }, extra_content: extra }),
    )
    expect(toolCalls).toEqual([
      { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content: extra },
    ])
  })

  test('an empty delta is not a call', () => {
    expect(callsOf(delta({ tool_calls: [{}, null, 7, { index: 0, function: { arguments: '' } }] }))).toEqual(
      [],
    )
  })

  test('truncated arguments stay unchanged', () => {
    const chunks = [
      call({ index: 0, id: 'c', function: { name: 'f', arguments: '{"a":"lor' } }),
      delta({}, 'length'),
    ]
    expect(callsOf(...chunks)).toEqual([['c', 'f', '{"a":"lor']])
    expect(fold(...chunks).finishReason).toBe('length')
  })

  test('ten million characters of arguments in small deltas are folded in linear time', () => {
    const folding = chatFormat.createFold()
    const piece = call({ index: 0, id: 'c', function: { name: 'f', arguments: 'x'.repeat(100) } })
    for (let i = 0; i < 100_000; i += 1) folding.push(piece)
    expect(folding.getResponse(true).toolCalls[0]?.function.arguments).toHaveLength(10_000_000)
  })
})

describe('usage', () => {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  const counted = {
    inputTokens: 10,
    outputTokens: 5,
    totalTokens: 15,
    cachedInputTokens: 0,
    reasoningTokens: 0,
  }

  test.each([
    ['a trailing chunk', [{ choices: [], usage }]],
    ['the finish chunk', [{ ...delta({}, 'stop'), usage }]],
    ['a content chunk', [{ ...delta({ content: 'a' }), usage }]],
    ['x_groq', [{ ...delta({}, 'stop'), x_groq: { usage } }]],
    ['the choice', [{ choices: [{ index: 0, delta: {}, usage }] }]],
    [
      'every chunk, the last of which counts',
      [
        { ...delta({}), usage: { prompt_tokens: 10, completion_tokens: 1 } },
        { choices: [], usage },
      ],
    ],
    [
      'a chunk before others without it',
      [{ choices: [], usage }, delta({ content: 'a' }), { choices: [], usage: null }],
    ],
  ])('is found on %s', (_where, chunks) => {
    expect(fold(...chunks).usage).toEqual(counted)
  })

  test('is null if it is missing or only zeros', () => {
    expect(fold(delta({ content: 'a' })).usage).toBeNull()
    expect(
      fold({ choices: [], usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }).usage,
    ).toBeNull()
  })

  test('has cached input and reasoning, wherever the provider reports them', () => {
    const openai = {
      ...usage,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 3 },
    }
    expect(fold({ choices: [], usage: openai }).usage).toEqual({
      ...counted,
      cachedInputTokens: 4,
      reasoningTokens: 3,
    })
    expect(
      fold({ choices: [], usage: { ...usage, prompt_cache_hit_tokens: 7 } }).usage?.cachedInputTokens,
    ).toBe(7)
  })

  test('counts reasoning as output if the provider only includes it in the total', () => {
    const apart = { ...usage, total_tokens: 35, completion_tokens_details: { reasoning_tokens: 20 } }
    expect(fold({ choices: [], usage: apart }).usage).toEqual({
      ...counted,
      outputTokens: 25,
      totalTokens: 35,
      reasoningTokens: 20,
    })
  })

  test('survives invalid values', () => {
    const nonsense = {
      prompt_tokens: -1,
      completion_tokens: 'many',
      total_tokens: Number.NaN,
      prompt_tokens_details: 7,
    }
    expect(fold({ choices: [], usage: nonsense }).usage).toBeNull()
  })
})

describe('reasoning', () => {
  test.each([
    ['reasoning_content', { reasoning_content: 'why' }],
    ['reasoning', { reasoning: 'why' }],
    ['reasoning_details', { reasoning_details: [{ type: 'reasoning.text', text: 'why' }] }],
    ['content parts', { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'why' }] }] }],
    ['inline tags', { content: '<think>why</think>' }],
  ])('arrives as %s and never as text', (_form, fields) => {
    const response = fold(delta(fields), delta({ content: 'so' }))
    expect([response.text, response.reasoning]).toEqual(['so', 'why'])
  })

  test('in several fields at once counts once', () => {
    const details = [{ type: 'reasoning.text', text: 'why' }]
    expect(
      fold(delta({ reasoning_content: 'why', reasoning: 'why', reasoning_details: details })).reasoning,
    ).toBe('why')
  })

  test('has its details joined before they are sent back', () => {
    const text = (fields: object) =>
      delta({ reasoning_details: [{ type: 'reasoning.text', index: 0, format: 'f', ...fields }] })
    const response = fold(
      text({ text: 'a' }),
      text({ text: 'b' }),
      text({ signature: 's' }),
      delta({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'x', index: 1 }] }),
    )
    expect(response.reasoningDetails).toEqual([
      { type: 'reasoning.text', index: 0, format: 'f', text: 'ab', signature: 's' },
      { type: 'reasoning.encrypted', data: 'x', index: 1 },
    ])
  })
})

describe('the end', () => {
  test('is proved by a finish reason, but not by an empty one', () => {
    expect(fold(delta({ content: 'a' }, 'stop'))).toMatchObject({ complete: true, finishReason: 'stop' })
    expect(fold(delta({ content: 'a' }, ''))).toMatchObject({ complete: false, finishReason: null })
  })

  test('is also proved by an announced end', () => {
    const folding = chatFormat.createFold()
    folding.push(delta({ content: 'a' }))
    expect(folding.getResponse(false).complete).toBe(false)
    expect(folding.getResponse(true).complete).toBe(true)
  })

  test('is missing if an answer lost a part, unless it had ended before', () => {
    const before = chatFormat.createFold()
    before.markLost()
    before.push(delta({}, 'stop'))
    expect(before.getResponse(true).complete).toBe(false)
    const after = chatFormat.createFold()
    after.push(delta({}, 'stop'))
    after.markLost()
    expect(after.getResponse(true).complete).toBe(true)
  })

  test('keeps its finish reason after later chunks', () => {
    expect(fold(delta({}, 'tool_calls'), delta({ content: '' })).finishReason).toBe('tool_calls')
  })
})

describe('errors inside an answer', () => {
  test('an error object fails with its code, the earlier content, and its cost', () => {
    const error = { message: 'Overloaded', type: 'overloaded_error', code: 529 }
    const usage = { prompt_tokens: 1, completion_tokens: 1 }
    expect(failureOf(delta({ content: 'par' }), { error, usage })).toMatchObject({
      kind: 'transient',
      code: 'overloaded_error',
      status: 529,
      partialText: 'par',
      usage: { totalTokens: 2 },
    })
  })

  test.each([
    ['a string', { error: 'boom' }],
    ["vLLM's shape", { object: 'error', message: 'boom', code: 500 }],
    ['an error of the choice', { choices: [{ index: 0, error: { message: 'boom', code: 502 } }] }],
  ])('%s is an error, too', (_shape, chunk) => {
    expect(failureOf(chunk)).toMatchObject({ kind: 'transient', message: expect.stringContaining('boom') })
  })

  test('the finish reason "error" is an error', () => {
    expect(failureOf(delta({}, 'error')).kind).toBe('transient')
  })

  test.each([null, {}, { code: null, message: '' }])('error: %j is ignored', (error) => {
    expect(fold({ ...delta({ content: 'a' }), error }).text).toBe('a')
  })
})

test('choices after the first are ignored', () => {
  expect(
    fold(delta({ content: 'a' }), delta({ content: 'B' }, null, 1), delta({ content: 'c' }, null, undefined))
      .text,
  ).toBe('ac')
})

test('a refusal is separate from text', () => {
  expect(fold(delta({ refusal: 'I can' }), delta({ refusal: 'not.' }))).toMatchObject({
    text: '',
    refusal: 'I cannot.',
  })
})

test('a whole completion folds into the same answer as its stream', () => {
  const toolCalls = [
    { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
    { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":2}' } },
  ]
  const usage = { prompt_tokens: 3, completion_tokens: 4 }
  const complete = fold({
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: '<think>hm</think>Hello', tool_calls: toolCalls },
        finish_reason: 'tool_calls',
      },
    ],
    usage,
  })
  const streamed = fold(
    { model: 'm', ...delta({ content: '<think>h' }) },
    delta({ content: 'm</think>Hel' }),
    delta({ content: 'lo' }),
    ...toolCalls.map((entry, index) => call({ ...entry, index })),
    delta({}, 'tool_calls'),
    { choices: [], usage },
  )
  expect(complete).toEqual(streamed)
  expect(complete.toolCalls.map(({ id }) => id)).toEqual(['a', 'a_2'])
})

test('a message next to the deltas of a stream is not read twice', () => {
  const last = {
    choices: [{ index: 0, message: { content: 'ab' }, delta: { content: '' }, finish_reason: 'stop' }],
  }
  const bare = { choices: [{ index: 0, message: { content: 'ab' }, finish_reason: 'stop' }] }
  expect(fold(delta({ content: 'ab' }), last).text).toBe('ab')
  expect(fold(delta({ content: 'ab' }), bare).text).toBe('ab')
})

test.each([null, 7, 'text', [], {}, { choices: null }, { choices: [null, 7] }, { choices: [{ delta: 7 }] }])(
  'an invalid chunk adds nothing: %j',
  (chunk) => {
    expect(fold(chunk, delta({ content: 'a' }, 'stop'))).toMatchObject({ text: 'a', complete: true })
  },
)

describe('the sources of an answer', () => {
  const cited = (url: string, title?: string) => ({
    type: 'url_citation',
    url_citation: {
      url,
      ...(title !== undefined && { title }),
      start_index: 0,
      end_index: 3,
      content: 'Long.',
    },
  })
  const source = (url: string, title?: string) => ({
    type: 'url_citation',
    url_citation: { url, ...(title !== undefined && { title }) },
  })

  test('arrive in deltas, each source once', () => {
    const { annotations } = fold(
      delta({ content: '', annotations: [cited('https://a.test', 'A')] }),
      delta({ content: 'Hi' }),
      delta({ content: '', annotations: [cited('https://a.test', 'A'), cited('https://b.test')] }, 'stop'),
    )
    expect(annotations).toEqual([source('https://a.test', 'A'), source('https://b.test')])
  })

  test('arrive with a whole message', () => {
    const folding = chatFormat.createFold()
    const message = { content: 'Hi', annotations: [cited('https://a.test')] }
    folding.push({ choices: [{ index: 0, message, finish_reason: 'stop' }] }, true)
    expect(folding.getResponse(true).annotations).toEqual([source('https://a.test')])
  })

  test('arrive next to the answer with every chunk (Perplexity, xAI), with available titles', () => {
    const beside = {
      citations: ['https://a.test', 'https://b.test'],
      search_results: [{ url: 'https://b.test', title: 'B' }],
    }
    const { annotations } = fold(
      { ...delta({ content: 'H' }), ...beside },
      { ...delta({ content: 'i' }, 'stop'), ...beside },
    )
    expect(annotations).toEqual([source('https://b.test', 'B'), source('https://a.test')])
  })

  test('are empty if no field names a source', () => {
    const odd = [
      null,
      7,
      '',
      {},
      { type: 'url_citation' },
      { type: 'url_citation', url_citation: { url: 7 } },
    ]
    expect(fold(delta({ content: 'Hi', annotations: odd }, 'stop'))).not.toHaveProperty('annotations')
  })
})
