import OpenAI from 'openai'
import { createAgent, openaiChat, openaiResponses, type RunResult } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { tool } from '../support/tools.js'
import { clientOf, start } from './support.js'

const reasoning = 'I look it up.'
const loop: Turn[] = [
  { reasoning, text: 'Wait.', toolCalls: [{ name: 'look', arguments: { q: 1 } }, { name: 'look' }] },
  { text: 'It is 4.', usage: { input: 90, output: 9, cached: 40, cacheWrite: 20, reasoning: 2 } },
]

async function endOf(turns: Turn[], api: typeof openaiChat | typeof openaiResponses, stream: boolean) {
  const rehearsal = await start({ scenario: { turns }, strict: true })
  const model = api({ model: 'm', baseURL: rehearsal.url, apiKey: 'none' })
  const result = await createAgent({ model, stream, tools: [tool('look')], retry: { maxAttempts: 1 } }).run(
    'Go.',
  ).result
  return { result, rehearsal }
}

const telling = ({ state, reason, output, usage, steps, error, messages }: RunResult) => ({
  state,
  reason,
  output,
  steps,
  code: error?.code,
  used: usage.outputTokens,
  calls: messages.flatMap((message) => (message.role === 'assistant' ? (message.tool_calls ?? []) : [])),
})

test.each([true, false])('a turn gives the same answer over both APIs (stream: %s)', async (stream) => {
  const endings: Turn[][] = [
    loop,
    [{ refusal: 'I will not.' }],
    [{ toolCalls: [{ name: 'look' }] }, { refusal: 'I will not.' }],
    [{ text: 'Half', finishReason: 'length' }, { text: ' done.' }],
    [{ text: 'Hm', finishReason: 'content_filter' }],
    [{ status: 400, error: { message: 'No.', code: 'bad' } }],
    ...(stream
      ? [
          [
            {
              text: 'Half of it, then an error',
              errorInStream: { after: 1, error: { message: 'No.', code: 'invalid_x' } },
            },
          ],
          [{ text: 'Half of it', cutAfter: 0 }],
          [{ text: 'No end', endWithout: 'both' as const }],
        ]
      : []),
  ]
  for (const turns of endings) {
    const chat = await endOf(turns, openaiChat, stream)
    const responses = await endOf(turns, openaiResponses, stream)
    expect(telling(responses.result)).toEqual(telling(chat.result))
  }
})

test('a refusal is sent back as a refusal', async () => {
  const rehearsal = await start({
    scenario: { turns: [{ refusal: 'I will not.' }, { text: 'Hi.' }] },
    strict: true,
  })
  const model = openaiResponses({ model: 'm', baseURL: rehearsal.url, apiKey: 'none' })
  const agent = createAgent({ model })
  await agent.run('Go.', { session: 's' }).result
  expect((await agent.run('Please.', { session: 's' }).result).output).toBe('Hi.')
})

test('a request is recorded in the format of a chat, and unchanged', async () => {
  const { rehearsal } = await endOf(loop, openaiResponses, true)
  const [, last] = rehearsal.requests
  expect(last).toMatchObject({ api: 'responses', turn: 1, refused: null })
  expect(last?.body.messages).toMatchObject([
    { role: 'user', content: 'Go.' },
    { role: 'assistant', content: 'Wait.', tool_calls: [{ id: 'call_1_1' }, { id: 'call_1_2' }] },
    { role: 'tool', tool_call_id: 'call_1_1' },
    { role: 'tool', tool_call_id: 'call_1_2' },
  ])
  expect(last?.body.tools).toMatchObject([{ type: 'function', function: { name: 'look' } }])
  const { input } = (last?.sent ?? {}) as { input: { type?: string }[] }
  expect(input.map(({ type }) => type)).toEqual([
    undefined,
    'reasoning',
    'message',
    'function_call',
    'function_call',
    'function_call_output',
    'function_call_output',
  ])
})

test('the client’s own stream and its whole response are the same', async () => {
  const rehearsal = await start({ scenario: { turns: loop, onExhausted: 'loop' } })
  const client = clientOf(rehearsal)
  const input = 'How many?'
  const streamed = await client.responses.stream({ model: 'm', input }).finalResponse()
  await client.responses.create({ model: 'm', input })
  const whole = await client.responses.create({ model: 'm', input })
  expect(streamed.output.map(({ type }) => type)).toEqual([
    'reasoning',
    'message',
    'function_call',
    'function_call',
  ])
  expect(streamed.output).toEqual(whole.output.map((item) => expect.objectContaining({ type: item.type })))
  expect(streamed.output_text).toBe('Wait.')
})

const user = { role: 'user', content: 'Go.' }
const call = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'c1', output: 'seen' }
const thought = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA' }

const question = {
  type: 'mcp_approval_request',
  id: 'mcpr_1',
  server_label: 's',
  name: 'look',
  arguments: '{}',
}
const allowed = { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true }

test.each([
  ['no input', { input: [] }, /input/],
  ['a parameter of chats', { seed: 1 }, /Unknown parameter: 'seed'/],
  ['a call without its output', { input: [user, call] }, /No tool output found for function call c1/],
  ['an output without its call', { input: [user, output] }, /input\[1\] is the output of 'c1'/],
  [
    'one id for two calls',
    { input: [user, call, output, call, output] },
    /input\[3\] has the call_id 'c1', which another/,
  ],
  ['reasoning without its result', { input: [user, thought, user] }, /'rs_1', which was provided without/],
  [
    'reasoning that was not stored',
    { input: [user, { ...thought, encrypted_content: null }, call, output] },
    /'rs_1', which is not found/,
  ],
  ['an id that is too long', { input: [user, { ...call, call_id: 'c'.repeat(65) }] }, /1 to 64 characters/],
  [
    'an approval that was not requested',
    { input: [user, allowed] },
    /answers 'mcpr_1', but no such approval/,
  ],
  ['an approval twice', { input: [user, question, allowed, allowed] }, /answers 'mcpr_1'/],
  [
    'neither yes nor no',
    { input: [user, question, { ...allowed, approve: 'yes' }] },
    /'approve': true or false/,
  ],
  ['two requests with one id', { input: [user, question, question, allowed] }, /must have a unique id/],
  [
    'a request without its server',
    { input: [user, { ...question, server_label: undefined }] },
    /'server_label'/,
  ],
  ['an invalid name', { input: [user, { ...call, name: 'a b' }, output] }, /must consist of 1 to 64 letters/],
])('a strict rehearsal refuses %s, with a sentence', async (_what, body, sentence) => {
  const rehearsal = await start({ scenario: { turns: [{ text: 'Hi.' }] }, strict: true })
  const client = new OpenAI({ baseURL: rehearsal.url, apiKey: 'none', maxRetries: 0 })
  const request = { model: 'm', input: 'Go.', store: false, ...body } as OpenAI.Responses.ResponseCreateParams
  await expect(client.responses.create(request)).rejects.toMatchObject({
    status: 400,
    message: expect.stringMatching(sentence),
  })
})
