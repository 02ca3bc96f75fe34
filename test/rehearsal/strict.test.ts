import { playing, post, start } from './support.js'

const ask = { role: 'user', content: 'Hello?' }
const called = (input: object, id = 'call_1') => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}', ...input } }],
})
const result = { role: 'tool', tool_call_id: 'call_1', content: 'ok' }
const tool = (fields: object = {}) => ({
  type: 'function',
  function: { name: 'look', parameters: { type: 'object' }, ...fields },
})
const many = (count: number, item: (i: number) => object) => Array.from({ length: count }, (_, i) => item(i))

const refused: [what: string, body: object, path: string, sentence: RegExp][] = [
  [
    'a name with a dot',
    { messages: [ask, called({ name: 'a.b' }), result] },
    'messages[1].tool_calls[0].function.name',
    /1 to 64 letters.*"a\.b"/,
  ],
  [
    'no name',
    { messages: [ask, called({ name: '' }), result] },
    'messages[1].tool_calls[0].function.name',
    /1 to 64/,
  ],
  [
    'a long name',
    { messages: [ask, called({ name: 'n'.repeat(65) }), result] },
    'messages[1].tool_calls[0].function.name',
    /1 to 64/,
  ],
  [
    'arguments that are a list',
    { messages: [ask, called({ arguments: '[]' }), result] },
    'messages[1].tool_calls[0].function.arguments',
    /JSON object as text, but is "\[\]"/,
  ],
  [
    'arguments that are not JSON',
    { messages: [ask, called({ arguments: '{"a' }), result] },
    'messages[1].tool_calls[0].function.arguments',
    /JSON object/,
  ],
  [
    'arguments nested too deeply',
    { messages: [ask, called({ arguments: `${'{"a":'.repeat(101)}1${'}'.repeat(101)}` }), result] },
    'messages[1].tool_calls[0].function.arguments',
    /deeper than 100/,
  ],
  [
    'a message nested too deeply',
    { messages: [{ ...ask, extra: JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) }] },
    'messages[0]',
    /deeper than 100/,
  ],
  [
    'half a pair in arguments',
    { messages: [ask, called({ arguments: '{"a":"\\ud83d"}' }), result] },
    'messages[1].tool_calls[0].function.arguments',
    /surrogate/,
  ],
  [
    'a long id',
    { messages: [ask, called({}, 'i'.repeat(41)), { ...result, tool_call_id: 'i'.repeat(41) }] },
    'messages[1].tool_calls[0].id',
    /1 to 40/,
  ],
  [
    'two calls with one id',
    {
      messages: [
        ask,
        { ...called({}), tool_calls: many(2, () => called({}).tool_calls[0] as object) },
        result,
        result,
      ],
    },
    'messages',
    /two tool calls with the id call_1/,
  ],
  ['an open call', { messages: [ask, called({}), ask] }, 'messages', /no result/],
  ['a result without a call', { messages: [ask, result] }, 'messages', /without a preceding call/],
  [
    'a result without an id',
    { messages: [ask, called({}), { ...result, tool_call_id: undefined }] },
    'messages[2].tool_call_id',
    /missing/,
  ],
  [
    'too many calls',
    {
      messages: [
        ask,
        { ...called({}), tool_calls: many(129, (i) => called({}, `c${i}`).tool_calls[0] as object) },
      ],
    },
    'messages[1].tool_calls',
    /129 calls, but the maximum is 128/,
  ],
  [
    'an answer without content',
    { messages: [ask, { role: 'assistant', content: null }, ask] },
    'messages[1]',
    /content or tool_calls/,
  ],
  [
    'a blank answer',
    { messages: [ask, { role: 'assistant', content: ' \n' }, ask] },
    'messages[1].content',
    /blank/,
  ],
  [
    'a blank part',
    { messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }] },
    'messages[0].content[0].text',
    /blank/,
  ],
  ['no parts', { messages: [{ role: 'user', content: [] }] }, 'messages[0].content', /empty list/],
  ['no content', { messages: [{ role: 'user' }] }, 'messages[0].content', /missing/],
  ['half a pair', { messages: [{ role: 'user', content: '\ud83d' }] }, 'messages[0]', /surrogate/],
  ['half a pair elsewhere', { messages: [ask], stop: '\ud83d' }, 'stop', /surrogate/],
  [
    'an answer first',
    { messages: [{ role: 'assistant', content: 'Hi.' }, ask] },
    'messages[0]',
    /answer without a question/,
  ],
  [
    'a late system message',
    { messages: [ask, { role: 'system', content: 'Be good.' }] },
    'messages[1]',
    /role system after the role user/,
  ],
  ['two users', { messages: [ask, ask] }, 'messages[1]', /must alternate/],
  [
    'an answer last',
    { messages: [ask, { role: 'assistant', content: 'Hi.' }] },
    'messages[1]',
    /last message/,
  ],
  [
    'a text without end',
    { messages: [{ role: 'user', content: 'a'.repeat(10_485_761) }] },
    'messages[0].content',
    /maximum is 10485760/,
  ],
  ['no tools', { messages: [ask], tools: [] }, 'tools', /empty list/],
  [
    'too many tools',
    { messages: [ask], tools: many(129, (i) => tool({ name: `t${i}` })) },
    'tools',
    /129 tools, but the maximum is 128/,
  ],
  [
    'a tool with an invalid name',
    { messages: [ask], tools: [tool({ name: 'a b' })] },
    'tools[0].function.name',
    /1 to 64/,
  ],
  [
    'two tools with one name',
    { messages: [ask], tools: [tool(), tool()] },
    'tools[1].function.name',
    /another tool/,
  ],
  [
    'a tool that accepts no object',
    { messages: [ask], tools: [tool({ parameters: { type: 'string' } })] },
    'tools[0].function.parameters',
    /type 'object'/,
  ],
  ['a choice without tools', { messages: [ask], tool_choice: 'auto' }, 'tool_choice', /without tools/],
]

test.each(refused)('a strict rehearsal refuses %s with a message', async (_, body, param, message) => {
  const rehearsal = await start({ scenario: { turns: [{ text: 'Hi.' }] }, strict: true })
  const response = await post(rehearsal, JSON.stringify({ model: 'm', ...body }))
  expect(response.status).toBe(400)
  expect(await response.json()).toEqual({
    error: {
      type: 'invalid_request_error',
      code: 'rehearsal_invalid_history',
      param,
      message: expect.stringMatching(message),
    },
  })
  expect(rehearsal.requests).toMatchObject([{ refused: expect.stringMatching(message) }])
  expect(rehearsal.remaining).toBe(1)
})

test('a strict rehearsal accepts valid requests', async () => {
  const rehearsal = await start({ scenario: { turns: [{ text: 'Hi.' }] }, strict: true })
  const messages = [{ role: 'developer', content: 'Be good.' }, ask, called({}), result, ask]
  expect((await post(rehearsal, JSON.stringify({ model: 'm', messages, tools: [tool()] }))).status).toBe(200)
})

test('other rehearsals only check calls and results', async () => {
  const rehearsal = await playing({ text: 'Hi.' })
  const messages = [{ role: 'assistant', content: '' }, ask, called({ name: 'a.b', arguments: '[]' }), result]
  expect((await post(rehearsal, JSON.stringify({ model: 'm', messages }))).status).toBe(200)
})
