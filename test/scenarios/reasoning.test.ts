import { createAgent, openaiChat, type OpenAIChatOptions } from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { stage } from '../support/play.js'
import { tool } from '../support/tools.js'
import { sampledRows } from '../support/extent.js'

/** The first two answers as the third request of a session presents them to a provider. */
async function sentBack(options: Partial<OpenAIChatOptions>, stream = true) {
  const theatre = await stage([
    { reasoning: 'It must be looked up.', text: 'Wait.', toolCalls: [{ name: 'look', id: 'c1' }] },
    { reasoning: 'Found.', text: 'It is 4.' },
    { text: 'Welcome.' },
  ])
  const model = openaiChat({ model: 'm', baseURL: theatre.rehearsal.url, apiKey: 'none', ...options })
  const agent = createAgent({ model, stream, tools: [tool('look')] })
  await agent.run('How many?', { session: 's' }).result
  const { state } = await agent.run('Thanks.', { session: 's' }).result
  expect(state).toBe('COMPLETED')
  return theatre.wire(2).filter(({ role }) => role === 'assistant')
}

const part = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }] })
const first = 'It must be looked up.'

describe.each(sampledRows([true, false]))('earlier reasoning (stream: %s)', (stream) => {
  it.each([
    ['zai', { reasoning_content: first, content: 'Wait.' }, { reasoning_content: 'Found.' }],
    ['gpustack', { reasoning_content: first, content: 'Wait.' }, { reasoning_content: 'Found.' }],
    ['ollama', { reasoning: first, content: 'Wait.' }, { reasoning: 'Found.' }],
    [
      'mistral',
      { content: [part(first), { type: 'text', text: 'Wait.' }] },
      { content: [part('Found.'), { type: 'text', text: 'It is 4.' }] },
    ],
  ])('is sent back to %s in the format that it reads', async (provider, called, answered) => {
    expect(await sentBack({ provider }, stream)).toMatchObject([called, answered])
  })

  it('is sent back only with tool calls to providers that require it there', async () => {
    const [called, answered] = await sentBack({ provider: 'deepseek' }, stream)
    expect(called).toMatchObject({ reasoning_content: first, content: 'Wait.' })
    expect(answered).toEqual({ role: 'assistant', content: 'It is 4.' })
  })

  it('is sent back to no other provider, or as the option specifies', async () => {
    const plain = { role: 'assistant', content: 'It is 4.' }
    expect((await sentBack({}, stream))[1]).toEqual(plain)
    expect((await sentBack({ provider: 'ollama', echoReasoning: false }, stream))[1]).toEqual(plain)
    expect((await sentBack({ echoReasoning: 'reasoning' }, stream))[1]).toEqual({
      ...plain,
      reasoning: 'Found.',
    })
    expect((await sentBack({ echoReasoning: true }, stream))[0]).toMatchObject({ reasoning_content: first })
  })
})

it('is refused in a format that no provider reads', () => {
  const options = { model: 'm', echoReasoning: 'thoughts' } as unknown as OpenAIChatOptions
  expect(() => openaiChat(options)).toThrow(/echoReasoning must be true, false or one of reasoning_content/)
})

it.each([
  ['deepseek', true],
  ['openai', false],
])('reasoning that is sent back to %s counts towards the window (%s)', async (provider, isEchoed) => {
  const turn = { reasoning: 'thought '.repeat(40), toolCalls: [{ name: 'look' }] }
  const rehearsal = await startRehearsal({ scenario: { turns: [turn, turn, turn, { text: 'Done.' }] } })
  const model = openaiChat({ model: 'm', provider, baseURL: rehearsal.url, apiKey: 'none' })
  const run = createAgent({
    model,
    tools: [tool('look', () => 'seen')],
    context: { window: 250, strategy: 'sliding_window' },
    tokenizer: { count: (words) => Math.ceil(words.length / 4) },
    guardrails: { progress: null },
  }).run('Go.')
  let fitted = 0
  run.events$.subscribe(({ type }) => {
    if (type === 'context_fitted') fitted += 1
  })
  expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(fitted > 0).toBe(isEchoed)
  const sent = rehearsal.requests.map(
    ({ body }) => JSON.stringify(body.messages).split('thought ').length - 1,
  )
  expect(Math.max(...sent)).toBe(isEchoed ? 80 : 0)
  await rehearsal.close()
})
